"""What exercises of chapter 3 share."""

from __future__ import annotations

SLOT = "The slot is block id × block size + offset; the table has the block id."


def true_slot(block_ids, position: int, block_size: int) -> int:
    """The slot, by counting: one row of slots after the other."""
    block = block_ids[position // block_size]
    return block * block_size + position % block_size
