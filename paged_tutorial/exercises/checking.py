"""Play the reader's function or class against the rules, and find the smallest failing case.

In English: a case is a start and a list of moves. A `Play` makes the moves on the reader's
object and keeps the truth beside it; a move that breaks a rule raises `Broken`. Cases come
smallest first. The first that fails is made smaller: leave out one move, and if it still
fails, go on without it, until every single move is needed.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import operator
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from .limits import Guard, TimeUp
from .telling import advice_on, name_of, tell, tell_error, where

FIRST_LIMIT, SECOND_LIMIT = 0.5, 1.0
SHRINKING_TIME = 3.0

ENDS = "Every call comes to an end."
NO_ACCIDENT = "No call ends in an unexpected exception."
SAME_INPUT = "The arguments are left as they were."


class Broken(Exception):
    """A rule is broken: which, what was expected, what came."""

    def __init__(self, rule: str, expected: str, came: str, advice: str = "") -> None:
        super().__init__(rule)
        self.rule, self.expected, self.came, self.advice = rule, expected, came, advice


class Unattempted(Exception):
    """Nothing is written yet. The message says how that shows."""


class Unusable(Exception):
    """What was handed in cannot be checked. The message says what is wanted."""


@dataclass(frozen=True)
class Case:
    """start: arguments of Play.begin; moves: (name of a method of the Play, its arguments…)."""

    start: tuple
    moves: tuple[tuple, ...] = ()

    def without(self, index: int) -> Case:
        """This case with one move left out."""
        return Case(self.start, self.moves[:index] + self.moves[index + 1 :])


@dataclass
class Outcome:
    """How one call of the reader's code ended."""

    text: str
    value: object = None
    error: BaseException | None = None
    ended: bool = False

    @property
    def line(self) -> str:
        """The call as a line of code; what an assignment returned is not told."""
        quiet = self.ended and self.error is None and " = " in self.text
        return "" if quiet else f"→ {self.came()}"

    def came(self) -> str:
        """What came, for the reader."""
        if not self.ended:
            return "no answer"
        return tell(self.value) if self.error is None else tell_error(self.error)

    def returned(self, expected: str, rule: str = NO_ACCIDENT):
        """The value. Raises Broken if an exception came instead."""
        if self.error is not None:
            raise Broken(rule, expected, tell_error(self.error), where(self.error))
        return self.value

    def integer(self, rule: str, expected: str) -> int:
        """The value as an int; NumPy's integers will do. Raises Broken for anything else."""
        value = self.returned(expected, rule)
        try:
            if isinstance(value, (bool, np.bool_)):
                raise TypeError
            return operator.index(value)
        except TypeError:
            raise Broken(rule, expected, self.came(), advice_on(value)) from None

    def list_of_integers(self, rule: str, expected: str) -> list[int]:
        """The value as a list of ints; a tuple or an array will do."""
        value = self.returned(expected, rule)
        if not isinstance(value, (list, tuple, np.ndarray)):
            raise Broken(rule, expected, self.came(), advice_on(value))
        try:
            return [operator.index(entry) for entry in value]
        except TypeError:
            raise Broken(rule, expected, self.came()) from None

    def raised(self, kind: type[Exception], rule: str, *mentions: object) -> None:
        """Require an exception of this kind whose message has the mentions in it."""
        named = " and ".join(str(mention) for mention in mentions)
        expected = kind.__name__ + (f" whose message names {named}" if mentions else "")
        if self.error is None:
            raise Broken(rule, expected, f"no exception; it returned {self.came()}")
        missing = [m for m in mentions if str(m) not in str(self.error)]
        if not isinstance(self.error, kind) or missing:
            raise Broken(rule, expected, tell_error(self.error), where(self.error))


class Play:
    """One case on the reader's object. Subclasses write `begin` and one method for each move.

    thing: what the reader handed in; subject: the object to draw; calls: what was called
    """

    subject: object = None

    def __init__(self, thing, guard: Guard | None = None) -> None:
        self.thing = thing
        self.name = getattr(thing, "__name__", "your code")
        self.calls: list[Outcome] = []
        self._guard = guard

    def begin(self, *start) -> None:
        """Make the object that the moves are made on."""

    def run(self, text: str, function: Callable, *arguments, seconds=None) -> Outcome:
        """Call the reader's code, shown to the reader as `text`. Exceptions end in the Outcome."""
        outcome = Outcome(text)
        self.calls.append(outcome)
        if self._guard is not None:
            self._guard.alive(seconds)
        before = tuple(map(_kept, arguments))
        try:
            outcome.value = function(*arguments)
        except NotImplementedError as error:
            name = name_of(error)
            raise Unattempted(f"`{name}` still raises NotImplementedError.") from None
        except (Broken, Unusable):
            raise
        except (Exception, SystemExit) as error:
            outcome.error = error
        outcome.ended = True
        if not _same(before, arguments):
            now = f"{', '.join(map(tell, arguments))} afterwards"
            raise Broken(SAME_INPUT, ", ".join(map(tell, before)), now, "Work on a copy.")
        return outcome

    def peek(self, text: str, function: Callable):
        """Read something of the reader's object; told as a call only if it goes wrong."""
        try:
            return function()
        except Exception:
            return self.run(text, function).returned("a value")

    def require(self, holds: bool, rule: str, expected, came, advice: str = "") -> None:
        """Raise Broken unless the rule holds."""
        if not holds:
            raise Broken(rule, str(expected), str(came), advice)

    def play(self, case: Case) -> None:
        """Begin and make all moves."""
        self.begin(*case.start)
        for name, *arguments in case.moves:
            getattr(self, name)(*arguments)


@dataclass
class Failure:
    """A case that fails, the play at that moment, and why."""

    case: Case
    play: Play
    broken: Broken
    printed: str = field(default="", repr=False)


def examine(make_play: Callable[..., Play], thing, cases: Iterable[Case]) -> Failure | None:
    """The smallest failing case, or None. Raises Unattempted or Unusable."""
    failure = _search(make_play, thing, cases)
    if failure is None:
        return None
    return shrink(failure, lambda case: attempt(make_play, thing, case))


def _search(make_play, thing, cases) -> Failure | None:
    guard, now = Guard(FIRST_LIMIT), {}

    def look() -> Failure | None:
        for case in cases:
            guard.alive()
            play = make_play(thing, guard)
            now.update(case=case)
            try:
                play.play(case)
            except Broken as broken:
                return Failure(case, play, broken)
        return None

    try:
        failure = guard.run(look)
    except TimeUp:
        failure = attempt(make_play, thing, now["case"], SECOND_LIMIT)
        if failure is None:  # the machine was slow, not the reader's code
            failure = _search(make_play, thing, cases)
    if failure is not None and not guard.printed:
        return failure
    return failure and (attempt(make_play, thing, failure.case) or failure)


def attempt(make_play, thing, case: Case, seconds: float = FIRST_LIMIT) -> Failure | None:
    """Play one case. None if all goes well."""
    guard = Guard(seconds)
    play = make_play(thing, guard)
    try:
        guard.run(lambda: play.play(case))
    except Broken as broken:
        return Failure(case, play, broken, guard.printed)
    except TimeUp:
        broken = Broken(ENDS, "an answer", "nothing: the call was stopped", "Look for a loop.")
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


def require_function(thing, *parameters: str) -> None:
    """Raise Unusable unless the thing can be called with these arguments."""
    call = f"{getattr(thing, '__name__', 'your_function')}({', '.join(parameters)})"
    if not callable(thing) or inspect.isclass(thing):
        raise Unusable(f"This exercise checks a function, called as {call}; {tell(thing)} came.")
    try:
        inspect.signature(thing).bind(*parameters)
    except TypeError as error:
        raise Unusable(f"Your function is called as {call}, and that fails: {error}.") from None
    except ValueError:  # some built-in functions do not say what they take
        pass


def require_class(thing, call: str) -> None:
    """Raise Unusable unless the thing is a class."""
    if not inspect.isclass(thing):
        what = "an object of it" if hasattr(type(thing), "allocate") else tell(thing)
        raise Unusable(f"This exercise checks a class, made as {call}; {what} came.")


def _kept(argument: object) -> object:
    """A copy of what can be changed by accident; objects are there to be changed."""
    plain = isinstance(argument, (list, dict, set, np.ndarray))
    return copy.deepcopy(argument) if plain else argument


def _same(before: object, after: object) -> bool:
    if isinstance(before, np.ndarray):
        return np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(_same, before, after))
    return not isinstance(before, (dict, set)) or before == after
