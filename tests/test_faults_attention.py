"""Faults that real engines had in attention and positions, as small inputs.

The numbers are those of the course's list of fault cases. Block size 4.
"""

from itertools import product

import numpy as np
import pytest

from paged_tutorial.attention import (
    Batch,
    dense_attention,
    merge_partials,
    paged_attention_blocks,
    paged_attention_gather,
    partial_attention,
)
from paged_tutorial.kernels import paged_attention
from paged_tutorial.model import random_model

from helpers import compute, contents, make_model_cache, naive_attention, run_cold

PAGED = [paged_attention_gather, paged_attention_blocks, paged_attention]

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def model():
    return random_model()


def assert_equals_one_pass(model, cache, request_id, tokens, logits):
    """Last logits and all keys and values as one pass over the whole text makes them."""
    expected, memory = run_cold(model, tokens)
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(logits, expected[-1], rtol=1e-4, atol=1e-4)
    keys, values = contents(cache, request_id)
    np.testing.assert_allclose(keys, memory.keys, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(values, memory.values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("attention", PAGED)
@pytest.mark.parametrize("chunk", range(1, 9))
def test_7_a_chunk_does_not_read_what_is_not_written_yet(model, attention, chunk):
    cache = make_model_cache(model, 3, attention=attention)
    tokens = [5, 17, 3, 99, 42, 0, 8, 64]
    cache.admit("r", tokens)
    logits = compute(model, cache, "r", chunk)
    assert_equals_one_pass(model, cache, "r", tokens, logits)


@pytest.mark.parametrize("cuts", list(product([False, True], repeat=5)))
def test_8_positions_are_those_of_the_request_not_of_the_chunk(model, cuts):
    """Every split of six tokens, the last of them appended as decoding does."""
    tokens = [5, 17, 3, 99, 42, 7]
    cache = make_model_cache(model, 2)
    cache.admit("r", tokens[:5])
    sizes = [1]
    for cut in cuts:
        if cut:
            sizes.append(0)
        sizes[-1] += 1
    cache.extend("r", tokens[5:])
    for size in sizes:
        positions = cache.missing("r")[:size]
        batch = cache.batch([("r", positions)])
        logits = model.forward(batch.tokens, batch.positions, batch)[-1]
        cache.commit("r", positions)
    assert not cache.missing("r")
    assert_equals_one_pass(model, cache, "r", tokens, logits)


def test_8_chunks_of_several_requests_share_a_batch(model):
    texts = {"a": [5, 17, 3, 99, 42, 7, 7], "b": [1, 2], "c": [5, 17, 3, 99, 1, 2, 3, 4, 5, 6]}
    cache = make_model_cache(model, 8)
    for request_id, tokens in texts.items():
        cache.admit(request_id, tokens)
    last = {}
    while plan := [(key, missing[:3]) for key in texts if (missing := cache.missing(key))]:
        batch = cache.batch(plan)
        logits = model.forward(batch.tokens, batch.positions, batch)
        for (request_id, positions), end in zip(plan, batch.batch.query_start[1:], strict=True):
            last[request_id] = logits[end - 1]
            cache.commit(request_id, positions)
    for request_id, tokens in texts.items():
        assert_equals_one_pass(model, cache, request_id, tokens, last[request_id])


@pytest.mark.parametrize("attention", PAGED)
def test_14_zero_times_nan(model, attention):
    cache = make_model_cache(model, 2, attention=attention)
    tokens = [5, 17, 3, 99, 42]
    cache.admit("r", tokens)
    assert_equals_one_pass(model, cache, "r", tokens, compute(model, cache, "r"))


@pytest.mark.parametrize("attend", PAGED)
def test_14_values_are_masked_and_not_only_scores(attend):
    """Finite keys and NaN values: masking the scores alone would leave 0 x NaN."""
    keys = np.ones((1, 4, 2, 6), np.float32)
    values = np.full((1, 4, 2, 6), np.nan, np.float32)
    values[:, :3] = 2
    batch = Batch(np.array([0, 2]), np.array([0, 2]), [np.array([0])])
    found = attend(np.ones((2, 8, 6), np.float32), keys, values, batch)
    np.testing.assert_allclose(found, 2, atol=1e-6)


def partial(num_keys, seed=0, first_key=0, dtype=np.float32):
    random = np.random.default_rng(seed)
    queries = random.normal(size=(2, 8, 6)).astype(dtype)
    keys, values = random.normal(size=(2, num_keys, 2, 6)).astype(dtype)
    key_positions = np.arange(first_key, first_key + num_keys)
    return partial_attention(queries, keys, values, np.array([4, 4]), key_positions)


def test_15_merging_with_an_empty_part_changes_nothing():
    full, empty = partial(5), partial(0)
    for merged in (merge_partials(full, empty), merge_partials(empty, full)):
        np.testing.assert_allclose(merged.output, full.output, rtol=1e-6)
        np.testing.assert_allclose(merged.log_sum, full.log_sum, rtol=1e-6)


@pytest.mark.parametrize("nothing", [(0, 0), (3, 5)], ids=["no keys", "all keys masked"])
def test_15_a_row_that_sees_nothing_gives_zeros_and_minus_infinity(nothing):
    num_keys, first_key = nothing
    empty = partial(num_keys, first_key=first_key)
    for part in (empty, merge_partials(empty, empty)):
        assert part.output.shape == (2, 8, 6) and part.log_sum.shape == (2, 8)
        assert (part.output == 0).all()
        assert np.isneginf(part.log_sum).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("score", [-60_000.0, 60_000.0])
@pytest.mark.parametrize("attend", PAGED)
def test_15_huge_scores_stay_right(attend, score, dtype):
    """Seven scores around -60,000 in two blocks: their differences alone decide."""
    queries = np.zeros((1, 8, 4), dtype)
    queries[..., 0] = 512
    queries[..., 1] = 2
    keys = np.zeros((2, 4, 2, 4), dtype)
    keys[..., 0] = score / 256
    keys[..., 1] = np.arange(8).reshape(2, 4, 1)
    values = np.random.default_rng(0).normal(size=keys.shape).astype(dtype)
    batch = Batch(np.array([6]), np.array([0, 1]), [np.array([0, 1])])
    weights = np.exp(np.arange(7.0))
    expected = np.einsum("s,skd->kd", weights / weights.sum(), values.reshape(8, 2, 4)[:7])
    found = attend(queries, keys, values, batch)
    # A float32 near 60,000 is exact to 1/256, and so is a score, hence the tolerance.
    tolerance = 1e-9 if dtype == np.float64 else 1e-2
    np.testing.assert_allclose(found[0], np.repeat(expected, 4, axis=0), rtol=0, atol=tolerance)


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(8, 2), (6, 2), (9, 3)])
def test_16_query_head_h_reads_kv_head_h_divided_by_the_group(num_heads, num_kv_heads):
    group = num_heads // num_kv_heads
    values = np.arange(num_kv_heads, dtype=np.float32)[None, None, :, None] * np.ones((1, 4, 1, 2))
    keys = np.ones((1, 4, num_kv_heads, 2), np.float32)
    queries = np.ones((1, num_heads, 2), np.float32)
    batch = Batch(np.array([3]), np.array([0, 1]), [np.array([0])])
    expected = [head // group for head in range(num_heads)]
    for attend in PAGED:
        assert attend(queries, keys, values, batch)[0, :, 0].tolist() == expected
    assert dense_attention(queries, keys[0], values[0], [3])[0, :, 0].tolist() == expected


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(8, 2), (6, 2), (9, 3)])
def test_16_keys_are_grouped_as_values_are(num_heads, num_kv_heads):
    random = np.random.default_rng(0)
    queries = random.normal(size=(2, num_heads, 4))
    keys, values = random.normal(size=(2, 7, num_kv_heads, 4))
    expected = naive_attention(queries, keys, values, [2, 6])
    np.testing.assert_allclose(dense_attention(queries, keys, values, [2, 6]), expected, atol=1e-12)
