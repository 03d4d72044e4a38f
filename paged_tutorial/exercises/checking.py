"""Find the smallest case in which the reader's answer breaks a rule.

In English: cases come smallest first. The first that fails is made smaller: leave out one
move, and if it still fails, go on without it, until every single move is needed.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from .limits import Guard, TimeUp
from .play import ENDS, Broken, Case, Play, Unusable

LIMITS = (0.5, 2.0, 8.0)  # seconds a case may take; then it may take twice as long, alone
SHRINKING_TIME = 3.0
ADVICE = "Look for a loop that never ends."
RESTART = "It could not be stopped and still runs: restart the kernel when you have mended it."


@dataclass
class Failure:
    """A case that fails, the play at that moment, and why."""

    case: Case
    play: Play
    broken: Broken
    printed: str = field(default="", repr=False)


def examine(
    make_play: Callable[..., Play], thing, cases: Callable[[], Iterable[Case]]
) -> Failure | None:
    """The smallest failing case, or None. Raises Unattempted or Unusable."""
    failure = _search(make_play, thing, cases)
    if failure is None:
        return None
    return shrink(failure, lambda case: attempt(make_play, thing, case))


def _search(make_play, thing, cases) -> Failure | None:
    """The first failing case. One that takes too long gets a second chance with more time."""
    for seconds in LIMITS:
        guard = Guard(seconds)
        current: list[Case] = []

        def look(guard=guard, current=current) -> Failure | None:
            for case in cases():
                guard.alive()
                current[:] = [case]
                play = make_play(thing, guard)
                try:
                    play.play(case)
                except Broken as broken:
                    return Failure(case, play, broken)
            return None

        try:
            failure = guard.run(look)
        except TimeUp:
            failure = attempt(make_play, thing, current[0], 2 * seconds) if current else None
            if failure is None:  # the machine was slow, not the reader's code
                continue
        if failure is not None and guard.printed:
            # What was printed came from all cases; play this one alone to have its own.
            return attempt(make_play, thing, failure.case) or failure
        return failure
    raise Unusable("This machine is too busy for a check just now. Try again in a while.")


def attempt(make_play, thing, case: Case, seconds: float = LIMITS[0]) -> Failure | None:
    """Play one case. None if all goes well."""
    guard = Guard(seconds)
    play = make_play(thing, guard)
    try:
        guard.run(lambda: play.play(case))
    except Broken as broken:
        return Failure(case, play, broken, guard.printed)
    except TimeUp:
        broken = Broken(ENDS, "an answer", "nothing: the call had to be stopped", ADVICE)
        if guard.left_behind:
            broken.advice = f"{ADVICE} {RESTART}"
        return Failure(case, play, broken, guard.printed)
    return None


def shrink(failure: Failure, attempt: Callable[[Case], Failure | None]) -> Failure:
    """Leave out moves one at a time as long as the case fails without them."""
    end = time.monotonic() + SHRINKING_TIME
    index = 0
    while index < len(failure.case.moves) and time.monotonic() < end:
        smaller = attempt(failure.case.without(index))
        failure, index = (failure, index + 1) if smaller is None else (smaller, 0)
    return failure


def all_sequences(start: tuple, moves: Sequence[tuple], longest: int) -> Iterator[Case]:
    """Every sequence of these moves up to a length, shortest first."""
    for length in range(longest + 1):
        for chosen in itertools.product(moves, repeat=length):
            yield Case(start, chosen)


def random_sequences(start, moves: Sequence[tuple], length: int, number: int) -> Iterator[Case]:
    """The same random sequences every time."""
    generator = random.Random(f"{start} {length}")
    for _ in range(number):
        yield Case(start, tuple(generator.choices(moves, k=length)))
