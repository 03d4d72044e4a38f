"""Returning chats: counting equals running, LRU leaves no holes, answers are those of cold runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial import BlockPool, LRUManager, PagedEngine, PagedKVCache, random_model
from paged_tutorial.policies import FIFO, LFU, LIFO, Random, Sieve, TwoQueue
from paged_tutorial.returning_chats import blocks_for_all, count, returning_chats, serve

from helpers import make_cache, nan_pool, quick

MODEL = random_model()
POLICIES = (LRUManager, FIFO, LIFO, LFU, Random, Sieve, TwoQueue)


def engine_on(num_blocks, block_size, kind, holes):
    pool = nan_pool(MODEL, num_blocks, block_size, queue=kind())
    return PagedEngine(MODEL, pool=pool, holes=holes)


def counted(turns, num_blocks, block_size, kind, holes):
    return count(PagedKVCache(BlockPool(num_blocks, block_size, queue=kind()), holes=holes), turns)


@pytest.mark.parametrize("answer_tokens", [0, -1])
def test_an_answer_of_no_tokens_is_refused_by_both(turns, answer_tokens):
    for run in (
        lambda: count(PagedKVCache(BlockPool(200, 4)), turns, answer_tokens),
        lambda: serve(lambda: engine_on(200, 4, LRUManager, True), turns, answer_tokens),
    ):
        with pytest.raises(ValueError, match=f"_tokens must be at least 1, got {answer_tokens}"):
            run()


@pytest.fixture(scope="module")
def turns():
    return returning_chats(6, 4, seed=0)


@pytest.fixture(scope="module")
def cold(turns):
    return serve(lambda: PagedEngine(MODEL, 40, 8), turns, cold=True)


@pytest.mark.parametrize("holes", [True, False])
@pytest.mark.parametrize("kind", POLICIES)
def test_counting_is_exact_and_answers_are_those_of_a_cold_run(turns, cold, kind, holes):
    half = blocks_for_all(turns, 4, 8) // 2
    ran = serve(lambda: engine_on(half, 8, kind, holes), turns)
    played = counted(turns, half, 8, kind, holes)
    assert ran.answers == cold.answers
    assert ran.seconds > 0 and played.seconds is None
    for name in ("computed_tokens", "recomputed_tokens", "returns", "holes"):
        assert getattr(ran, name) == getattr(played, name), name


def test_a_cold_run_computes_everything(turns, cold):
    lengths, everything = {}, 0
    for turn in turns:
        lengths[turn.chat] = lengths.get(turn.chat, 0) + len(turn.message)
        everything += lengths[turn.chat] + 3  # of four new tokens three are looked at
        lengths[turn.chat] += 4
    assert cold.computed_tokens == everything
    assert cold.returns == 18 and cold.holes == 0


def test_with_room_for_all_only_what_is_new_is_computed(turns):
    """And the last block of each text, which is not full and cannot be found."""
    enough = blocks_for_all(turns, 4, 1)
    played = counted(turns, enough, 1, LRUManager, True)
    assert played.recomputed_tokens == 0
    texts = {}
    for turn in turns:
        texts[turn.chat] = texts.get(turn.chat, 0) + len(turn.message) + 4
    # The last answer token of each chat is never computed; the others are, at the return.
    assert played.computed_tokens == sum(texts.values()) - len(texts)


@quick
@given(
    seed=st.integers(0, 10**6),
    block_size=st.integers(1, 12),
    share=st.floats(0.3, 1.0),
    num_chats=st.integers(1, 7),
)
def test_tail_first_and_least_recently_used_leave_no_holes(seed, block_size, share, num_chats):
    turns = returning_chats(num_chats, 4, 1, 30, seed=seed)
    longest = max(
        blocks_for_all([t for t in turns if t.chat == c], 4, block_size) for c in range(num_chats)
    )
    num_blocks = max(longest, int(share * blocks_for_all(turns, 4, block_size)))
    filled, prefix = (
        count(make_cache(num_blocks, block_size, holes=holes), turns) for holes in (True, False)
    )
    assert filled == prefix
    assert filled.holes == 0


def test_a_random_order_leaves_holes_and_filling_them_saves(turns):
    half = blocks_for_all(turns, 4, 8) // 2
    filled, prefix = (counted(turns, half, 8, Random, holes) for holes in (True, False))
    assert filled.holes and prefix.holes
    assert filled.computed_tokens < prefix.computed_tokens


def test_the_workload_is_reproducible_and_mixed():
    turns = returning_chats(5, 3, 2, 9, vocabulary_size=7, seed=4)
    assert turns == returning_chats(5, 3, 2, 9, vocabulary_size=7, seed=4)
    assert turns != returning_chats(5, 3, 2, 9, vocabulary_size=7, seed=5)
    order = [turn.chat for turn in turns]
    assert sorted(order) == sorted([*range(5)] * 3) and order != sorted(order)
    assert all(2 <= len(turn.message) <= 9 and max(turn.message) < 7 for turn in turns)


@pytest.mark.parametrize("wrong", [{"num_chats": 0}, {"turns": 0}, {"shortest": 9, "longest": 8}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match="at least"):
        returning_chats(**wrong)
