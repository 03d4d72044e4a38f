"""Exercise 6.2: find the bug: a repair that passes its test."""

from __future__ import annotations

import functools

import numpy as np

from paged_tutorial import DenseKV, random_model

from .. import answers_06 as answers
from ..exercise import Exercise, Mutant
from ..planted import require_mended
from ..play import Broken, Case, Outcome, Play
from ..telling import advice_on
from .common import subsets

ALL_OF_THEM = "Afterwards no missing position is left."
NOTHING_ELSE = "Only missing positions are computed: the others are read."
RIGHT_TOKEN = "At position p the model runs on tokens[p]."
ORIGINAL = "Each token is computed at its own position in the text."
RESTS = "A position rests on all before it: those must be there before it attends."
LAST_LOGITS = "Returned are the logits at the last missing position, (vocabulary_size,)."
NUMBERS = 1e-3  # the model's numbers have size 1; the mistakes to be found are far larger


@functools.cache
def _tiny():
    return random_model()


@functools.cache
def _cold(length: int):
    """(tokens, memory, logits of all positions) of a text computed in one pass."""
    tokens = [(37 * position + 11) % 101 for position in range(length)]
    memory, positions = DenseKV(_tiny().config, length), np.arange(length)
    return tokens, memory, _tiny().forward(tokens, positions, memory.at(positions))


class WatchedKV(DenseKV):
    """A memory with some positions lost, which notes the positions that are written."""

    def __init__(self, whole: DenseKV, missing) -> None:
        super().__init__(_tiny().config, whole.keys.shape[1])
        self.keys[:], self.values[:] = whole.keys, whole.values
        self.keys[:, missing] = self.values[:, missing] = np.nan
        self.written: list[int] = []

    def write(self, layer: int, keys, values) -> None:
        """As always, and noted."""
        super().write(layer, keys, values)
        self.written += self.positions.tolist()


class RepairPlay(Play):
    """One repair; keys and values of all layers against those of a cold run."""

    def begin(self, length: int, missing: tuple[int, ...]) -> None:
        """Lose some positions of a text, and let the reader bring them back."""
        tokens, whole, logits = _cold(length)
        missing = list(missing)
        memory = WatchedKV(whole, missing)
        text = f"logits = {self.name}(model, tokens, missing={missing}, memory)"
        text += f"  # {length} token{'s' * (length > 1)}"
        with np.errstate(all="ignore"):
            outcome = self.run(text, self.thing, _tiny(), list(tokens), list(missing), memory)
        outcome.returned("logits")
        other = sorted(set(memory.written) - {*missing})
        self.require(not other, NOTHING_ELSE, f"positions {missing}", f"also positions {other}")
        left = sorted({*missing} - set(memory.written))
        self.require(not left, ALL_OF_THEM, f"positions {missing}", f"{left} are still missing")
        self._compare(memory, whole, missing)
        self._logits(outcome, logits[missing[-1]])

    def _compare(self, memory, whole, missing) -> None:
        """Layer by layer: in the first one only tokens and positions can be wrong."""
        for rule, layers, found, wanted in (
            (RIGHT_TOKEN, slice(0, 1), memory.values, whole.values),
            (ORIGINAL, slice(0, 1), memory.keys, whole.keys),
            (RESTS, slice(1, None), memory.values, whole.values),
        ):
            for position in missing:
                pair = found[layers, position], wanted[layers, position]
                with np.errstate(invalid="ignore"):
                    off = float(np.abs(pair[0] - pair[1]).max())
                where = f"at position {position} the keys and values of the cold run"
                came = "NaN" if np.isnan(off) else f"numbers that are off by up to {off:.2f}"
                self.require(off < NUMBERS, rule, where, came)

    def _logits(self, outcome: Outcome, wanted) -> None:
        value = outcome.value
        shape = getattr(value, "shape", None)
        expected = f"logits of shape {wanted.shape}, as in the cold run"
        if shape != wanted.shape:
            came = outcome.came() if shape is None else f"shape {shape}"
            raise Broken(LAST_LOGITS, expected, came, advice_on(value))
        off = float(np.abs(value - wanted).max())
        self.require(off < NUMBERS, LAST_LOGITS, expected, f"off by up to {off:.2f}")


def repair_cases():
    """One missing position, two of them, blocks of two, then all patterns of a short text."""
    yield Case((1, (0,)))
    yield Case((2, (1,)))
    yield Case((3, (0, 1)))
    yield Case((3, (1, 2)))
    for missing in subsets(5):
        if missing:
            yield Case((5, missing))
    yield Case((24, (4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23)))


REPAIR_STUB = '''
def repair(model, tokens, missing, memory):
    """Compute the missing positions of a text in one pass. The logits at the last of them."""
    lost = [tokens[position] for position in missing]
    logits = model.forward(lost, range(len(lost)), memory.at(missing))
    return logits[-1]
'''


REPAIR = Exercise(
    id="6.2",
    title="Find the bug: a repair that passes its test",
    minutes=8,
    difficulty=2,
    stub=REPAIR_STUB,
    hints=(
        "Which blocks can be lost and repaired without harm? Print the verdict for each. What "
        "is special about the one that comes out right?",
        "The keys are turned by an angle that depends on the position. By which angle is the key "
        "of the token at position 24 turned here?",
        "`model.forward` wants the positions in the text, and they stand in `missing`.",
    ),
    solution=answers.repair,
    require=lambda thing: require_mended(
        thing, REPAIR_STUB, "`repair` is as it was planted: some repaired chats answer wrongly."
    ),
    play=RepairPlay,
    cases=repair_cases,
    insight="The test lost the beginning, where counting from 0 happens to be right. Test holes "
    "in the middle. An engine that restarts a request at the wrong position has this very bug, "
    "and it shows as a model that has become a little stupid.",
    mutants=(
        Mutant(
            "the first tokens of the text",
            "runs on tokens[p]",
            "lost = [tokens[position] for position in missing]",
            "lost = tokens[: len(missing)]",
        ),
        Mutant(
            "renumbered from the first missing one",
            "own position",
            "forward(lost, missing,",
            "forward(lost, range(missing[0], missing[0] + len(lost)),",
        ),
        Mutant(
            "one at a time, from the back",
            "rests on all before",
            "    logits = model.forward(lost, missing, memory.at(missing))\n    return logits[-1]",
            "    done = [model.forward([t], [p], memory.at([p])) for t, p in "
            "zip(lost[::-1], missing[::-1])]\n    return done[0][0]",
        ),
        Mutant(
            "the whole text again",
            "the others are read",
            "    logits = model.forward(lost, missing, memory.at(missing))",
            "    every = range(len(tokens))\n"
            "    logits = model.forward(tokens, every, memory.at(every))",
        ),
        Mutant(
            "only the first",
            "is left",
            "    logits = model.forward(lost, missing, memory.at(missing))",
            "    logits = model.forward(lost[:1], missing[:1], memory.at(missing[:1]))",
        ),
        Mutant("all logits", "(vocabulary_size,)", "return logits[-1]", "return logits"),
        Mutant("the first logits", "last missing", "return logits[-1]", "return logits[0]"),
    ),
    alternatives=(answers.repair_one_at_a_time,),
)
