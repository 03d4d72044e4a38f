"""The cache, operation by operation; what fails leaves everything as it was."""

import numpy as np
import pytest

from paged_tutorial.invariants import check_invariants
from paged_tutorial.pool import OutOfBlocksError

from helpers import append, finish, make_cache, serve, snapshot


def blocks_of(cache, request_id):
    return list(cache.holdings[request_id].table.block_ids)


# -- match and can_admit -------------------------------------------------------------------


def test_an_empty_cache_matches_nothing_and_names_the_full_blocks():
    cache = make_cache(4)
    match = cache.match(range(9))
    assert match.blocks == {}
    assert [name.content for name in match.names] == [(0, 1, 2, 3), (4, 5, 6, 7)]


@pytest.mark.parametrize(
    ("length", "hits"), [(0, 0), (1, 0), (3, 0), (4, 0), (5, 1), (8, 1), (9, 2), (12, 2)]
)
def test_the_last_token_is_never_hit(length, hits):
    cache = make_cache(4)
    finish(cache, "a", range(12))
    # All three blocks are cached; a block is hit only if a token remains after it.
    assert len(cache.match(range(length)).blocks) == hits


def test_holes_are_skipped_or_end_the_match():
    for holes, expected in [(True, {0: 0, 2: 2}), (False, {0: 0})]:
        cache = make_cache(4, holes=holes)
        finish(cache, "a", range(13))
        cache.evict(1)
        assert cache.match(range(13)).blocks == expected


def test_salt_and_adapter_divide_the_cache():
    cache = make_cache(8)
    finish(cache, "a", range(5), salt="one", adapter="math")
    assert len(cache.match(range(5), "one", "math").blocks) == 1
    for salt, adapter in [("", ""), ("one", ""), ("", "math"), ("math", "one"), ("two", "math")]:
        assert cache.match(range(5), salt, adapter).blocks == {}


def test_tokens_may_be_a_list_a_range_or_an_array():
    cache = make_cache(4)
    finish(cache, "a", np.arange(9))
    for tokens in ([*range(9)], range(9), np.arange(9)):
        assert cache.match(tokens).blocks == {0: 0, 1: 1}


def test_can_admit_says_what_admit_does():
    cache = make_cache(3)
    finish(cache, "a", range(8))
    serve(cache, "b", [9])
    assert cache.can_admit(range(8))
    # Three blocks, two of them hits, and the hits are the only free ones.
    assert not cache.can_admit(range(9))
    with pytest.raises(OutOfBlocksError, match="3 needed, 2 free"):
        cache.admit("c", range(9))


# -- admit ---------------------------------------------------------------------------------


def test_admit_returns_cached_positions_and_leaves_the_others_missing():
    cache = make_cache(8)
    finish(cache, "a", range(13))
    cache.evict(1)
    cached = cache.admit("b", range(13))
    assert cached.dtype == np.int64
    assert cached.tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
    assert cache.missing("b") == [4, 5, 6, 7, 12]
    assert cache.lost_positions("b") == {4, 5, 6, 7}
    check_invariants(cache)


def test_two_running_requests_share_a_prefix():
    cache = make_cache(8)
    serve(cache, "a", range(10))
    assert serve(cache, "b", [*range(8), 99]) == 8
    assert blocks_of(cache, "a")[:2] == blocks_of(cache, "b")[:2]
    assert cache.pool.reference_counts[:4] == [2, 2, 1, 1]


def test_hits_are_touched_before_new_blocks_are_taken():
    # The only free blocks are the hits and one more. Taking first would take a hit.
    cache = make_cache(3)
    finish(cache, "a", range(8))
    assert list(cache.pool.queue) == [2, 1, 0]
    cache.pool.queue.remove(2)
    cache.pool.queue.put(2, cached=True)
    assert list(cache.pool.queue) == [1, 0, 2]
    assert serve(cache, "b", range(9)) == 8
    assert blocks_of(cache, "b") == [0, 1, 2]


def test_admit_without_room_changes_nothing():
    cache = make_cache(4)
    finish(cache, "a", range(9))
    serve(cache, "b", range(5))
    before = snapshot(cache)
    with pytest.raises(OutOfBlocksError) as caught:
        cache.admit("c", range(17))
    assert (caught.value.needed, caught.value.free) == (4, 2)
    assert snapshot(cache) == before


def test_a_request_is_admitted_only_once():
    cache = make_cache(4)
    serve(cache, "a", range(5))
    before = snapshot(cache)
    with pytest.raises(ValueError, match="request 'a' is admitted already"):
        cache.admit("a", range(5))
    assert snapshot(cache) == before


# -- extend --------------------------------------------------------------------------------


def test_extend_fills_the_tail_before_it_takes_a_block():
    cache = make_cache(4)
    serve(cache, "a", range(3))
    append(cache, "a", [3])
    assert blocks_of(cache, "a") == [0]
    append(cache, "a", [4])
    assert blocks_of(cache, "a") == [0, 1]
    cache.extend("a", range(5, 14))
    assert blocks_of(cache, "a") == [0, 1, 2, 3]
    assert cache.missing("a") == list(range(5, 14))
    check_invariants(cache)


def test_extend_without_room_changes_nothing():
    cache = make_cache(2)
    serve(cache, "a", range(6))
    before = snapshot(cache)
    with pytest.raises(OutOfBlocksError, match="1 needed, 0 free"):
        cache.extend("a", [6, 7, 8])
    assert snapshot(cache) == before
    cache.extend("a", [6, 7])


# -- commit and batch ----------------------------------------------------------------------


def test_a_block_is_found_only_once_it_is_full_and_computed():
    cache = make_cache(4)
    cache.admit("a", range(8))
    assert cache.match(range(8)).blocks == {}
    cache.commit("a", [0, 1, 2])
    assert cache.match(range(8)).blocks == {}
    cache.commit("a", [3, 4])
    assert cache.match(range(8)).blocks == {0: 0}
    cache.commit("a", [5, 6, 7])
    assert cache.match(range(9)).blocks == {0: 0, 1: 1}


def test_generated_tokens_are_cached_as_prompts_are():
    cache = make_cache(4)
    serve(cache, "a", range(6))
    for token in range(6, 9):
        append(cache, "a", [token])
    assert len(cache.match(range(9)).blocks) == 2


@pytest.mark.parametrize(
    "positions",
    [[-1], [9], [100], [1], [0, 2], [1, 0], [0, 0], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], ["0"]],
)
@pytest.mark.parametrize("operation", ["commit", "batch"])
def test_only_the_next_missing_positions_may_be_computed(operation, positions):
    """Out of order a position would rest on what is not there."""
    cache = make_cache(4)
    cache.admit("a", range(9))
    before = snapshot(cache)
    with pytest.raises(ValueError, match="position"):
        cache.commit("a", positions) if operation == "commit" else cache.batch([("a", positions)])
    assert snapshot(cache) == before


def test_what_is_computed_is_not_computed_again():
    cache = make_cache(4)
    serve(cache, "a", range(5))
    with pytest.raises(ValueError, match="position 4 of 'a' is not missing"):
        cache.batch([("a", [4])])
    with pytest.raises(ValueError, match="position 4 of 'a' is not missing"):
        cache.commit("a", [4])


def test_a_batch_is_flat_over_its_requests():
    cache = make_cache(8)
    cache.admit("a", [10, 11, 12, 13, 14])
    cache.admit("b", [20, 21])
    batch = cache.batch([("a", [0, 1, 2]), ("b", np.array([0, 1]))])
    assert batch.tokens.tolist() == [10, 11, 12, 20, 21]
    assert batch.positions.tolist() == [0, 1, 2, 0, 1]
    assert batch.slot_mapping.tolist() == [0, 1, 2, 8, 9]
    assert batch.batch.query_start.tolist() == [0, 3, 5]
    assert [table.tolist() for table in batch.batch.page_tables] == [[0, 1], [2]]


def test_a_batch_writes_into_its_own_slots_alone():
    cache = make_cache(4)
    cache.admit("a", range(6))
    cache.pool.keys[:] = cache.pool.values[:] = -1
    batch = cache.batch([("a", [0, 1, 2, 3, 4])])
    new = np.arange(5, dtype=np.float32).reshape(5, 1, 1)
    batch.write(0, new, 10 + new)
    assert cache.pool.keys.ravel()[:6].tolist() == [0, 1, 2, 3, 4, -1]
    assert cache.pool.values.ravel()[:6].tolist() == [10, 11, 12, 13, 14, -1]
    assert (cache.pool.keys.ravel()[5:] == -1).all()


# -- fork and copy-on-write ----------------------------------------------------------------


def test_a_fork_takes_no_block():
    cache = make_cache(2)
    serve(cache, "a", range(6))
    cache.fork("a", "b")
    assert blocks_of(cache, "a") == blocks_of(cache, "b") == [0, 1]
    assert cache.pool.reference_counts == [2, 2]
    assert cache.missing("b") == []
    check_invariants(cache)


def test_the_first_writer_copies_the_tail_and_the_last_writes_in_place():
    cache = make_cache(8)
    serve(cache, "a", range(6))
    cache.pool.keys[:, 1] = 5
    cache.fork("a", "b")
    cache.fork("a", "c")
    append(cache, "a", [10])
    append(cache, "b", [11])
    append(cache, "c", [12])
    assert [blocks_of(cache, key) for key in "abc"] == [[0, 2], [0, 3], [0, 1]]
    assert (cache.pool.keys[:, [1, 2, 3]] == 5).all()
    check_invariants(cache)


def test_a_full_tail_is_not_copied():
    cache = make_cache(4)
    serve(cache, "a", range(4))
    cache.fork("a", "b")
    append(cache, "b", [9])
    assert blocks_of(cache, "b") == [0, 1]
    assert cache.pool.reference_counts == [2, 1, 0, 0]


def test_a_fork_lives_on_when_its_parent_leaves():
    cache = make_cache(4)
    serve(cache, "a", range(6))
    cache.fork("a", "b")
    cache.release("a")
    append(cache, "b", [6, 7])
    assert blocks_of(cache, "b") == [0, 1]
    assert len(cache.match(range(9)).blocks) == 2


def test_parent_and_child_do_not_share_lists():
    cache = make_cache(4)
    serve(cache, "a", range(4))
    cache.fork("a", "b")
    append(cache, "b", [9, 9, 9, 9])
    append(cache, "a", [8, 8, 8, 8])
    assert cache.holdings["a"].tokens == [0, 1, 2, 3, 8, 8, 8, 8]
    assert cache.match([0, 1, 2, 3, 9, 9, 9, 9, 0]).blocks == {0: 0, 1: 1}
    assert cache.match([0, 1, 2, 3, 8, 8, 8, 8, 0]).blocks == {0: 0, 1: 2}


def test_fork_refuses_a_child_that_exists_and_a_parent_that_is_not_computed():
    cache = make_cache(4)
    serve(cache, "a", range(5))
    cache.admit("b", [7, 8])
    before = snapshot(cache)
    with pytest.raises(ValueError, match="request 'b' is admitted already"):
        cache.fork("a", "b")
    with pytest.raises(ValueError, match="request 'a' is admitted already"):
        cache.fork("a", "a")
    with pytest.raises(ValueError, match="request 'b' has 2 positions to compute"):
        cache.fork("b", "c")
    assert snapshot(cache) == before


# -- release, evict, drop_all --------------------------------------------------------------


def test_release_goes_tail_first_what_is_cached_to_the_back():
    cache = make_cache(6)
    finish(cache, "a", range(10))
    assert list(cache.pool.queue) == [2, 3, 4, 5, 1, 0]


def test_what_was_not_computed_is_forgotten_on_release():
    cache = make_cache(6)
    cache.admit("a", range(12))
    cache.commit("a", range(5))
    cache.release("a")
    check_invariants(cache)
    assert cache.match(range(12)).blocks == {0: 0}
    assert list(cache.pool.queue) == [1, 2, 3, 4, 5, 0]


def test_an_evicted_block_is_the_next_to_go():
    cache = make_cache(4)
    finish(cache, "a", range(9))
    cache.evict(0)
    check_invariants(cache)
    assert list(cache.pool.queue) == [0, 2, 3, 1]
    assert cache.stats["evictions"] == 1
    assert [type(block) for block in cache.pool.queue] == [int] * 4


def test_eviction_takes_ids_from_numpy():
    cache = make_cache(4)
    finish(cache, "a", range(9))
    cache.evict(np.int64(0))
    assert [type(block) for block in cache.pool.queue] == [int] * 4


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (0, "block 0 is held by a request and cannot be evicted"),
        (3, "block 3 is not cached"),
        (-1, "block id must be at least 0, got -1"),
        (4, "block id must be at most 3, got 4"),
        (1.0, "block id must be an integer"),
    ],
)
def test_what_cannot_be_evicted_is_named(block, message):
    cache = make_cache(4)
    serve(cache, "a", range(5))
    before = snapshot(cache)
    with pytest.raises((TypeError, ValueError), match=message):
        cache.evict(block)
    assert snapshot(cache) == before


def test_taking_a_cached_block_counts_as_an_eviction():
    cache = make_cache(2)
    finish(cache, "a", range(8))
    assert cache.stats["evictions"] == 0
    serve(cache, "b", [9] * 5)
    assert cache.stats["evictions"] == 2


def test_drop_all_forgets_every_block_and_every_loss():
    cache = make_cache(4)
    finish(cache, "a", range(9))
    cache.evict(1)
    cache.drop_all()
    check_invariants(cache)
    assert cache.stats["cached"] == 0
    cache.admit("a", range(9))
    assert len(cache.missing("a")) == 9
    assert cache.lost_positions("a") == set()


def test_stats_count_blocks_and_requests():
    cache = make_cache(6)
    finish(cache, "a", range(9))
    serve(cache, "b", range(5))
    assert cache.stats == {
        "num_blocks": 6,
        "free": 4,
        "cached": 2,
        "requests": 1,
        "evictions": 0,
    }


# -- unknown requests ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation",
    [
        lambda cache: cache.extend("x", [1]),
        lambda cache: cache.commit("x", [0]),
        lambda cache: cache.fork("x", "y"),
        lambda cache: cache.release("x"),
        lambda cache: cache.missing("x"),
        lambda cache: cache.lost_positions("x"),
        lambda cache: cache.batch([("x", [0])]),
        lambda cache: cache.batch([("a", [4]), ("x", [0])]),
    ],
)
def test_an_unknown_request_is_named(operation):
    cache = make_cache(4)
    cache.admit("a", range(5))
    cache.commit("a", range(4))
    before = snapshot(cache)
    with pytest.raises(KeyError, match="request 'x' is not admitted"):
        operation(cache)
    assert snapshot(cache) == before
