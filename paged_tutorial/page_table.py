"""The page table of one request: logical block number to physical block id.

In English: position p of a request lies in logical block p // block_size, at offset
p % block_size. The table says which physical block that is. In the pool, seen as one long
row of slots, the position's slot is block id * block_size + offset.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .checks import check_integer


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
