"""Faults that real engines had in pool, tables, names and queue, as small inputs.

The numbers are those of the course's list of fault cases. Block size 4; "cold" is the same
request alone on a fresh model.
"""

import numpy as np
import pytest

from paged_tutorial.cache import PagedKVCache
from paged_tutorial.checks import check_integer, check_number
from paged_tutorial.hashing import digest_16
from paged_tutorial.invariants import check_invariants
from paged_tutorial.lru import LRUManager
from paged_tutorial.model import DenseKV, random_model
from paged_tutorial.pool import BlockPool, OutOfBlocksError

from helpers import (
    append,
    compute,
    contents,
    finish,
    make_cache,
    make_model_cache,
    run_cold,
    serve,
    snapshot,
)

MODEL = random_model()


def assert_cold(tokens, logits):
    np.testing.assert_allclose(logits, run_cold(MODEL, tokens)[0][-1], rtol=1e-4, atol=1e-4)


def hits(cache, tokens, **root):
    return len(cache.match(tokens, **root).blocks)


@pytest.mark.parametrize("holes", [True, False])
def test_1_stale_hash_entry_after_reuse(holes):
    cache = make_cache(2, holes=holes)
    finish(cache, "first", range(5))
    assert hits(cache, range(5)) == 1
    finish(cache, "nines", [9] * 8)
    assert hits(cache, range(5)) == 0
    for name, blocks in cache.index.items():
        for block in blocks:
            assert cache.index.name_of[block] == name
            assert name.content == (9, 9, 9, 9)
    assert hits(cache, [9] * 9) == 2


def test_1_a_stale_block_is_not_found_through_its_twin():
    """Two blocks with one content: losing the first leaves the second, losing both none."""
    cache = make_cache(4)
    serve(cache, "a", range(4))
    serve(cache, "b", range(4))
    for request_id in "ab":
        cache.release(request_id)
    assert cache.match(range(5)).blocks == {0: 0}
    cache.evict(0)
    assert cache.match(range(5)).blocks == {0: 1}
    cache.evict(1)
    assert cache.match(range(5)).blocks == {}


def test_2_evicted_block_still_found_while_decoding():
    cache = make_cache(2)
    finish(cache, "first", range(5))
    serve(cache, "decoder", [7])
    for length in range(1, 5):
        assert hits(cache, range(5)) == 1
        append(cache, "decoder", [7])
        assert len(cache.holdings["decoder"].tokens) == length + 1
    assert hits(cache, range(5)) == 0


def test_3_nothing_left_to_compute_on_a_full_hit():
    cache = make_model_cache(MODEL, 4)
    for request_id in ("first", "same"):
        cache.admit(request_id, range(8))
        assert len(cache.missing(request_id)) >= 1
        assert_cold(range(8), compute(MODEL, cache, request_id))
        cache.release(request_id)
    assert len(cache.admit("third", range(8))) == 4


@pytest.mark.parametrize("length", range(1, 14))
def test_3_at_least_one_token_is_computed_whatever_the_length(length):
    cache = make_cache(8)
    finish(cache, "first", range(length))
    assert finish(cache, "same", range(length)) == (length - 1) // 4 * 4


def test_4_chain_broken_by_the_last_token_rule():
    cache = make_cache(6)
    finish(cache, "first", range(8))
    finish(cache, "same", range(8))
    assert finish(cache, "longer", range(13)) == 8


@pytest.mark.parametrize("length", [3, 4, 5])
def test_5_off_by_one_at_the_block_boundary(length):
    cache = make_cache(8)
    serve(cache, "r", range(length))
    for count in range(length, length + 10):
        assert len(cache.holdings["r"].table) == (count + 3) // 4
        assert cache.pool.num_free == 8 - (count + 3) // 4
        append(cache, "r", [50])


def test_10_the_same_block_released_twice():
    pool = BlockPool(4, 4)
    block = [pool.allocate(), pool.allocate()][1]
    pool.release(block)
    with pytest.raises(ValueError, match=f"block {block}"):
        pool.release(block)
    taken = [pool.allocate() for _ in range(3)]
    assert len({0, *taken}) == 4


def test_10_a_request_released_twice():
    cache = make_cache(4)
    serve(cache, "r", range(5))
    cache.release("r")
    before = snapshot(cache)
    with pytest.raises(KeyError, match="'r'"):
        cache.release("r")
    assert snapshot(cache) == before


def test_11_copy_on_write_missing():
    cache = make_model_cache(MODEL, 4)
    cache.admit("parent", range(6))
    compute(MODEL, cache, "parent")
    cache.fork("parent", "child")
    cache.extend("parent", [10])
    parent_logits = compute(MODEL, cache, "parent")
    tail = cache.holdings["child"].table[1]
    cache.extend("child", [11])
    child_logits = compute(MODEL, cache, "child")
    assert_cold([*range(6), 10], parent_logits)
    assert_cold([*range(6), 11], child_logits)

    tables = [cache.holdings[key].table for key in ("parent", "child")]
    assert tables[0][0] == tables[1][0]
    assert tables[0][1] != tables[1][1]
    # The child was the sole holder by then, and wrote in place.
    assert tables[1][1] == tail
    for pool in (cache.pool.keys, cache.pool.values):
        parent_tail, child_tail = pool[:, tables[0][1]], pool[:, tables[1][1]]
        np.testing.assert_array_equal(parent_tail[:, :2], child_tail[:, :2])
        assert (parent_tail[:, 2] != child_tail[:, 2]).any()


@pytest.mark.parametrize("length", range(1, 10))
def test_11_forks_of_any_length_stay_apart(length):
    cache = make_model_cache(MODEL, 20)
    tokens = [3 * p % 101 for p in range(length)]
    cache.admit(0, tokens)
    compute(MODEL, cache, 0)
    for child in (1, 2):
        cache.fork(0, child)
    for step in range(5):
        for request_id in range(3):
            cache.extend(request_id, [50 + 10 * request_id + step])
            logits = compute(MODEL, cache, request_id)
            assert_cold(cache.holdings[request_id].tokens, logits)
    for request_id in range(3):
        _, cold = run_cold(MODEL, cache.holdings[request_id].tokens)
        np.testing.assert_allclose(
            contents(cache, request_id), [cold.keys, cold.values], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("holes", [True, False])
@pytest.mark.parametrize("bits", [0, 1, 2])
def test_13_collision(bits, holes):
    def few_digests(data):
        return bytes([digest_16(data)[0] & (2**bits - 1)])

    random = np.random.default_rng(bits)
    cache = make_model_cache(MODEL, 8, hash_function=few_digests, holes=holes)
    hit_tokens = 0
    for request_id in range(80):
        # Blocks of one token each, so that texts agree often but not always.
        tokens = np.repeat(random.integers(0, 2, 5), 4)[: random.integers(1, 21)].tolist()
        hit_tokens += len(cache.admit(request_id, tokens))
        assert_cold(tokens, compute(MODEL, cache, request_id))
        _, cold = run_cold(MODEL, tokens)
        np.testing.assert_allclose(
            contents(cache, request_id), [cold.keys, cold.values], rtol=1e-4, atol=1e-5
        )
        cache.release(request_id)
    assert hit_tokens > 0


def test_13_salts_that_collide_stay_apart():
    cache = make_cache(4, hash_function=lambda data: b"")
    finish(cache, "a", range(5), salt="one")
    assert hits(cache, range(5), salt="one") == 1
    assert hits(cache, range(5), salt="two") == 0
    assert hits(cache, range(5), adapter="one") == 0


def test_17_deepest_block_must_go_first():
    cache = make_cache(3)
    finish(cache, "r", range(12))
    assert list(cache.match(range(13)).blocks) == [0, 1, 2]
    serve(cache, "one block", [99])
    assert cache.stats["evictions"] == 1
    assert list(cache.match(range(13)).blocks) == [0, 1]


def test_18_fifo_that_calls_itself_lru():
    queue = LRUManager(["P", "Q"])
    queue.remove("P")
    queue.put("P", cached=True)
    assert queue.pop() == "Q"


def test_18_a_hit_makes_a_block_recent():
    cache = make_cache(3)
    texts = {"P": [1] * 4, "Q": [2] * 4}
    for name, tokens in texts.items():
        finish(cache, name, tokens)
    finish(cache, "hit P", [*texts["P"], 5])
    finish(cache, "R", [3] * 8)
    assert hits(cache, [*texts["P"], 0]) == 1
    assert hits(cache, [*texts["Q"], 0]) == 0


def test_20_reset_while_in_use():
    cache = make_model_cache(MODEL, 6)
    cache.admit("done", range(9))
    compute(MODEL, cache, "done")
    cache.release("done")
    cache.admit("runs", range(9))
    compute(MODEL, cache, "runs")
    before = snapshot(cache)
    with pytest.raises(RuntimeError, match="cannot be dropped while requests hold blocks: 'runs'"):
        cache.drop_all()
    assert snapshot(cache) == before
    cache.extend("runs", [42])
    assert_cold([*range(9), 42], compute(MODEL, cache, "runs"))
    cache.release("runs")
    cache.drop_all()
    check_invariants(cache)
    assert hits(cache, range(9)) == 0
    assert hits(cache, [*range(9), 42, 0, 0, 0]) == 0
    assert len(cache.index) == 0


BAD_TOKENS = [[], [-1], [1, -1], "text", b"text", [1.5], ["1"], [None], [True], None, 7, [2**63]]


@pytest.mark.parametrize("tokens", BAD_TOKENS, ids=repr)
@pytest.mark.parametrize(
    "operation",
    [
        lambda cache, tokens: cache.admit("new", tokens),
        lambda cache, tokens: cache.extend("old", tokens),
        lambda cache, tokens: cache.can_admit(tokens),
    ],
    ids=["admit", "extend", "can_admit"],
)
def test_21_bad_tokens_change_nothing(operation, tokens):
    cache = make_cache(4)
    serve(cache, "old", range(6))
    before = snapshot(cache)
    with pytest.raises((TypeError, ValueError), match="token"):
        operation(cache, tokens)
    assert snapshot(cache) == before


@pytest.mark.parametrize("token", [-1, 101, 10**6])
def test_21_a_token_outside_the_vocabulary_names_value_and_limit(token):
    memory = DenseKV(MODEL.config, 2).at([0, 1])
    with pytest.raises(ValueError, match=f"at (least 0|most 100), got {token}"):
        MODEL.forward([5, token], [0, 1], memory)
    assert np.isnan(memory.keys).all()


@pytest.mark.parametrize("size", [0, -1, 1.5, "16", None, True])
def test_21_sizes_of_the_pool_name_value_and_limit(size):
    for name, arguments in (("num_blocks", (size, 4)), ("block_size", (4, size))):
        with pytest.raises((TypeError, ValueError), match=f"{name} must be.*{size}"):
            BlockPool(*arguments)


def test_21_temperature_and_number_of_tokens_name_value_and_limit():
    with pytest.raises(ValueError, match="temperature must be a finite number, at least 0, got na"):
        check_number("temperature", float("nan"), 0)
    with pytest.raises(ValueError, match="max_tokens must be at least 1, got -1"):
        check_integer("max_tokens", -1, 1)


@pytest.mark.parametrize("holes", [True, False])
def test_22_queries_that_change_things(holes):
    cache = make_cache(5, holes=holes)
    finish(cache, "old", range(13))
    serve(cache, "runs", [*range(4), 9, 9])
    before = snapshot(cache)
    for _ in range(100):
        assert cache.can_admit(range(9))
        assert not cache.can_admit(range(40))
        cache.match(range(13))
        cache.match([8] * 9, "salt", "adapter")
        cache.missing("runs")
        cache.lost_positions("runs")
        assert cache.stats["requests"] == 1
    assert snapshot(cache) == before


@pytest.mark.parametrize("free", range(4))
def test_23_an_admission_that_runs_out_half_way(free):
    cache = make_cache(8)
    finish(cache, "old", range(9))
    serve(cache, "holds the rest", [50] * (4 * (8 - free)))
    before = snapshot(cache)
    with pytest.raises(OutOfBlocksError):
        cache.admit("new", [*range(8), 1, 2, 3, 4, 5, 6, 7, 8])
    assert snapshot(cache) == before
    check_invariants(cache)


def test_23_an_append_that_runs_out_half_way():
    """Copy-on-write takes the last free block; the next one is not there."""
    cache = make_cache(3)
    serve(cache, "parent", range(6))
    cache.fork("parent", "child")
    before = snapshot(cache)
    with pytest.raises(OutOfBlocksError, match="2 needed, 1 free"):
        cache.extend("child", range(3))
    assert snapshot(cache) == before
    append(cache, "child", range(2))


def test_23_a_copy_that_finds_no_block():
    cache = make_cache(2)
    serve(cache, "parent", range(6))
    cache.fork("parent", "child")
    before = snapshot(cache)
    with pytest.raises(OutOfBlocksError, match="1 needed, 0 free"):
        cache.extend("child", [9])
    assert snapshot(cache) == before


def test_23_a_fork_needs_no_block_at_all():
    cache = make_cache(2)
    serve(cache, "parent", range(8))
    cache.fork("parent", "child")
    check_invariants(cache)
    assert cache.pool.num_free == 0


def test_23_an_unhashable_request_id_changes_nothing():
    cache = PagedKVCache(BlockPool(4, 4))
    before = snapshot(cache)
    with pytest.raises(TypeError):
        cache.admit(["r"], range(5))
    assert snapshot(cache) == before
