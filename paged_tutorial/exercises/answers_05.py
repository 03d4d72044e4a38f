"""Solutions of chapter 5, and correct answers in other styles. Shown by `solution`."""

# Each answer is read alone, in a notebook: short, without annotations, as the stub is.

import numpy as np

from paged_tutorial import blocks_needed, merge_partials, partial_attention


def merge(first, second):
    """The state of the tokens of both."""
    highest = max(first[0], second[0])
    if highest == -np.inf:
        return first
    share, other = np.exp(first[0] - highest), np.exp(second[0] - highest)
    total = share * first[1] + other * second[1]
    output = share * first[2] + other * second[2]
    return highest, total, output


def merge_into_the_higher(first, second):
    """Rescale only the one with the lower maximum."""
    if first[0] < second[0]:
        first, second = second, first
    highest, total, output = first
    if second[1] == 0:
        return first
    shrink = np.exp(second[0] - highest)
    return [highest, total + shrink * second[1], output + shrink * second[2]]


def attend(query, key_blocks, value_blocks, table, position):
    """Attention of one query over the blocks of its text. (head_dim,)"""
    block_size, head_dim = key_blocks.shape[1:]
    highest, total, output = -np.inf, 0.0, np.zeros(head_dim)
    for logical in range(blocks_needed(position + 1, block_size)):
        block = table[logical]
        seen = logical * block_size + np.arange(block_size) <= position
        scores = key_blocks[block] @ query / np.sqrt(head_dim)
        scores = np.where(seen, scores, -np.inf)
        values = np.where(seen[:, None], value_blocks[block], 0)
        new_highest = max(highest, scores.max())
        shrink = np.exp(highest - new_highest)
        weights = np.exp(scores - new_highest)
        total = total * shrink + weights.sum()
        output = output * shrink + weights @ values
        highest = new_highest
    return output / total


def attend_by_gathering(query, key_blocks, value_blocks, table, position):
    """Copy the blocks into one run, cut it after the position, then attend."""
    block_size, head_dim = key_blocks.shape[1:]
    blocks = list(table)[: position // block_size + 1]
    keys = key_blocks[blocks].reshape(-1, head_dim)[: position + 1]
    values = value_blocks[blocks].reshape(-1, head_dim)[: position + 1]
    scores = keys @ query / head_dim**0.5
    weights = np.exp(scores - scores.max())
    return weights @ values / weights.sum()


def window_attention(queries, keys, values, window):
    """Each row attends to itself and the window - 1 rows before it."""
    rows = np.arange(len(queries))
    back = rows[:, None] - rows
    seen = (back >= 0) & (back < window)
    scores = queries @ keys.T / np.sqrt(queries.shape[1])
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ values


def window_attention_by_row(queries, keys, values, window):
    """One row after the other, over a slice of the keys."""
    output = []
    for row, query in enumerate(queries):
        seen = slice(max(0, row - window + 1), row + 1)
        scores = keys[seen] @ query / len(query) ** 0.5
        weights = np.exp(scores - scores.max())
        output.append(weights @ values[seen] / weights.sum())
    return output


def my_paged_attention(queries, key_blocks, value_blocks, batch):
    """Every query of every request over the blocks of its own page table."""
    block_size, num_kv_heads, head_dim = key_blocks.shape[1:]
    group = queries.shape[1] // num_kv_heads
    output = np.zeros(queries.shape, np.float32)
    for rows, positions, table in batch.requests():
        for row, position in zip(range(rows.start, rows.stop), positions, strict=True):
            blocks = table[: position // block_size + 1]
            keys = key_blocks[blocks].reshape(-1, num_kv_heads, head_dim)[: position + 1]
            values = value_blocks[blocks].reshape(-1, num_kv_heads, head_dim)[: position + 1]
            for head, query in enumerate(queries[row]):
                scores = keys[:, head // group] @ query / np.sqrt(head_dim)
                weights = np.exp(scores - scores.max())
                output[row, head] = weights @ values[:, head // group] / weights.sum()
    return output


def paged_attention_by_merging(queries, key_blocks, value_blocks, batch):
    """All queries of a request at once, the parts merged from the last block to the first."""
    block_size = key_blocks.shape[1]
    output = np.empty_like(queries)
    for rows, positions, table in batch.requests():
        so_far = None
        for logical in reversed(range(positions.max() // block_size + 1)):
            block = table[logical]
            at = logical * block_size + np.arange(block_size)
            keys, values = key_blocks[block], value_blocks[block]
            part = partial_attention(queries[rows], keys, values, positions, at)
            so_far = part if so_far is None else merge_partials(so_far, part)
        output[rows] = so_far.output
    return output
