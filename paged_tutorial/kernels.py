"""Kernels: the two loops on which decoding spends its time, compiled by Numba.

In English. Decoding reads every weight once a step and every key and value once, and does
little with each. So what counts is that memory is read in place, in order, once, by all cores.

- `linear`, for few tokens: a tile of four rows of the weight meets four tokens at a time. Its
  sixteen sums stay in registers, so that a weight is read once for four tokens.
- `paged_attention`, for few queries: walks the page table and reads keys and values where
  they lie, where gathering copies them first.

Both hand larger steps to NumPy: from some size on, BLAS is faster. A step is run by one of
the two alone, since the idle threads of BLAS spin and would take a core from the kernels. A
sum may be taken in any order, so that the compiler can use wide registers; NaN and infinity
keep their meaning.

The register tile is that of Goto & van de Geijn, "Anatomy of high-performance matrix
multiplication" (2008); the in-place attention that of Kwon et al., SOSP 2023, section 4.1
(csrc/cpu/attention.cpp of older vLLM), with one pass for the scores and one for the values.
"""

from __future__ import annotations

import os

import numpy as np
from numba import njit, prange

from .attention import Batch, paged_attention_gather
from .model import linear as numpy_linear

# GNU OpenMP reads this when the first kernel starts. A thread that is done waits for the other
# by turning in circles, by default so long that on a busy machine the other gets no core.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

FEW = 32  # tokens up to which the kernels are faster than BLAS, measured on two cores
TILE = 4  # rows of the weight and tokens that meet in registers

compiled = njit(parallel=True, cache=True, fastmath={"reassoc", "contract", "arcp", "nsz"})


def linear(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x (num_tokens, inputs) times weight (outputs, inputs), giving (num_tokens, outputs).

    The sums of a token do not depend on the other tokens of the batch, from 2 to 32 tokens.
    """
    num_tokens, num_outputs = len(x), len(weight)
    if num_tokens > FEW or num_outputs < TILE:
        return numpy_linear(x, weight)
    if num_tokens == 1:
        output = np.empty((1, num_outputs), x.dtype)
        _one_row(weight, x[0], output[0])
        return output
    rows = -(-num_tokens // TILE) * TILE
    padded = np.zeros((rows, x.shape[1]), x.dtype)
    padded[:num_tokens] = x
    output = np.empty((rows, num_outputs), x.dtype)
    _tiles(weight, padded, output)
    return output[:num_tokens]


@compiled
def _one_row(weight, x, output):
    for row in prange(len(weight)):
        total = np.float32(0)
        for i in range(len(x)):
            total += weight[row, i] * x[i]
        output[row] = total


@compiled
def _tiles(weight, x, output):
    num_outputs, num_inputs = weight.shape
    for tile in prange((num_outputs + 3) // 4):
        row = min(4 * tile, num_outputs - 4)  # the last tile may repeat some rows
        for token in range(0, len(x), 4):
            s00 = s01 = s02 = s03 = np.float32(0)
            s10 = s11 = s12 = s13 = np.float32(0)
            s20 = s21 = s22 = s23 = np.float32(0)
            s30 = s31 = s32 = s33 = np.float32(0)
            for i in range(num_inputs):
                w0, w1 = weight[row, i], weight[row + 1, i]
                w2, w3 = weight[row + 2, i], weight[row + 3, i]
                x0, x1, x2, x3 = x[token, i], x[token + 1, i], x[token + 2, i], x[token + 3, i]
                s00 += w0 * x0
                s10 += w1 * x0
                s20 += w2 * x0
                s30 += w3 * x0
                s01 += w0 * x1
                s11 += w1 * x1
                s21 += w2 * x1
                s31 += w3 * x1
                s02 += w0 * x2
                s12 += w1 * x2
                s22 += w2 * x2
                s32 += w3 * x2
                s03 += w0 * x3
                s13 += w1 * x3
                s23 += w2 * x3
                s33 += w3 * x3
            output[token, row] = s00
            output[token, row + 1] = s10
            output[token, row + 2] = s20
            output[token, row + 3] = s30
            output[token + 1, row] = s01
            output[token + 1, row + 1] = s11
            output[token + 1, row + 2] = s21
            output[token + 1, row + 3] = s31
            output[token + 2, row] = s02
            output[token + 2, row + 1] = s12
            output[token + 2, row + 2] = s22
            output[token + 2, row + 3] = s32
            output[token + 3, row] = s03
            output[token + 3, row + 1] = s13
            output[token + 3, row + 2] = s23
            output[token + 3, row + 3] = s33


def paged_attention(queries, key_blocks, value_blocks, batch: Batch) -> np.ndarray:
    """Paged attention that reads pages in place, for steps of few queries, as in decoding.

    Shapes as in `paged_attention_gather`, to which larger steps go, other dtypes, and errors.
    """
    single = queries.dtype == key_blocks.dtype == value_blocks.dtype == np.float32
    if not single or len(queries) > FEW or queries.shape[1] % key_blocks.shape[2]:
        return paged_attention_gather(queries, key_blocks, value_blocks, batch)
    output = np.empty_like(queries)
    tables, owners = batch.tables_and_owners
    _attend(queries, key_blocks, value_blocks, tables, owners, batch.positions, output)
    return output


@compiled
def _attend(queries, key_blocks, value_blocks, tables, owners, positions, output):
    num_tokens, num_heads, head_dim = queries.shape
    block_size, num_kv_heads = key_blocks.shape[1:3]
    group = num_heads // num_kv_heads
    scale = np.float32(1 / np.sqrt(head_dim))
    for item in prange(num_tokens * num_kv_heads):
        token, kv_head = item // num_kv_heads, item % num_kv_heads
        first_head, length = kv_head * group, positions[token] + 1
        scores = np.empty((group, length), np.float32)
        highest = np.full(group, -np.inf, np.float32)
        total = np.zeros(group, np.float32)
        mixed = np.zeros((group, head_dim), np.float32)
        for start in range(0, length, block_size):
            block = tables[owners[token], start // block_size]
            for offset in range(min(block_size, length - start)):
                for member in range(group):
                    head, score = first_head + member, np.float32(0)
                    for i in range(head_dim):
                        score += queries[token, head, i] * key_blocks[block, offset, kv_head, i]
                    scores[member, start + offset] = score * scale
                    highest[member] = max(highest[member], score * scale)
        for start in range(0, length, block_size):
            block = tables[owners[token], start // block_size]
            for offset in range(min(block_size, length - start)):
                for member in range(group):
                    weight = np.exp(scores[member, start + offset] - highest[member])
                    total[member] += weight
                    for i in range(head_dim):
                        mixed[member, i] += weight * value_blocks[block, offset, kv_head, i]
        for member in range(group):
            for i in range(head_dim):
                output[token, first_head + member, i] = mixed[member, i] / total[member]
