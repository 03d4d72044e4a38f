"""Paged attention, both ways, against dense attention and a loop in double precision."""

import warnings
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paged_tutorial.attention import (
    Batch,
    Partial,
    dense_attention,
    merge_partials,
    paged_attention_blocks,
    paged_attention_gather,
    partial_attention,
)
from paged_tutorial.kernels import paged_attention

from helpers import naive_attention, quick

# Heads, kv heads and group size all differ in the first three, so that no two can be mixed up.
HEADS = [(8, 2), (6, 2), (9, 3), (12, 4), (4, 4), (5, 1), (1, 1)]
PAGED = [paged_attention_gather, paged_attention_blocks, paged_attention]

pytestmark = pytest.mark.filterwarnings("error")


@st.composite
def ragged_cases(draw, dtype=np.float32, max_queries=5):
    """A pool of NaN with the keys and values of a few requests, and queries at any positions."""
    num_heads, num_kv_heads = draw(st.sampled_from(HEADS))
    head_dim, block_size = draw(st.integers(1, 8)), draw(st.integers(1, 64))
    positions = st.lists(st.integers(0, 70), unique=True, max_size=max_queries)
    chosen = draw(st.lists(positions, max_size=4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    needed = [max(positions, default=-1) // block_size + 1 for positions in chosen]
    spare = draw(st.integers(1, 5))
    free = list(random.permutation(sum(needed) + spare))
    shape = (sum(needed) + spare, block_size, num_kv_heads, head_dim)
    pools = np.full(shape, np.nan, dtype), np.full(shape, np.nan, dtype)
    tables, dense = [], []
    for positions, count in zip(chosen, needed, strict=True):
        table = np.array([free.pop() for _ in range(count)], np.int64)
        length = max(positions, default=-1) + 1
        both = random.normal(size=(2, length, num_kv_heads, head_dim)).astype(dtype)
        for pool, new in zip(pools, both, strict=True):
            at = np.arange(length)
            pool[table[at // block_size], at % block_size] = new
        # A table may be longer than the queries reach: further blocks are not read.
        tables.append(np.append(table, free[:1]) if draw(st.booleans()) else table)
        dense.append(both)
    counts = [len(positions) for positions in chosen]
    batch = Batch(
        np.array([position for positions in chosen for position in positions], np.int64),
        np.cumsum([0, *counts]),
        tables,
    )
    queries = random.normal(size=(sum(counts), num_heads, head_dim)).astype(dtype)
    return queries, *pools, batch, dense


def each_request(attend, queries, batch, dense):
    """`attend` applied to every request alone, in one flat array."""
    parts = [
        attend(queries[start:stop], *both, batch.positions[start:stop])
        for (start, stop), both in zip(pairwise(batch.query_start), dense, strict=True)
        if stop > start
    ]
    return np.concatenate([queries[:0], *parts])


@settings(quick, max_examples=200)
@given(case=ragged_cases() | ragged_cases(max_queries=1))
def test_paged_equals_dense_and_the_loop(case):
    queries, keys, values, batch, dense = case
    expected = each_request(dense_attention, queries, batch, dense)
    np.testing.assert_allclose(
        each_request(naive_attention, queries, batch, dense), expected, rtol=0, atol=1e-5
    )
    for attend in PAGED:
        found = attend(queries, keys, values, batch)
        assert found.shape == queries.shape and found.dtype == queries.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@quick
@given(data=st.data())
def test_other_precisions_are_as_exact_as_their_output_allows(dtype, data):
    queries, keys, values, batch, dense = data.draw(ragged_cases(dtype))
    expected = each_request(naive_attention, queries, batch, dense)
    # Sums are kept in float32 at least: the output is off by its own rounding, no more.
    tolerance = {np.float16: 2e-3, np.float64: 1e-12}[dtype]
    for attend in PAGED:
        found = attend(queries, keys, values, batch)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance / 10)


def test_half_precision_is_summed_in_single_precision():
    random = np.random.default_rng(0)
    queries = random.normal(size=(3, 4, 8)).astype(np.float16)
    keys, values = random.normal(size=(2, 5000, 2, 8)).astype(np.float16)
    positions = np.full(3, 4999)
    found = partial_attention(queries, keys, values, positions, np.arange(5000))
    assert found.output.dtype == found.log_sum.dtype == np.float32
    expected = naive_attention(queries, keys, values, positions)
    np.testing.assert_allclose(found.output, expected, rtol=0, atol=1e-6)


@quick
@given(st.sampled_from(HEADS), st.integers(1, 20), st.data())
def test_chunks_give_what_one_pass_gives(heads, block_size, data):
    """Keys arrive chunk by chunk; what is not written yet is NaN and is not read."""
    num_heads, num_kv_heads = heads
    length = data.draw(st.integers(1, 40))
    cuts = data.draw(st.sets(st.integers(0, length)))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    queries = random.normal(size=(length, num_heads, 4)).astype(np.float32)
    keys, values = random.normal(size=(2, length, num_kv_heads, 4)).astype(np.float32)
    expected = dense_attention(queries, keys, values, np.arange(length))
    table = random.permutation(-(-length // block_size))
    for attend in PAGED:
        pools = np.full((2, len(table), block_size, num_kv_heads, 4), np.nan, np.float32)
        for start, stop in pairwise(sorted({0, length} | cuts)):
            at = np.arange(start, stop)
            pools[:, table[at // block_size], at % block_size] = keys[at], values[at]
            batch = Batch(at, np.array([0, len(at)]), [table])
            found = attend(queries[at], *pools, batch)
            np.testing.assert_allclose(found, expected[at], rtol=0, atol=1e-5)


@pytest.mark.parametrize("attend", PAGED)
@pytest.mark.parametrize("filling", [np.nan, np.inf, -np.inf, 3e38])
def test_unused_slots_may_hold_anything(attend, filling):
    random = np.random.default_rng(1)
    pools = np.full((2, 3, 4, 2, 6), filling, np.float32)
    keys, values = random.normal(size=(2, 5, 2, 6)).astype(np.float32)
    at, table = np.arange(5), np.array([2, 0])
    pools[:, table[at // 4], at % 4] = keys, values
    queries = random.normal(size=(2, 6, 6)).astype(np.float32)
    found = attend(queries, *pools, Batch(np.array([1, 4]), np.array([0, 2]), [table]))
    expected = dense_attention(queries, keys, values, [1, 4])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_queries_need_not_be_a_suffix():
    random = np.random.default_rng(2)
    queries = random.normal(size=(2, 8, 6)).astype(np.float32)
    keys, values = random.normal(size=(2, 10, 2, 6)).astype(np.float32)
    together = dense_attention(queries, keys, values, [3, 9])
    np.testing.assert_allclose(
        together[:1], dense_attention(queries[:1], keys[:4], values[:4], [3]), atol=1e-6
    )
    np.testing.assert_allclose(
        together[1:], dense_attention(queries[1:], keys, values, [9]), atol=1e-6
    )


@pytest.mark.parametrize("attend", PAGED)
def test_a_request_without_queries_and_an_empty_batch_are_no_trouble(attend):
    pools = np.ones((2, 2, 4, 2, 6), np.float32)
    table = np.array([0])
    one = np.ones((1, 4, 6), np.float32)
    found = attend(one, *pools, Batch(np.array([2]), np.array([0, 0, 1, 1]), [table] * 3))
    np.testing.assert_allclose(found, one, atol=1e-6)
    none = np.zeros(0, np.int64)
    assert attend(one[:0], *pools, Batch(none, np.array([0]), [])).shape == (0, 4, 6)


@pytest.mark.parametrize("num_kv_heads", [2, 3])
def test_query_heads_must_be_a_multiple_of_kv_heads(num_kv_heads):
    queries, keys = np.ones((1, 7, 2)), np.ones((1, num_kv_heads, 2))
    with pytest.raises(ValueError, match=f"7 query heads are no multiple of {num_kv_heads} kv"):
        dense_attention(queries, keys, keys, [0])


@quick
@given(st.sampled_from(HEADS), st.integers(1, 4), st.data())
def test_parts_merge_in_any_order_to_the_whole(heads, num_parts, data):
    num_heads, num_kv_heads = heads
    length = data.draw(st.integers(1, 20))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    queries = random.normal(size=(3, num_heads, 4)).astype(np.float32)
    keys, values = random.normal(size=(2, length, num_kv_heads, 4)).astype(np.float32)
    positions = random.integers(0, length, 3)
    # Any division of the keys, not only into runs; some parts may be empty.
    owner = random.integers(0, num_parts, length)
    parts = []
    for part in range(num_parts):
        at = np.flatnonzero(owner == part)
        parts.append(partial_attention(queries, keys[at], values[at], positions, at))
    whole = partial_attention(queries, keys, values, positions, np.arange(length))
    for order in permutations(parts):
        merged = order[0]
        for part in order[1:]:
            merged = merge_partials(merged, part)
        np.testing.assert_allclose(merged.output, whole.output, rtol=0, atol=1e-5)
        np.testing.assert_allclose(merged.log_sum, whole.log_sum, rtol=0, atol=1e-5)


def test_merging_does_not_depend_on_the_grouping():
    random = np.random.default_rng(3)
    one, two, three = (
        Partial(random.normal(size=(2, 3, 4)), random.normal(size=(2, 3))) for _ in range(3)
    )
    left = merge_partials(merge_partials(one, two), three)
    right = merge_partials(one, merge_partials(two, three))
    np.testing.assert_allclose(left.output, right.output, atol=1e-12)
    np.testing.assert_allclose(left.log_sum, right.log_sum, atol=1e-12)


def test_log_sum_is_the_logarithm_of_the_sum_of_exponentials():
    queries = np.ones((1, 1, 4), np.float64)
    keys = np.array([1.0, 2.0, 3.0])[:, None, None] * np.full((3, 1, 4), 0.5)
    found = partial_attention(queries, keys, keys, np.array([2]), np.arange(3))
    assert found.log_sum[0, 0] == pytest.approx(np.log(np.exp([1.0, 2.0, 3.0]).sum()))


def test_only_the_rows_that_see_nothing_are_empty():
    random = np.random.default_rng(4)
    queries = random.normal(size=(3, 4, 6)).astype(np.float32)
    keys, values = random.normal(size=(2, 4, 2, 6)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = partial_attention(queries, keys, values, np.array([3, 9, 4]), np.arange(4, 8))
    assert (found.output[0] == 0).all() and np.isneginf(found.log_sum[0]).all()
    assert np.isfinite(found.output).all() and np.isfinite(found.log_sum[1:]).all()
    np.testing.assert_allclose(found.output[2], np.repeat(values[0], 2, axis=0), atol=1e-6)


def test_inputs_are_left_as_they_are():
    random = np.random.default_rng(5)
    queries = random.normal(size=(2, 4, 6)).astype(np.float32)
    pools = random.normal(size=(2, 2, 4, 2, 6)).astype(np.float32)
    kept = queries.copy(), pools.copy()
    for attend in PAGED:
        attend(queries, *pools, Batch(np.array([1, 5]), np.array([0, 2]), [np.array([1, 0])]))
    assert (queries == kept[0]).all() and (pools == kept[1]).all()
