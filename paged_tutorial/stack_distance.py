"""Stack distances: the hits of LRU at every capacity, from one pass over a trace.

In English: stack all keys, the one used last on top. LRU with capacity c holds exactly the c
keys on top. So an access hits if its key lies among the top c, at a depth of at most c. Note
the depth of each access once, and the hits at any capacity are a matter of counting
(Mattson, Gecsei, Slutz and Traiger, IBM Systems Journal 9(2), 1970).

The depth of a key is the number of keys used since its last use, itself included. A Fenwick
tree over time, with a 1 where some key was used last, counts them in O(log n).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np


class _Counter:
    """Numbers at places 0 to n − 1; `add` and `total_up_to` take O(log n)."""

    def __init__(self, size: int) -> None:
        self._sums = [0] * (size + 1)

    def add(self, place: int, amount: int) -> None:
        place += 1
        while place < len(self._sums):
            self._sums[place] += amount
            place += place & -place

    def total_up_to(self, place: int) -> int:
        place += 1
        total = 0
        while place:
            total += self._sums[place]
            place -= place & -place
        return total


def stack_distances(trace: Sequence[Hashable]) -> np.ndarray:
    """The depth of each access in the LRU stack, from 1; 0 where a key is used for the first
    time. Integers of shape (len(trace),).
    """
    marks = _Counter(len(trace))
    last: dict[Hashable, int] = {}
    distances = np.zeros(len(trace), np.int64)
    for now, key in enumerate(trace):
        before = last.get(key)
        if before is not None:
            # Every key that was used has one mark; count those at or after this key's own.
            distances[now] = len(last) - marks.total_up_to(before) + 1
            marks.add(before, -1)
        marks.add(now, 1)
        last[key] = now
    return distances


def lru_hits(trace: Sequence[Hashable]) -> np.ndarray:
    """Hits of LRU at capacity 0, 1, 2, … up to the number of distinct keys.

    Integers of shape (distinct keys + 1,); at the last capacity everything fits.
    """
    distances = stack_distances(trace)
    distinct = int(np.count_nonzero(distances == 0))
    counts = np.bincount(distances, minlength=distinct + 1)
    counts[0] = 0
    return np.cumsum(counts)
