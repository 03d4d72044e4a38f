"""Evicted blocks, in any pattern, come back by one pass over the missing positions alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paged_tutorial.attention import paged_attention_blocks, paged_attention_gather
from paged_tutorial.kernels import paged_attention
from paged_tutorial.model import random_model
from paged_tutorial.recompute import compute_batch

from helpers import compute, contents, make_model_cache, quick, run_cold

MODEL = random_model()
NUM_BLOCKS = 12


def serve_and_lose(tokens, block_size, evicted, **options):
    """Compute a text, let it go, evict some of its blocks. Returns (cache, old contents)."""
    cache = make_model_cache(MODEL, NUM_BLOCKS, block_size, **options)
    cache.admit("before", tokens)
    compute(MODEL, cache, "before")
    old = contents(cache, "before")
    blocks = list(cache.holdings["before"].table.block_ids)
    cache.release("before")
    for logical in evicted:
        cache.evict(blocks[logical])
        # What an evicted block held is gone for good.
        cache.pool.keys[:, blocks[logical]] = np.nan
        cache.pool.values[:, blocks[logical]] = np.nan
    return cache, old


def positions_of(blocks, block_size, length):
    return [
        position
        for block in sorted(blocks)
        for position in range(block * block_size, min((block + 1) * block_size, length))
    ]


@pytest.mark.parametrize(
    "attention", [paged_attention_gather, paged_attention_blocks, paged_attention]
)
@settings(quick, max_examples=60)
@given(block_size=st.integers(1, 5), data=st.data())
def test_one_pass_over_the_holes_restores_everything(attention, block_size, data):
    length = data.draw(st.integers(1, NUM_BLOCKS * block_size))
    tokens = data.draw(st.lists(st.integers(0, 100), min_size=length, max_size=length))
    hittable = (length - 1) // block_size
    evicted = data.draw(st.sets(st.integers(0, hittable - 1))) if hittable else set()
    cache, old = serve_and_lose(tokens, block_size, evicted, attention=attention)

    cached = cache.admit("after", tokens)
    last_block = range(hittable, -(-length // block_size))
    expected = positions_of({*evicted, *last_block}, block_size, length)
    assert cache.missing("after") == expected
    assert sorted([*cached, *expected]) == list(range(length))
    assert cache.lost_positions("after") == set(positions_of(evicted, block_size, length))

    batch = cache.batch([("after", expected)])
    assert batch.positions.tolist() == expected
    logits = MODEL.forward(batch.tokens, batch.positions, batch)
    cache.commit("after", expected)
    assert cache.missing("after") == []

    np.testing.assert_allclose(contents(cache, "after"), old, rtol=1e-5, atol=1e-5)
    cold, _ = run_cold(MODEL, tokens)
    np.testing.assert_allclose(logits, cold[expected], rtol=1e-4, atol=1e-4)


@settings(quick, max_examples=40)
@given(evicted=st.sets(st.integers(0, 6)), chunk=st.integers(1, 9))
def test_holes_are_filled_in_chunks_too(evicted, chunk):
    tokens = [(7 * position) % 101 for position in range(30)]
    cache, old = serve_and_lose(tokens, 4, evicted)
    cache.admit("after", tokens)
    logits = compute(MODEL, cache, "after", chunk)
    np.testing.assert_allclose(contents(cache, "after"), old, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(logits, run_cold(MODEL, tokens)[0][-1], rtol=1e-4, atol=1e-4)


@settings(quick, max_examples=40)
@given(evicted=st.sets(st.integers(0, 6)))
def test_strict_prefix_mode_recomputes_all_after_the_first_hole(evicted):
    tokens = [(7 * position) % 101 for position in range(30)]
    cache, old = serve_and_lose(tokens, 4, evicted, holes=False)
    cached = cache.admit("after", tokens)
    first = 4 * min(evicted, default=7)
    assert cached.tolist() == list(range(first))
    assert cache.missing("after") == list(range(first, 30))
    compute(MODEL, cache, "after")
    np.testing.assert_allclose(contents(cache, "after"), old, rtol=1e-5, atol=1e-5)


def test_holes_of_several_requests_are_filled_in_one_batch():
    texts = {name: [(step * p) % 101 for p in range(14)] for name, step in [("a", 3), ("b", 5)]}
    cache = make_model_cache(MODEL, NUM_BLOCKS)
    for name, tokens in texts.items():
        cache.admit(name, tokens)
        compute(MODEL, cache, name)
    tables = {name: list(cache.holdings[name].table.block_ids) for name in texts}
    for name in texts:
        cache.release(name)
    cache.evict(tables["a"][1])
    cache.evict(tables["b"][0])
    for name, tokens in texts.items():
        cache.admit(name, tokens)
    plan = [(name, cache.missing(name)) for name in texts]
    assert plan == [("a", [4, 5, 6, 7, 12, 13]), ("b", [0, 1, 2, 3, 12, 13])]
    batch = cache.batch(plan)
    logits = MODEL.forward(batch.tokens, batch.positions, batch, rows=[5, 11])
    for row, tokens in zip(logits, texts.values(), strict=True):
        np.testing.assert_allclose(row, run_cold(MODEL, tokens)[0][-1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("plan", [[("a", []), ("b", [0, 1])], [("b", [0, 1]), ("a", [])]])
def test_logits_are_never_those_of_another_request(plan):
    """Whoever computes nothing in a batch has no last row, and must not get a neighbour's."""
    cache = make_model_cache(MODEL, NUM_BLOCKS)
    cache.admit("a", [1, 2, 3])
    cache.admit("b", [7, 8])
    wanted = [[name for name, _ in plan].index("a")]
    with pytest.raises(ValueError, match="'a' computes no position"):
        compute_batch(MODEL, cache, plan, wanted)
    assert cache.missing("b") == [0, 1]
    assert compute_batch(MODEL, cache, plan, []).shape == (0, 101)
    assert cache.missing("b") == []


def test_a_request_comes_once_in_a_batch():
    cache = make_model_cache(MODEL, NUM_BLOCKS)
    cache.admit("a", [1, 2, 3])
    with pytest.raises(ValueError, match="'a' comes twice"):
        compute_batch(MODEL, cache, [("a", [0, 1]), ("a", [0, 1])], [0])
    assert cache.missing("a") == [0, 1, 2]
