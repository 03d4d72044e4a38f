"""What exercises of chapter 6 share."""

from __future__ import annotations

from itertools import chain, combinations


def subsets(number: int):
    """All sets of numbers below `number`, small ones first."""
    every = range(number)
    return chain.from_iterable(combinations(every, size) for size in range(number + 1))
