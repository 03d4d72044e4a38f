"""Count what a call costs, without a clock: looks at keys, lines run, memory taken.

In English: a key counts how often it is hashed or compared. A trace function counts the
lines of Python. Neither sees `list(everything)[0]`, which is one line and asks no key
anything; but the copy takes memory, and that is counted too.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable


class CountedKey:
    """A key like any other, that counts how often anybody looks at it."""

    looks = 0

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        CountedKey.looks += 1
        return hash(self.number)

    def __eq__(self, other: object) -> bool:
        CountedKey.looks += 1
        return isinstance(other, CountedKey) and self.number == other.number

    def __repr__(self) -> str:
        return f"key {self.number}"


def count(call: Callable[[], object]) -> dict[str, int]:
    """What one call costs: {"looks at keys": …, "lines run": …, "bytes taken": …}."""
    lines = 0

    def tracer(frame, event, argument):
        nonlocal lines
        # The methods of CountedKey are counted as looks already.
        if frame.f_globals is globals():
            return None
        lines += event == "line"
        return tracer

    own_tracing = not tracemalloc.is_tracing()
    if own_tracing:
        tracemalloc.start()
    before_tracing = sys.gettrace()
    looks = CountedKey.looks
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    sys.settrace(tracer)
    try:
        call()
    finally:
        sys.settrace(before_tracing)
        peak = tracemalloc.get_traced_memory()[1]
        if own_tracing:
            tracemalloc.stop()
    return {
        "looks at keys": CountedKey.looks - looks,
        "lines run": lines,
        "bytes taken": peak - taken,
    }
