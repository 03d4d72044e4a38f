"""Policies: six orders in which a free queue may hand out its blocks.

Each can be plugged into a real pool, BlockPool(100, queue=Sieve()), and replayed on a trace
of blocks, block_cache.replay(trace, 100, Sieve). LRU itself is lru.LRUManager: the block used
last goes to the back, so no order has to be computed.
"""

from __future__ import annotations

import random
from collections import OrderedDict

from .checks import check_number
from .policy import History, Policy, Ranked


class FIFO(Ranked):
    """First in, first out: what came first goes first, however often it was used since."""

    def rank(self, history: History):
        return history.arrived


class LIFO(Ranked):
    """Last in, first out: what came last goes first."""

    def rank(self, history: History):
        return -history.arrived


class LFU(Ranked):
    """Least frequently used: the fewest uses since the content came; ties to the oldest use."""

    def rank(self, history: History):
        return history.uses, history.used


class Random(Policy):
    """Any kept block, each with the same chance. Reproducible by its seed."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._generator = random.Random(seed)
        self._blocks: list[int] = []
        self._place: dict[int, int] = {}

    def keep(self, block_id: int) -> None:
        self._place[block_id] = len(self._blocks)
        self._blocks.append(block_id)

    def take(self, block_id: int) -> None:
        # The last of the list fills the gap: order means nothing here.
        place, last = self._place.pop(block_id), self._blocks.pop()
        if last != block_id:
            self._blocks[place] = last
            self._place[last] = place

    def choose(self) -> int:
        block_id = self._generator.choice(self._blocks)
        self.take(block_id)
        return block_id


class Sieve(Policy):
    """SIEVE (Zhang et al., NSDI 2024): first in, first out, but used blocks are spared once.

    A hand moves from the oldest to the newest block. Where it finds a mark, it wipes it off
    and moves on; the first block without a mark goes. A hit sets the mark and moves nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        # The blocks in order of arrival, cut at the hand; used ones too, they keep their place.
        self._behind: OrderedDict[int, None] = OrderedDict()
        self._ahead: OrderedDict[int, None] = OrderedDict()
        self._marked: set[int] = set()

    def keep(self, block_id: int) -> None:
        if self.history[block_id].uses > 1:
            return
        # New content. Its block may stand somewhere in line for content it had before.
        self._behind.pop(block_id, None)
        self._ahead.pop(block_id, None)
        self._marked.discard(block_id)
        self._ahead[block_id] = None

    def take(self, block_id: int) -> None:
        self._marked.add(block_id)

    def choose(self) -> int:
        while True:
            if not self._ahead:
                self._ahead, self._behind = self._behind, OrderedDict()
            block_id = self._ahead.popitem(last=False)[0]
            waits = block_id in self._kept
            if waits and block_id not in self._marked:
                break
            if waits:
                self._marked.remove(block_id)
            self._behind[block_id] = None
        if not self._ahead:  # the hand is at the end and starts again at the oldest
            self._ahead, self._behind = self._behind, OrderedDict()
        return block_id


class TwoQueue(Policy):
    """2Q in its simple form (Johnson and Shasha, VLDB 1994): prove yourself first.

    New content waits in a first-in-first-out queue on trial. A hit moves it to the main
    queue, which is LRU. While more than the share `trial` of the kept blocks is on trial, the
    oldest of these goes; else the one unused for longest in the main queue.
    """

    def __init__(self, trial: float = 0.5) -> None:
        super().__init__()
        self.trial = check_number("trial", trial, 0, 1)
        self._trial: OrderedDict[int, None] = OrderedDict()
        self._main: OrderedDict[int, None] = OrderedDict()

    def _queue_of(self, block_id: int) -> OrderedDict[int, None]:
        return self._trial if block_id in self._trial else self._main

    def keep(self, block_id: int) -> None:
        queue = self._trial if self.history[block_id].uses == 1 else self._main
        queue[block_id] = None

    def take(self, block_id: int) -> None:
        del self._queue_of(block_id)[block_id]

    def choose(self) -> int:
        on_trial = len(self._trial) > self.trial * len(self._kept) or not self._main
        queue = self._trial if on_trial else self._main
        return queue.popitem(last=False)[0]
