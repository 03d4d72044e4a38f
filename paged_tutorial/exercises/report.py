"""How a check is told: the rule, the calls, expected against came, and the picture."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

from .cards import Card
from .checking import Failure, examine
from .exercise import Exercise
from .play import Play, Unattempted, Unusable
from .telling import advice_on, state_of

SHOWN_CALLS = 12


@dataclass
class Verdict:
    """The result of a check. state: "right", "wrong", "unattempted" or "unusable"."""

    state: str
    card: Card
    failure: Failure | None = None


def judge(exercise: Exercise, thing) -> Verdict:
    """Check an answer. Never raises for anything that the answer does."""
    try:
        exercise.require(thing)
        failure = examine(exercise.play, thing, exercise.cases)
        insight = exercise.insight if failure is None else ""
    except Unattempted as unattempted:
        return Verdict("unattempted", _unattempted(exercise, str(unattempted)))
    except Unusable as problem:
        card = Card("quiet", "?", f"{_short(exercise)} · nothing to check yet")
        return Verdict("unusable", card.say(str(problem)))
    if failure is None:
        return Verdict("right", Card("right", "✓", f"{_short(exercise)} · right").say(insight))
    return Verdict("wrong", _failed(exercise, failure), failure)


def _short(exercise: Exercise) -> str:
    return f"Exercise {exercise.id} · {exercise.title}"


def _unattempted(exercise: Exercise, sign: str) -> Card:
    card = Card("quiet", "○", f"{_short(exercise)} · yours to write")
    card.say(f"{sign} Write your answer in the cell above, then run both cells.")
    return card.say(
        f"{exercise.minutes} minutes, difficulty {exercise.dots}. "
        f'Stuck? `hint("{exercise.id}")`. Later cells do not need your answer.',
        soft=True,
    )


def _failed(exercise: Exercise, failure: Failure) -> Card:
    broken, play = failure.broken, failure.play
    card = Card("wrong", "✗", f"{_short(exercise)} · not yet")
    card.say(f"Rule broken: {broken.rule}")
    card.say("The smallest case that shows it:", soft=True)
    card.code("\n".join(_calls(play)))
    card.row("expected", broken.expected)
    card.row("came", broken.came)
    for advice in _advice(failure):
        card.say(advice)
    if failure.printed:
        card.say("Your code printed:", soft=True).code(failure.printed.rstrip())
    _draw(card, play)
    return card.say(f'Stuck? `hint("{exercise.id}")`, then `hint("{exercise.id}", 2)`.', soft=True)


def _advice(failure: Failure) -> list[str]:
    """What to do; besides, a call that has done nothing, because of a `yield`, is told of."""
    values = [call.value for call in failure.play.calls]
    idle = [value for value in values if inspect.isgenerator(value) or inspect.iscoroutine(value)]
    advice = [failure.broken.advice, *map(advice_on, idle)]
    return [text for text in dict.fromkeys(advice) if text]


def _calls(play: Play) -> list[str]:
    """The calls that led there, each with what came; the last is marked."""
    calls = play.calls[-SHOWN_CALLS:]
    width = max((len(call.text) for call in calls), default=0)
    lines = [f"{call.text:<{width}}  {call.line}".rstrip() for call in calls]
    if lines:
        lines[-1] += "   ← here"
    left_out = len(play.calls) - len(calls)
    return ([f"… {left_out} calls before"] if left_out else []) + lines


def _draw(card: Card, play: Play) -> None:
    """The reader's own object at that moment, as a picture if it can be drawn."""
    subject = play.subject
    if subject is None:
        return
    state = state_of(subject)
    if state:
        card.row("its fields", state)
    try:
        picture = play.picture(f"{play.whose} {type(subject).__name__} at that moment")
        card.picture(picture.svg, f"picture:  {picture.alt}")
    except Exception:
        # An object in such a state that it cannot be drawn; its fields are told above.
        return
