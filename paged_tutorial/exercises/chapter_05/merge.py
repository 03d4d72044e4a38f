"""Exercise 5.1: merge two halves of a text."""

from __future__ import annotations

import copy
import math

import numpy as np

from .. import answers_05 as answers
from ..checking import all_sequences
from ..exercise import Exercise, Mutant
from ..play import NO_ACCIDENT, SAME_INPUT, Case, Outcome, Play, require_function
from ..telling import advice_on
from .common import close, numbers, told

HIGHEST = "highest is the larger of both: the maximum of all scores."
TOTAL = "total is the sum of exp(score − highest) over the tokens of both, by the common highest."
OUTPUT = "output is the sum of exp(score − highest) × value over both, by the common highest."
EMPTY = "A state of no tokens, (−inf, 0, zeros), changes nothing, and nothing becomes NaN."
FAR = "Scores of any size are right: no exp overflows."
TRIPLE = "A merge returns three things: highest, total, output."


def state_of(pairs) -> tuple[float, float, np.ndarray]:
    """The true state of (score, value) pairs; the second value is made from the first.

    Some of them are zeros, as those of no tokens are.
    """
    highest = max((score for score, _ in pairs), default=-math.inf)
    weights = np.array([math.exp(score - highest) for score, _ in pairs])
    values = np.array([(value, value * (value - 3)) for _, value in pairs], np.float64).reshape(
        -1, 2
    )
    return float(highest), float(weights.sum()), weights @ values


class MergePlay(Play):
    """Parts of a text are merged into one state, on either side."""

    def begin(self) -> None:
        """No token yet."""
        self.state = state_of(())
        self.pairs: tuple = ()

    def after(self, *pairs: tuple) -> None:
        """Merge the state with one more part."""
        self._merge(f"{self.name}(state, {told_state(state_of(pairs))})", pairs, False)

    def before(self, *pairs: tuple) -> None:
        """The same with the arguments exchanged."""
        self._merge(f"{self.name}({told_state(state_of(pairs))}, state)", pairs, True)

    def _merge(self, call: str, pairs: tuple, exchanged: bool) -> None:
        both = self.state, state_of(pairs)
        kept = copy.deepcopy(both)
        call = call.replace("state", told_state(both[0])) if not self.calls else call
        with np.errstate(all="ignore"):
            outcome = self.run(
                f"state = {call}", self.thing, *(reversed(both) if exchanged else both)
            )
        some_empty = not pairs or not self.pairs
        for state, (highest, _, output) in zip(both, kept, strict=True):
            told_output = f"output {told(output)} of the state with highest {told(highest)}"
            came = f"output {told(state[2])} afterwards"
            same = np.array_equal(state[2], output)
            self.require(same, SAME_INPUT, told_output, came, "Work on a copy.")
        self.pairs += pairs
        truth = state_of(self.pairs)
        rule = EMPTY if some_empty else None
        if max((abs(score) for score, _ in self.pairs), default=0) > 700:
            rule = FAR
        expected = told_state(truth)
        arithmetic = isinstance(outcome.error, ArithmeticError)
        state = outcome.returned(expected, rule if rule and arithmetic else NO_ACCIDENT)
        if not isinstance(state, tuple | list) or len(state) != 3:
            self.require(False, TRIPLE, expected, outcome.came(), advice_on(state))
        names, rules = ("highest", "total", "output"), (HIGHEST, TOTAL, OUTPUT)
        for name, entry, wanted, own in zip(names, state, truth, rules, strict=True):
            said = f"{name} {told(wanted)}"
            found = numbers(Outcome(name, entry, ended=True), np.shape(wanted), rule or own, said)
            self.require(close(found, wanted), rule or own, said, f"{name} {told(found)}")
        self.state = tuple(state)


def told_state(state) -> str:
    """A state as the reader writes it."""
    return f"({', '.join(map(told, state))})"


def merge_cases():
    """Parts of one and two tokens in both orders, then empty ones, then huge scores."""
    some, other, two = ((1, 2),), ((3, 5),), ((0, 4), (1, 1))
    for first, second in ((some, other), (other, some), (two, other), (some, some), (two, some)):
        # The first part is merged with nothing: that must go well before anything else can.
        for side in ("after", "before"):
            yield Case((), (("after", *first), (side, *second)))
    moves = [(side, *part) for side in ("after", "before") for part in (some, two, ())]
    yield from all_sequences((), moves, 3)
    # Tokens whose score or value is zero are tokens all the same; so are those far below zero.
    zeros = [(side, pair) for side in ("after", "before") for pair in ((0, 0), (0, 3), (-9, 0))]
    yield from all_sequences((), zeros, 3)
    far = [(side, (score, 2)) for side in ("after", "before") for score in (-60_000, 60_000)]
    yield from all_sequences((), far, 3)


MERGE = Exercise(
    id="5.1",
    title="Merge two halves of a text",
    minutes=10,
    difficulty=2,
    stub='''
def merge(first, second):
    """The state of all tokens of two states. Each is a tuple (highest, total, output):

    highest: the largest score; -inf if there are no tokens
    total:   the sum of exp(score - highest) over its tokens; 0 if there are none
    output:  the same sum with each term times its value, (head_dim,); zeros if there are none
    """
    raise NotImplementedError
''',
    hints=(
        "The new `highest` is the larger of the two. Which of the four old sums are not by it?",
        "A sum of exp(score − old highest) becomes one by the new highest when you multiply it "
        "by `np.exp(old_highest - highest)`. Do that to both states, then add.",
        "If both are empty, the new highest is −inf, and −inf − (−inf) is NaN. Return one of "
        "them as it is.",
    ),
    solution=answers.merge,
    require=lambda thing: require_function(thing, "first", "second"),
    play=MergePlay,
    cases=merge_cases,
    insight="A step of the online softmax is this merge with the state of one block. And since "
    "order does not matter, several cores can each take a part of a long text.",
    mutants=(
        Mutant(
            "totals are just added",
            "total is the sum",
            "share * first[1] + other * second[1]",
            "first[1] + second[1]",
        ),
        Mutant(
            "outputs are just added",
            "output is the sum",
            "share * first[2] + other * second[2]",
            "first[2] + second[2]",
        ),
        Mutant(
            "the lower of both",
            "larger of both",
            "max(first[0], second[0])",
            "min(first[0], second[0]) if first[1] * second[1] else max(first[0], second[0])",
        ),
        Mutant(
            "the second is never lower",
            "larger of both",
            "max(first[0], second[0])",
            "second[0] if second[1] else first[0]",
        ),
        Mutant(
            "only the first is rescaled",
            "total is the sum",
            "np.exp(second[0] - highest)",
            "1.0 if second[1] else 0.0",
        ),
        Mutant(
            "rescaled the wrong way",
            "total is the sum",
            "np.exp(first[0] - highest)",
            "np.exp(highest - first[0]) if first[1] else 0.0",
        ),
        Mutant("two empty states give NaN", "changes nothing", "highest == -np.inf", "False"),
        Mutant(
            "exp without a maximum",
            "no exp overflows",
            "share, other = np.exp(first[0] - highest), np.exp(second[0] - highest)",
            "share, other = np.exp([first[0], second[0]]) / np.exp(highest)",
        ),
        Mutant(
            "divided already",
            "output is the sum",
            "return highest, total, output",
            "return highest, total, output / total if first[1] * second[1] else output",
        ),
        Mutant(
            "the first output is changed in place",
            "left as they were",
            "output = share * first[2] + other * second[2]",
            "output = first[2]; output *= share; output += other * second[2]",
        ),
        Mutant(
            "an output of zeros is taken for no tokens",
            "changes nothing",
            "if highest == -np.inf:",
            "if not first[2].any():\n        return second\n    if highest == -np.inf:",
        ),
        Mutant(
            "a highest score of zero is taken for no tokens",
            "changes nothing",
            "if highest == -np.inf:",
            "if highest == 0:\n        return first\n    if highest == -np.inf:",
        ),
        Mutant(
            "only two things",
            "returns three",
            "return highest, total, output",
            "return total, output",
        ),
    ),
    alternatives=(answers.merge_into_the_higher,),
)
