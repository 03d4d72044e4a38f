"""The page table of one request: logical block number to physical block id.

In English: position p of a request lies in logical block p // block_size, at offset
p % block_size. The table says which physical block that is. In the pool, seen as one long
row of slots, the position's slot is block id * block_size + offset.

A step of the model takes tokens of many requests at once. They come in flat arrays, one
request after the other (a ragged batch), with the tables stacked into one array, a row for
each request. Then all slots are found together: every token looks into the row of its own
request. Short rows are padded with NO_BLOCK, so that a position beyond its table is refused
and never becomes a slot of somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .checks import check_integer

NO_BLOCK = -1  # fills up short rows of stacked tables


def blocks_needed(num_tokens: int, block_size: int) -> int:
    """The number of blocks that hold `num_tokens` tokens: the quotient, rounded up."""
    return -(-num_tokens // block_size)


class PageTable:
    """The physical blocks of one request, in the order of its tokens."""

    def __init__(self, block_size: int, block_ids: Iterable[int] = ()) -> None:
        self.block_size = check_integer("block_size", block_size, 1)
        self.block_ids = list(block_ids)

    def __len__(self) -> int:
        return len(self.block_ids)

    def __getitem__(self, logical: int) -> int:
        return self.block_ids[logical]

    def append(self, block_id: int) -> None:
        """Add a block at the end."""
        self.block_ids.append(block_id)

    def replace(self, logical: int, block_id: int) -> None:
        """Point a logical block at another physical block, as copy-on-write does."""
        self.block_ids[logical] = block_id

    def locate(self, position: int) -> tuple[int, int, int]:
        """(logical block, physical block, offset) of a position.

        Raises TypeError or ValueError for a position that the table does not cover.
        """
        position = check_integer("position", position, 0, len(self) * self.block_size - 1)
        logical, offset = divmod(position, self.block_size)
        return logical, self.block_ids[logical], offset

    def slot(self, position: int) -> int:
        """The slot of one position in the pool seen as one long row of slots."""
        _, block_id, offset = self.locate(position)
        return block_id * self.block_size + offset

    def slot_mapping(self, positions) -> np.ndarray:
        """The slots of many positions, (num_positions,) int64.

        Raises ValueError if a position is negative or beyond the table.
        """
        positions = np.asarray(positions, np.int64)
        limit = len(self) * self.block_size
        if positions.size and not 0 <= positions.min() <= positions.max() < limit:
            raise ValueError(
                f"positions {positions.min()} to {positions.max()} are outside "
                f"the table's 0 to {limit - 1}"
            )
        logical, offset = np.divmod(positions, self.block_size)
        return np.asarray(self.block_ids, np.int64)[logical] * self.block_size + offset


class RaggedBatch(NamedTuple):
    """The tokens of one step, one request after the other. All arrays are int64.

    positions: (num_tokens,), of each token in its own request
    slot_mapping: (num_tokens,), where the keys and values of each token go
    query_start: (num_requests + 1,); request i owns tokens query_start[i]:query_start[i + 1]
    sequence_lengths: (num_requests,), highest position + 1: as far as the last query reads
    page_tables: (num_requests, longest), padded with NO_BLOCK
    """

    positions: np.ndarray
    slot_mapping: np.ndarray
    query_start: np.ndarray
    sequence_lengths: np.ndarray
    page_tables: np.ndarray


def stack_tables(tables: Sequence[Sequence[int]]) -> np.ndarray:
    """Tables as rows of one array (num_tables, longest) int64, padded with NO_BLOCK."""
    stacked = np.full((len(tables), max(map(len, tables), default=0)), NO_BLOCK, np.int64)
    for row, table in zip(stacked, tables, strict=True):
        row[: len(table)] = table
    return stacked


def ragged_slot_mapping(page_tables, query_start, positions, block_size: int) -> np.ndarray:
    """The slot of every token of a ragged batch, (num_tokens,) int64, without a loop.

    page_tables: (num_requests, longest) int64; query_start and positions as in RaggedBatch
    Raises ValueError if a position is negative or beyond the table of its request, or if
    query_start does not share out all tokens among the requests.
    """
    counts, ends = np.diff(query_start), (query_start[0], query_start[-1])
    if len(counts) != len(page_tables) or ends != (0, len(positions)) or (counts < 0).any():
        raise ValueError(
            f"query_start {np.asarray(query_start).tolist()} does not share out "
            f"{len(positions)} tokens among {len(page_tables)} requests"
        )
    requests = np.repeat(np.arange(len(page_tables)), counts)
    logical, offset = np.divmod(np.asarray(positions, np.int64), block_size)
    # A column of NO_BLOCK at the end stands for all that is outside the array.
    outside = page_tables.shape[1]
    logical[(logical < 0) | (logical > outside)] = outside
    fenced = np.pad(page_tables, ((0, 0), (0, 1)), constant_values=NO_BLOCK)
    block_ids = fenced[requests, logical]
    if (block_ids == NO_BLOCK).any():
        row = int(np.argmax(block_ids == NO_BLOCK))
        raise ValueError(
            f"position {positions[row]} is outside the page table of request {requests[row]}"
        )
    return block_ids * block_size + offset


def ragged_batch(plan: Sequence[tuple[PageTable, Sequence[int]]]) -> RaggedBatch:
    """The arrays of a step from (page table, positions to compute) for each request.

    Raises ValueError for tables of different block sizes or a position beyond its table.
    """
    sizes = {table.block_size for table, _ in plan}
    if len(sizes) > 1:
        raise ValueError(f"tables of one batch need one block size, got {sorted(sizes)}")
    chosen = [np.asarray(positions, np.int64) for _, positions in plan]
    positions = np.concatenate([np.zeros(0, np.int64), *chosen])
    query_start = np.cumsum([0, *map(len, chosen)], dtype=np.int64)
    lengths = np.array([part.max(initial=-1) + 1 for part in chosen], np.int64)
    tables = stack_tables([table.block_ids for table, _ in plan])
    slots = ragged_slot_mapping(tables, query_start, positions, *(sizes or {1}))
    return RaggedBatch(positions, slots, query_start, lengths, tables)
