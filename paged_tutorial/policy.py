"""What a policy is: a free queue with an order of its own.

In English: a policy is a free queue. `put` takes in a block that nobody uses, `remove` gives
it back on a hit, `pop` chooses the one to lose. All policies agree on one thing: blocks whose
content nobody can find again go first. They differ in the order of the others.

A queue sees block ids, never content. So nothing here remembers what was evicted; policies
that do (2Q in full, ARC, S3-FIFO) would have to be told the names of blocks.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(slots=True)
class History:
    """What became of a block since its present content came.

    arrived, used: when the content came and when it was last used; time is counted in `put`s
    uses: how often, the first time included
    """

    arrived: int
    used: int
    uses: int = 1


class Policy:
    """What all policies share. A new one says three things of the blocks worth keeping.

    keep(block_id): nobody uses the block now, and its content can be hit
    take(block_id): it was hit and is in use. Raises KeyError if it was not kept
    choose(): the block to lose, taken out. It is called only if at least one is kept

    history: the History of each block with content, whether it waits here or is in use
    """

    def __init__(self) -> None:
        self.history: dict[int, History] = {}
        self._time = 0
        self._worthless: OrderedDict[int, None] = OrderedDict()
        self._kept: set[int] = set()
        self._filled: set[int] = set()  # ids that were handed out once

    def keep(self, block_id: int) -> None:
        raise NotImplementedError

    def take(self, block_id: int) -> None:
        raise NotImplementedError

    def choose(self) -> int:
        raise NotImplementedError

    def put(self, block_id: int, cached: bool) -> None:
        """Take in a block that nobody references. Raises ValueError if it is here already."""
        if block_id in self:
            raise ValueError(f"block {block_id} is in the free queue already")
        self._time += 1
        if not cached:
            self.history.pop(block_id, None)
            self._worthless[block_id] = None
            self._worthless.move_to_end(block_id, last=False)
        elif block_id not in self._filled:  # a pool puts in all its blocks when it is made
            self._worthless[block_id] = None
        else:
            self._note_use(block_id)
            self._kept.add(block_id)
            self.keep(block_id)

    def remove(self, block_id: int) -> None:
        """Take a block out because a request uses it again. Raises KeyError if it is not here."""
        if block_id in self._worthless:
            del self._worthless[block_id]
        else:
            self._kept.remove(block_id)
            self.take(block_id)
        self._filled.add(block_id)

    def pop(self) -> int:
        """Hand out a block: a worthless one, else the policy's choice. KeyError if empty."""
        if self._worthless:
            block_id = self._worthless.popitem(last=False)[0]
            self._filled.add(block_id)
            return block_id
        if not self._kept:
            raise KeyError("the free queue is empty")
        block_id = self.choose()
        if block_id not in self._kept:
            raise ValueError(f"choose() gave {block_id!r}, which is no block that waits here")
        self._kept.remove(block_id)
        del self.history[block_id]
        return block_id

    def _note_use(self, block_id: int) -> None:
        history = self.history.get(block_id)
        if history is None:
            self.history[block_id] = History(self._time, self._time)
        else:
            history.used = self._time
            history.uses += 1

    def __len__(self) -> int:
        return len(self._worthless) + len(self._kept)

    def __contains__(self, block_id: int) -> bool:
        return block_id in self._worthless or block_id in self._kept

    def __iter__(self) -> Iterator[int]:
        """Worthless blocks in order, then the kept ones in any order."""
        yield from self._worthless
        yield from self._kept


class Ranked(Policy):
    """The kept block of lowest rank goes first; `rank` is asked when a block is put in.

    A heap finds the lowest in O(log n). Entries of blocks that were hit since stay in the
    heap and are skipped; when they are the majority, the heap is built anew.
    """

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[int, tuple] = {}
        self._heap: list[tuple] = []

    def rank(self, history: History):
        """Anything that can be compared. Ties go to the block put in first."""
        raise NotImplementedError

    def keep(self, block_id: int) -> None:
        entry = (self.rank(self.history[block_id]), self._time, block_id)
        self._entries[block_id] = entry
        heapq.heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._entries) + 16:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)

    def take(self, block_id: int) -> None:
        del self._entries[block_id]

    def choose(self) -> int:
        while True:
            entry = heapq.heappop(self._heap)
            if self._entries.get(entry[2]) is entry:
                del self._entries[entry[2]]
                return entry[2]
