"""Scaled dot-product attention: dense, paged by gathering, paged block by block.

In English: a query scores every key at its own position or earlier, divides by the square
root of head_dim, turns the scores into weights that sum to one, and returns the weighted
mean of the values. Paging changes where keys and values are read, never the result.

The two paged functions take one layer of the pool and a Batch: the queries of many
requests in one flat array, each with its own position. Query head h reads kv head
h // (num_heads // num_kv_heads). Inputs may be float16, float32 or float64; sums are kept
in float32 at least. Slots beyond the last query of a request may hold anything, NaN
included: their scores are masked and their values replaced, since 0 x NaN is NaN.

The online softmax and the merging of partial results follow Milakov & Gimelshein,
"Online normalizer calculation for softmax" (2018), and Dao et al., FlashAttention (2022);
paged attention is Kwon et al., SOSP 2023, section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .page_table import stack_tables

PIECE = 64  # queries of one request that are computed at once


@dataclass(frozen=True)
class Batch:
    """A ragged batch: the queries of all requests of a step, one request after the other.

    positions: (num_tokens,) int64, the position of each query in its request
    query_start: (num_requests + 1,) int64; request i owns queries start[i]:start[i + 1]
    page_tables: one int64 array of physical block ids per request
    """

    positions: np.ndarray
    query_start: np.ndarray
    page_tables: Sequence[np.ndarray]

    def requests(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """(rows of the flat batch, their positions, page table) of each request with queries."""
        for index, table in enumerate(self.page_tables):
            rows = slice(int(self.query_start[index]), int(self.query_start[index + 1]))
            if rows.stop > rows.start:
                yield rows, self.positions[rows], table

    @cached_property
    def tables_and_owners(self) -> tuple[np.ndarray, np.ndarray]:
        """All page tables as one array, padded with block 0, and the row of it of each query."""
        counts = np.diff(self.query_start)
        # Padding lies beyond the last query and is masked: any block that exists will do.
        tables = np.maximum(stack_tables(self.page_tables), 0)
        return tables, np.repeat(np.arange(len(counts)), counts)

    @cached_property
    def stacks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows of the flat batch and page tables, of requests that can be computed at once.

        Requests with one query, as in decoding, come together: rows (requests, 1), tables
        (requests, blocks), shorter ones padded with block 0. The others come one by one, their
        queries in pieces: early queries need few keys, and the scores of a piece stay small.
        """
        counts = np.diff(self.query_start)
        groups = [np.flatnonzero(counts == 1), *np.flatnonzero(counts > 1)[:, None]]
        tables, _ = self.tables_and_owners
        stacks = []
        for members in groups:
            if len(members):
                rows = self.query_start[members][:, None] + np.arange(counts[members[0]])
                own, pieces = tables[members], range(0, rows.shape[1], PIECE)
                stacks += [(rows[:, start : start + PIECE], own) for start in pieces]
        return stacks


@dataclass(frozen=True)
class Partial:
    """Attention over some of the keys, in a form that can be merged with the rest.

    output: (num_tokens, num_heads, head_dim), normalised over the keys seen so far
    log_sum: (num_tokens, num_heads), log of the sum of exp(score); -inf where none was seen
    """

    output: np.ndarray
    log_sum: np.ndarray


def partial_attention(queries, keys, values, query_positions, key_positions) -> Partial:
    """Attention of queries (T, H, D) over keys and values (S, K, D) at or before them.

    query_positions: (T,), key_positions: (S,), integers. All arrays but key_positions may
    have the same leading axes, for several requests at once. Keys after the last query may
    be NaN. A query that sees no key gets zeros and log_sum -inf. Raises ValueError if the
    number of query heads is no multiple of the number of kv heads.
    """
    dtype = np.result_type(queries.dtype, keys.dtype, values.dtype, np.float32)
    *lead, num_tokens, num_heads, head_dim = queries.shape
    num_keys, num_kv_heads = keys.shape[-3:-1]
    group, rest = divmod(num_heads, num_kv_heads)
    if rest:
        raise ValueError(f"{num_heads} query heads are no multiple of {num_kv_heads} kv heads")
    if not num_keys or not num_tokens:
        nothing = np.full(queries.shape[:-1], -np.inf, dtype)
        return Partial(np.zeros(queries.shape, dtype), nothing)
    visible = key_positions <= query_positions[..., None]

    # One matrix product per kv head: its group of query heads, all tokens, as rows.
    rows = queries.astype(dtype) / np.sqrt(dtype.type(head_dim))
    rows = rows.reshape(*lead, num_tokens, num_kv_heads, group, head_dim).swapaxes(-4, -3)
    rows = rows.reshape(*lead, num_kv_heads, num_tokens * group, head_dim)
    keys = np.moveaxis(keys.astype(dtype, copy=False), -3, -1)
    values = values.astype(dtype, copy=False).swapaxes(-3, -2)
    unused = ~visible.any(axis=-2)
    if unused.any():
        # 0 x NaN is NaN: a weight of zero does not silence a slot that was never written.
        values = np.where(unused[..., None, :, None], 0, values)
    with np.errstate(invalid="ignore", over="ignore"):  # unused slots may hold anything
        scores = (rows @ keys).reshape(*lead, num_kv_heads, num_tokens, group, num_keys)
    if not visible.all():
        np.copyto(scores, -np.inf, where=~visible[..., None, :, None, :])
    highest = scores.max(axis=-1, keepdims=True)
    # A row that sees nothing has the maximum -inf, and -inf - -inf is NaN: shift it by 0.
    highest = np.where(highest == -np.inf, 0, highest)
    scores -= highest
    weights = np.exp(scores, out=scores)
    total = weights.sum(axis=-1, keepdims=True)
    output = weights.reshape(*lead, num_kv_heads, num_tokens * group, num_keys) @ values
    output = output.reshape(*lead, num_kv_heads, num_tokens, group, head_dim)
    output /= np.where(total == 0, 1, total)
    with np.errstate(divide="ignore"):
        log_sum = np.log(total) + highest
    return Partial(
        output.swapaxes(-4, -3).reshape(queries.shape),
        log_sum[..., 0].swapaxes(-3, -2).reshape(queries.shape[:-1]),
    )


def merge_partials(first: Partial, second: Partial) -> Partial:
    """Attention over the keys of both, which must be disjoint. Order does not matter."""
    log_sum = np.logaddexp(first.log_sum, second.log_sum)
    shift = np.where(np.isneginf(log_sum), 0, log_sum)
    first_share = np.exp(first.log_sum - shift)[..., None]
    second_share = np.exp(second.log_sum - shift)[..., None]
    return Partial(first_share * first.output + second_share * second.output, log_sum)


def dense_attention(queries, keys, values, query_positions, key_positions=None) -> np.ndarray:
    """Reference: queries (T, H, D) over all keys and values (S, K, D) of one request.

    key_positions defaults to 0..S-1. Leading axes as in `partial_attention`. Returns an
    array like the queries.
    """
    if key_positions is None:
        key_positions = np.arange(keys.shape[-3])
    found = partial_attention(queries, keys, values, np.asarray(query_positions), key_positions)
    return found.output.astype(queries.dtype, copy=False)


def paged_attention_gather(queries, key_blocks, value_blocks, batch: Batch) -> np.ndarray:
    """Paged attention by copying each request's blocks into one run, then dense attention.

    queries: (num_tokens, num_heads, head_dim)
    key_blocks, value_blocks: (num_blocks, block_size, num_kv_heads, head_dim), one layer
    Requests with one query each, as in decoding, are padded to equal length and computed at
    once. Returns an array like the queries.
    """
    block_size, num_kv_heads, head_dim = key_blocks.shape[1:]
    output = np.empty_like(queries)
    for rows, tables in batch.stacks:
        positions = batch.positions[rows]
        tables = tables[:, : positions.max() // block_size + 1]
        shape = (len(tables), tables.shape[1] * block_size, num_kv_heads, head_dim)
        keys, values = key_blocks[tables].reshape(shape), value_blocks[tables].reshape(shape)
        output[rows] = dense_attention(queries[rows], keys, values, positions)
    return output


def paged_attention_blocks(queries, key_blocks, value_blocks, batch: Batch) -> np.ndarray:
    """Paged attention that reads one block at a time, in place, and merges as it goes.

    Shapes as in `paged_attention_gather`. The blocks of a request may come in any order.
    """
    block_size = key_blocks.shape[1]
    output = np.empty_like(queries)
    for rows, positions, table in batch.requests():
        last = int(positions.max())
        request_queries = queries[rows]
        nothing = slice(0, 0)
        so_far = partial_attention(
            request_queries,
            key_blocks[0, nothing],
            value_blocks[0, nothing],
            positions,
            np.arange(0),
        )
        for logical in range(last // block_size + 1):
            block_id = table[logical]
            key_positions = np.arange(logical * block_size, (logical + 1) * block_size)
            part = partial_attention(
                request_queries,
                key_blocks[block_id],
                value_blocks[block_id],
                positions,
                key_positions,
            )
            so_far = merge_partials(so_far, part)
        output[rows] = so_far.output
    return output
