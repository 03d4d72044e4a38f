"""The block pool: the keys and values of all layers in two arrays, cut into equal blocks.

In English: every block is either free, and then it waits in the free queue, or it is used
by one or more requests, and its reference count says by how many. Allocate takes the block
at the front of the queue and sets its count to 1. Share adds one holder; if the block was
waiting in the queue with its content intact, sharing takes it out again. Release removes
one holder; the last one to leave puts the block back into the queue.
"""

from __future__ import annotations

import numpy as np

from .checks import check_integer
from .lru import LRUManager
from .trace import Event, Observer


class OutOfBlocksError(RuntimeError):
    """Fewer blocks are free than are needed. `needed` and `free` say how many."""

    def __init__(self, needed: int, free: int) -> None:
        super().__init__(f"out of blocks: {needed} needed, {free} free")
        self.needed = needed
        self.free = free


class BlockPool:
    """Memory for `num_blocks` blocks of `block_size` token slots each.

    keys, values: arrays (num_layers, num_blocks, block_size, num_kv_heads, head_dim)
    reference_counts: for each block, the number of page tables that hold it
    queue: the free queue; any object with put, remove, pop and len, such as LRUManager

    Raises TypeError or ValueError for a size that is not a positive integer.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int = 16,
        *,
        num_layers: int = 1,
        num_kv_heads: int = 1,
        head_dim: int = 1,
        dtype=np.float32,
        queue=None,
        observer: Observer | None = None,
    ) -> None:
        self.num_blocks = check_integer("num_blocks", num_blocks, 1)
        self.block_size = check_integer("block_size", block_size, 1)
        shape = (
            check_integer("num_layers", num_layers, 1),
            self.num_blocks,
            self.block_size,
            check_integer("num_kv_heads", num_kv_heads, 1),
            check_integer("head_dim", head_dim, 1),
        )
        self.keys = np.zeros(shape, dtype)
        self.values = np.zeros(shape, dtype)
        self.reference_counts = [0] * self.num_blocks
        self.queue = LRUManager() if queue is None else queue
        for block_id in range(self.num_blocks):
            self.queue.put(block_id, cached=True)
        self.observer = observer

    @property
    def num_free(self) -> int:
        """Blocks that no request uses, those with content that can still be hit included."""
        return len(self.queue)

    def allocate(self) -> int:
        """Hand out the next free block with reference count 1. Raises OutOfBlocksError."""
        if not len(self.queue):
            raise OutOfBlocksError(needed=1, free=0)
        block_id = self.queue.pop()
        self.reference_counts[block_id] = 1
        return block_id

    def share(self, block_id: int) -> None:
        """Add a holder. A free block leaves the queue, its content as it was.

        Raises TypeError or ValueError if there is no such block.
        """
        block_id = self._check(block_id)
        if self.reference_counts[block_id] == 0:
            self.queue.remove(block_id)
            self._report("touch", block_id)
        self.reference_counts[block_id] += 1

    def release(self, block_id: int, cached: bool = False) -> None:
        """Remove a holder. The last one puts the block into the queue: to the back if it is
        `cached`, that is, can still be found and hit, else to the front.

        Raises ValueError if nobody holds the block (a double release) or it does not exist.
        """
        block_id = self._check(block_id)
        if self.reference_counts[block_id] == 0:
            raise ValueError(f"block {block_id} is released but nobody holds it")
        self.reference_counts[block_id] -= 1
        if self.reference_counts[block_id] == 0:
            self.queue.put(block_id, cached)
            self._report("free", block_id)

    def copy(self, source: int, target: int) -> None:
        """Copy the keys and values of one block, all layers, to another.

        Raises TypeError or ValueError if there is no such block.
        """
        source, target = self._check(source), self._check(target)
        self.keys[:, target] = self.keys[:, source]
        self.values[:, target] = self.values[:, source]

    def _report(self, kind: str, block_id: int) -> None:
        if self.observer is not None:
            self.observer(Event(kind, block=block_id))

    def _check(self, block_id: int) -> int:
        # The common case first: these operations run for every block of every request.
        if type(block_id) is int and 0 <= block_id < self.num_blocks:
            return block_id
        return check_integer("block id", block_id, 0, self.num_blocks - 1)


def check_arrays(pool, config) -> None:
    """Raise ValueError unless the arrays of a pool have the shape that a model needs."""
    layers, heads, size = config.num_layers, config.num_kv_heads, config.head_dim
    wanted = (layers, pool.num_blocks, pool.block_size, heads, size)
    for name, array in (("keys", pool.keys), ("values", pool.values)):
        if array.shape != wanted:
            raise ValueError(f"the pool's {name} must have shape {wanted}, found {array.shape}")
