"""Replay a trace of blocks on a free queue: which accesses hit, and nothing else.

In English: a trace is a list of keys, one for each block that a request wants; equal keys
mean equal content. There are `capacity` blocks. A key that some block holds is a hit: the
block is removed from the queue, used and put back. Any other key is a miss: the queue pops a
block, which takes the new content and is put in. Every miss brings its block in (demand
paging; nothing bypasses the cache), as in an engine, which has to compute it somewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from .checks import check_integer
from .lru import LRUManager


class BlockCache:
    """`capacity` blocks of which only the keys are kept.

    queue: LRUManager or a policy, empty; it gets the blocks 0 to capacity − 1
    key_of: block id -> key, for the blocks that hold something
    """

    def __init__(self, capacity: int, queue=None) -> None:
        self.capacity = check_integer("capacity", capacity, 1)
        self.queue = LRUManager() if queue is None else queue
        self.key_of: dict[int, Hashable] = {}
        self.hits = self.misses = 0
        self._block_of: dict[Hashable, int] = {}
        for block_id in range(self.capacity):
            self.queue.put(block_id, cached=True)

    def access(self, key: Hashable) -> bool:
        """Use the block of this key. True if it was there."""
        block_id = self._block_of.get(key)
        hit = block_id is not None
        if hit:
            self.hits += 1
            self.queue.remove(block_id)
        else:
            self.misses += 1
            block_id = self.queue.pop()
            if block_id in self.key_of:
                del self._block_of[self.key_of[block_id]]
            self.key_of[block_id] = key
            self._block_of[key] = block_id
        self.queue.put(block_id, cached=True)
        return hit

    def __contains__(self, key: Hashable) -> bool:
        return key in self._block_of


def replay(trace: Iterable[Hashable], capacity: int, make_queue: Callable = LRUManager) -> int:
    """How many accesses of a trace hit. `make_queue()` gives an empty queue.

    Raises TypeError or ValueError unless capacity is a whole number of at least 1.
    """
    cache = BlockCache(capacity, make_queue())
    return sum(map(cache.access, trace))
