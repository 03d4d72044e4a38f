"""Rebuild the states of a cache from its trace alone.

In English: the events say which block became whose, and what went to the free queue. So
tables, reference counts and the queue follow from them, exactly; how many tokens lie in a
half-full block does not, and stays unknown. It is the same bookkeeping that the cache does,
written a second time: where both agree, both are likely right.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable

from ..trace import Event
from .recording import Recording
from .snapshot import RequestView, Snapshot


class Replay(Recording):
    """A recording made from events. `thing` is None; there is no live object."""

    def __init__(self, num_blocks: int, block_size: int | None) -> None:
        self.num_blocks, self.block_size = num_blocks, block_size
        self.tables: dict[Hashable, list[int]] = {}
        self.queue = OrderedDict.fromkeys(range(num_blocks))
        self.cached: set[int] = set()
        super().__init__(None)

    def _attach(self) -> None:
        pass

    def _state(self) -> Snapshot:
        held = [block for table in self.tables.values() for block in table]
        return Snapshot(
            self.num_blocks,
            self.block_size,
            tuple(held.count(block) for block in range(self.num_blocks)),
            tuple(self.queue),
            frozenset(self.cached),
            tuple(RequestView(who, tuple(table)) for who, table in self.tables.items()),
        )

    def follow(self, event: Event) -> None:
        """Do what the event says, and add the step."""
        block = event.block
        if event.kind in ("allocate", "hit", "share"):
            self.queue.pop(block, None)
            self.tables.setdefault(event.request, []).append(block)
        elif event.kind == "copy":
            self.queue.pop(block, None)
            self.tables[event.request][event.logical] = block
        elif event.kind == "touch":
            self.queue.pop(block, None)
        elif event.kind == "register":
            self.cached.add(block)
        elif event.kind == "evict":
            # Taken from the front, or forgotten on purpose and moved there: the same.
            self.cached.discard(block)
            self.queue[block] = None
            self.queue.move_to_end(block, last=False)
        elif event.kind == "free":
            self._free(block)
        elif event.kind == "release":
            # A pool without an observer has not reported what became free.
            for block in reversed(self.tables.pop(event.request, [])):
                if not any(block in table for table in self.tables.values()):
                    self._free(block)
        elif event.kind == "drop":
            self.cached.clear()
        self._on_event(event)

    def _free(self, block: int) -> None:
        """The last holder leaves. Its `release` comes only after all its blocks are free."""
        for table in self.tables.values():
            if block in table:
                table.remove(block)
        self.queue[block] = None
        if block not in self.cached:
            self.queue.move_to_end(block, last=False)


def replay(
    events: Iterable[Event], num_blocks: int | None = None, block_size: int | None = None
) -> Replay:
    """A recording rebuilt from the events of a Trace that began with an empty cache.

    num_blocks: one more than the highest block that occurs, if it is not given
    """
    events = list(events)
    if num_blocks is None:
        num_blocks = 1 + max((e.block for e in events if e.block is not None), default=0)
    rebuilt = Replay(num_blocks, block_size)
    for event in events:
        rebuilt.follow(event)
    return rebuilt
