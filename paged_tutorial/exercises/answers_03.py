"""Solutions of chapter 3, and correct answers in other styles. Shown by `solution`."""

# Each answer is read alone, in a notebook: short, without annotations, as the stub is.

import numpy as np

from paged_tutorial import PageTable, blocks_needed


def slot_of(block_ids, position, block_size):
    """The slot of one position."""
    logical, offset = divmod(position, block_size)
    return block_ids[logical] * block_size + offset


def slot_of_walking(block_ids, position, block_size):
    """Write down the slots of all blocks in order, and take the right one."""
    slots = []
    for block in block_ids:
        slots.extend(range(block * block_size, (block + 1) * block_size))
    return np.int64(slots[position])


def slots_of_batch(page_tables, query_start, positions, block_size):
    """The slots of all tokens of a batch."""
    counts = query_start[1:] - query_start[:-1]
    requests = np.repeat(np.arange(len(page_tables)), counts)
    blocks = page_tables[requests, positions // block_size]
    return blocks * block_size + positions % block_size


def slots_of_batch_by_search(page_tables, query_start, positions, block_size):
    """The owner of a row is the last request that starts at it or before it."""
    rows = np.arange(len(positions))
    owners = np.searchsorted(query_start, rows, side="right") - 1
    logical, offset = np.divmod(positions, block_size)
    entries = owners * page_tables.shape[1] + logical
    return page_tables.ravel().take(entries) * block_size + offset


def grow(table, num_tokens, allocate):
    """Take blocks until the table has room for `num_tokens` tokens."""
    while len(table) * table.block_size < num_tokens:
        table.append(allocate())


def grow_by_counting(table, num_tokens, allocate):
    """Count first how many are missing; a range below zero is empty."""
    for _ in range(len(table), blocks_needed(num_tokens, table.block_size)):
        table.block_ids += [allocate()]


class MyPageTable:
    """The physical blocks of one text, in the order of its tokens."""

    def __init__(self, block_size):
        self.block_size = block_size
        self.block_ids = []

    def reserve(self, num_tokens, allocate):
        while len(self.block_ids) * self.block_size < num_tokens:
            self.block_ids.append(allocate())

    def slot_mapping(self, positions):
        positions = np.asarray(positions, dtype=np.int64)
        room = len(self.block_ids) * self.block_size
        for position in positions[(positions < 0) | (positions >= room)]:
            raise ValueError(f"position {position} is outside 0 to {room - 1}")
        logical, offset = np.divmod(positions, self.block_size)
        return np.array(self.block_ids, dtype=np.int64)[logical] * self.block_size + offset


class TableOfThePackage(PageTable):
    """The package's table keeps the same rules."""

    def reserve(self, num_tokens, allocate):
        grow(self, num_tokens, allocate)
