"""Solutions of chapter 2, and correct answers in other styles. Shown by `solution`."""

# Each answer is read alone, in a notebook: short, without annotations, as the stub is.

from collections import Counter

import numpy as np

from paged_tutorial import BlockPool, OutOfBlocksError


def unused_slots(num_tokens, block_size):
    """Slots that stay empty in the last block of a text."""
    return -num_tokens % block_size


def unused_slots_by_blocks(num_tokens, block_size):
    """Count the blocks, rounding up, and subtract."""
    blocks, rest = divmod(num_tokens, block_size)
    if rest > 0:
        blocks += 1
    return np.int64(blocks * block_size - num_tokens)


class MyPool:
    """Which block is free, and how many requests hold each of the others."""

    def __init__(self, num_blocks, block_size=16):
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.free = list(range(num_blocks))
        self.reference_counts = [0] * num_blocks

    @property
    def num_free(self):
        return len(self.free)

    def allocate(self):
        if not self.free:
            raise OutOfBlocksError(needed=1, free=0)
        block = self.free.pop(0)
        self.reference_counts[block] = 1
        return block

    def share(self, block):
        self._require_held(block)
        self.reference_counts[block] += 1

    def release(self, block):
        self._require_held(block)
        self.reference_counts[block] -= 1
        if self.reference_counts[block] == 0:
            self.free.append(block)

    def _require_held(self, block):
        if block not in range(self.num_blocks) or self.reference_counts[block] == 0:
            raise ValueError(f"nobody holds block {block}")


class PoolOfSets:
    """No free list: free is whatever has no holders."""

    def __init__(self, num_blocks, block_size=16):
        self.num_blocks, self.block_size = num_blocks, block_size
        self.reference_counts = Counter()

    @property
    def num_free(self):
        return self.num_blocks - sum(count > 0 for count in self.reference_counts.values())

    def allocate(self):
        for block in reversed(range(self.num_blocks)):
            if self.reference_counts[block] == 0:
                self.reference_counts[block] += 1
                return block
        raise OutOfBlocksError(1, 0)

    def share(self, block_id):
        if self.reference_counts[block_id] < 1:
            raise ValueError(f"block {block_id} is free")
        self.reference_counts.update([block_id])

    def release(self, block_id):
        if self.reference_counts[block_id] < 1:
            raise ValueError(f"double release of block {block_id}")
        self.reference_counts.subtract([block_id])


def take(pool, num_blocks):
    """Several blocks at once, all or nothing."""
    if num_blocks > pool.num_free:
        raise OutOfBlocksError(needed=num_blocks, free=pool.num_free)
    return [pool.allocate() for _ in range(num_blocks)]


def take_and_undo(pool, num_blocks):
    """Try, and give everything back if it fails."""
    blocks = []
    try:
        while len(blocks) < num_blocks:
            blocks.append(pool.allocate())
    except OutOfBlocksError:
        while blocks:
            pool.release(blocks.pop())
        raise
    return tuple(blocks)


class PoolForTheModel(MyPool):
    """A free block can be brought back, its content intact."""

    def share(self, block):
        if block not in range(self.num_blocks):
            raise ValueError(f"there is no block {block}")
        if self.reference_counts[block] == 0:
            self.free.remove(block)
        self.reference_counts[block] += 1


class PoolOfThePackage(BlockPool):
    """The package's pool keeps the same rules."""


class PoolOfItsOwn:
    """Inherits nothing, and is always told its block size."""

    def __init__(self, num_blocks, block_size):
        self.num_blocks, self.block_size = num_blocks, block_size
        self.reference_counts = np.zeros(num_blocks, int)

    @property
    def num_free(self):
        return np.count_nonzero(self.reference_counts == 0)

    def allocate(self):
        if not self.num_free:
            raise OutOfBlocksError(1, self.num_free)
        block = self.reference_counts.argmin()
        self.reference_counts[block] = 1
        return block

    def share(self, block):
        if not 0 <= block < self.num_blocks:
            raise ValueError(f"{block} is no block")
        self.reference_counts[block] += 1

    def release(self, block):
        self.share(block)  # refuses what is no block
        self.reference_counts[block] -= 2
        if self.reference_counts[block] < 0:
            self.reference_counts[block] = 0
            raise ValueError(f"nobody holds block {block}")
