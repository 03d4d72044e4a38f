"""A play: one case on the reader's function or class, with the truth kept beside it.

In English: a case is a start and a list of moves. A `Play` makes the moves on the reader's
object. Each call ends in an `Outcome`, from which the play asks what it needs: a whole
number, a list, an exception of a certain kind. What breaks a rule raises `Broken`.
"""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .limits import Guard
from .telling import advice_on, name_of, names, tell, tell_error, where

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
            if isinstance(self.error, NameError):  # a slip of the pen breaks no other rule
                rule = NO_ACCIDENT
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
        named = all(names(self.error, mention) for mention in mentions)
        if not isinstance(self.error, kind) or not named:
            raise Broken(rule, expected, tell_error(self.error), where(self.error))


class Play:
    """One case on the reader's object. Subclasses write `begin` and one method for each move.

    thing: what the reader handed in; calls: what was called
    subject: the object to draw; whose: "Your" if the reader wrote it
    """

    subject: object = None
    whose = "Your"

    def __init__(self, thing, guard: Guard | None = None) -> None:
        self.thing = thing
        self.name = getattr(thing, "__name__", "your code")
        self.calls: list[Outcome] = []
        self._guard = guard

    def begin(self, *start) -> None:
        """Make the object that the moves are made on."""

    def picture(self, title: str):
        """A Picture of the subject."""
        from ..views import draw

        return draw(self.subject, title=title)

    def wait(self, seconds: float | None = None) -> None:
        """What comes now may take this long; by default, as long as a call may take."""
        if self._guard is not None:
            self._guard.alive(seconds)

    def run(self, text: str, function: Callable, *arguments, seconds=None) -> Outcome:
        """Call the reader's code, shown to the reader as `text`. Exceptions end in the Outcome."""
        outcome = Outcome(text)
        self.calls.append(outcome)
        self.wait(seconds)
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
        try:
            self.begin(*case.start)
            for name, *arguments in case.moves:
                getattr(self, name)(*arguments)
        except (Broken, Unattempted, Unusable):
            raise
        except Exception as error:  # a value that cannot even be compared or counted
            expected = "values that can be looked at"
            raise Broken(NO_ACCIDENT, expected, tell_error(error), where(error)) from None


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
    plain = isinstance(before, (dict, set, int, str))
    return before == after if plain else True
