"""Belady's optimum: what no policy can beat, for it knows the future.

In English: lose the block whose next use is furthest away. Nobody can do this, since nobody
knows the future; but once a trace is over, one can compute what would have been best.

The bound holds for demand paging, in which every miss brings its block in, and for blocks
that count alike (Belady 1966; Mattson and others 1970). An engine uses a block only if all
blocks before it are there too, so what an engine can reach lies below this bound.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from .policy import History, Ranked


def next_uses(trace: Sequence[Hashable]) -> list[int]:
    """For each access, the index of the next access to the same key; len(trace) if none."""
    following: dict[Hashable, int] = {}
    result = [len(trace)] * len(trace)
    for index in range(len(trace) - 1, -1, -1):
        result[index] = following.get(trace[index], len(trace))
        following[trace[index]] = index
    return result


class Belady(Ranked):
    """The optimum as a free queue: its n-th `put` of content is the n-th entry of the trace.

    That is so in a BlockCache that replays this trace from its beginning, and nowhere else.
    """

    def __init__(self, trace: Sequence[Hashable]) -> None:
        super().__init__()
        self._next_uses = next_uses(trace)
        self._index = -1

    def rank(self, history: History):
        self._index += 1
        return -self._next_uses[self._index]
