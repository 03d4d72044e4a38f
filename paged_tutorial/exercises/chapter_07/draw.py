"""Exercise 7.3: draw a token."""

from __future__ import annotations

from collections import Counter

import numpy as np

from .. import answers_07 as answers
from ..exercise import Exercise, Mutant
from ..play import NO_ACCIDENT, Broken, Case, Outcome, Play, require_function
from ..telling import where

DRAWN = "Above temperature 0 the token is drawn: other seeds and positions, other tokens."
GREEDY = "Temperature 0 takes the most likely token."
WHOLE_NUMBER = "A token is a whole number."
SAME_DRAW = "Equal arguments give an equal token, whatever was drawn in between."
OWN_DRAW = "Each seed draws for itself: seed 1 at position 2 is not seed 2 at position 1."
NEXT_DRAW = "Each position has a draw of its own."
KEPT = "Top-p keeps the fewest tokens that reach top_p together: the one that crosses it stays."
TEMPERATURE = "Logits are divided by the temperature, and top-p cuts what comes of that."
SHARES = "Of the tokens kept, each comes as often as its probability says."
LARGE = "Logits of any size are right: no exp overflows."
DRAWS = 400


def shares_of(logits, temperature: float, top_p: float) -> dict[int, float]:
    """The truth: the tokens kept, each with its probability."""
    scaled = np.asarray(logits, np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    kept: dict[int, float] = {}
    for token in np.argsort(-weights, kind="stable").tolist():
        if sum(kept.values()) >= top_p * weights.sum():
            break
        kept[token] = float(weights[token])
    return {token: weight / sum(kept.values()) for token, weight in kept.items()}


class DrawPlay(Play):
    """Single draws, then many, which are counted."""

    def begin(self) -> None:
        """Nothing yet."""

    def greedy(self, logits) -> None:
        """Temperature 0."""
        best = int(np.argmax(logits))
        found = self._draw(logits, 0.0, 0.9, 3, 5, GREEDY, f"{best}, the most likely")
        self.require(found == best, GREEDY, best, found)

    def again(self, seed: int, position: int) -> None:
        """The same arguments, with another draw in between."""
        first = self._many([(seed, position)])[0]
        self._many([(seed + 1, position)])
        second = self._many([(seed, position)])[0]
        expected = f"{first}, as before"
        self.require(first == second, SAME_DRAW, expected, second)

    def apart(self) -> None:
        """Among a thousand equally likely tokens, equal draws are no accident."""
        pairs = [(seed, position) for seed in (1, 2, 3) for position in (4, 5, 6)]
        found = dict(zip(pairs, self._many(pairs), strict=True))
        came = f"{found[1, 4]} each time"
        self.require(len(set(found.values())) > 1, DRAWN, "different tokens", came)
        for seed in (1, 2):
            ahead = [found[seed, position + 1] for position in (4, 5)]
            behind = [found[seed + 1, position] for position in (4, 5)]
            expected = f"seed {seed + 1} draws for itself"
            came = (
                f"{ahead} with seed {seed} at positions 5 and 6, {behind} with {seed + 1} at 4, 5"
            )
            self.require(ahead != behind, OWN_DRAW, expected, came)
            same = [found[seed, p] for p in (4, 5, 6)] == [found[seed + 1, p] for p in (4, 5, 6)]
            self.require(not same, OWN_DRAW, "other tokens for another seed", "the same three")
        three = [found[1, p] for p in (4, 5, 6)]
        self.require(len(set(three)) > 1, NEXT_DRAW, "several tokens", f"{three}")

    def swapped(self, *pairs) -> None:
        """Seed and position may not be mixed so that it does not matter which is which."""
        there = self._many(pairs)
        back = self._many([(position, seed) for seed, position in pairs])
        came = f"{there}, and with seed and position exchanged {back}"
        self.require(there != back, OWN_DRAW, "other tokens when they are exchanged", came)

    def later(self, start: int, stop: int) -> None:
        """A text may be so long that some number × seed + position comes twice."""
        zeros = [0.0] * 100
        there, back = (
            [
                self._draw(zeros, 1.0, 1.0, seed, p, WHOLE_NUMBER, "a token of 0 to 99")
                for p in chosen
            ]
            for seed, chosen in ((1, range(5)), (0, range(start, stop)))
        )
        self.calls.clear()
        self.run(self._text(zeros, 1.0, 1.0, 1, "0 to 4"), lambda: there)
        for index in range(len(back) - 4):
            said = f"{start + index} to {start + index + 4}"
            if back[index : index + 5] == there:
                self.run(self._text(zeros, 1.0, 1.0, 0, said), lambda: there)
                self.require(False, OWN_DRAW, "other tokens with seed 0", f"{there} again")

    def zero(self) -> None:
        """Seed 0 and position 0 are like any other."""
        three = self._many([(0, position) for position in (4, 5, 6)])
        self.require(len(set(three)) > 1, NEXT_DRAW, "several tokens", f"{three}")
        three = self._many([(seed, 0) for seed in (4, 5, 6)])
        self.require(len(set(three)) > 1, OWN_DRAW, "several tokens", f"{three}")

    def fewest(self, logits, top_p: float) -> None:
        """Equally likely tokens that reach top_p exactly: how many are kept, not which."""
        truth = len(shares_of(logits, 1.0, top_p))
        expected = f"{truth} different tokens: they reach {top_p} exactly"
        draws = [
            self._draw(logits, 1.0, top_p, 7, position, KEPT, expected) for position in range(DRAWS)
        ]
        text = self._text(logits, 1.0, top_p, 7, f"0 to {DRAWS - 1}")
        self.calls[-DRAWS:] = [Outcome(text, f"{sorted(set(draws))}", ended=True)]
        self.require(len(set(draws)) == truth, KEPT, expected, f"{sorted(set(draws))}")

    def often(self, rule: str, logits, temperature: float, top_p: float) -> None:
        """Draw at many positions and count."""
        truth = shares_of(logits, temperature, top_p)
        kept = ", ".join(f"{token} in {share:.0%}" for token, share in sorted(truth.items()))
        draws = [
            self._draw(logits, temperature, top_p, 7, position, rule, f"draws of {kept}")
            for position in range(DRAWS)
        ]
        self.calls[-DRAWS:] = [
            Outcome(f"{self._text(logits, temperature, top_p, 7, f'0 to {DRAWS - 1}')}", ended=True)
        ]
        counts = Counter(draws)
        came = ", ".join(f"{token} in {n / DRAWS:.0%}" for token, n in sorted(counts.items()))
        self.calls[-1].value = came
        self.require(counts.keys() <= truth.keys(), rule, kept, came)
        for token, share in truth.items():
            # Five standard deviations, and never less than one draw.
            room = 5 * (share * (1 - share) / DRAWS) ** 0.5 + 1 / DRAWS
            self.require(abs(counts[token] / DRAWS - share) <= room, rule, kept, came)

    def _many(self, pairs) -> list[int]:
        logits = np.zeros(1000, np.float32)
        return [
            self._draw(logits, 1.0, 1.0, seed, position, WHOLE_NUMBER, "a token of 0 to 999")
            for seed, position in pairs
        ]

    def _draw(self, logits, temperature, top_p, seed, position, rule, expected) -> int:
        logits = np.asarray(logits, np.float32)
        text = self._text(logits, temperature, top_p, seed, position)
        with np.errstate(all="ignore"):
            outcome = self.run(text, self.thing, logits, temperature, top_p, seed, position)
        if outcome.error is not None:
            rule = NO_ACCIDENT if rule is WHOLE_NUMBER else rule
            raise Broken(rule, expected, outcome.came(), where(outcome.error))
        token = outcome.integer(WHOLE_NUMBER, expected)
        self.require(0 <= token < len(logits), WHOLE_NUMBER, expected, token)
        return token

    def _text(self, logits, temperature, top_p, seed, position) -> str:
        told = [round(float(number), 2) for number in logits[:4]]
        told = f"{told}" if len(logits) <= 4 else f"{len(logits)} zeros"
        rest = f"temperature={temperature}, top_p={top_p}, seed={seed}, position={position}"
        return f"{self.name}({told}, {rest})"


def draw_cases():
    """Each brings one new difficulty, and the rule that goes with it."""
    halves = np.log([0.5, 0.3, 0.2]).tolist()
    for logits in ([0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [0.0, 1.0, 2.0], [-2.0, -3.0], [9.0]):
        yield Case((), (("greedy", logits),))
    yield Case((), (("again", 1, 2),))
    yield Case((), (("apart",),))
    yield Case((), (("swapped", (1, 2), (4, 9), (3, 8)),))
    yield Case((), (("zero",),))
    for some in ((1, 1100), (4096, 4101), (10_000, 10_005)):
        yield Case((), (("later", *some),))
    yield Case((), (("often", SHARES, halves, 1.0, 1.0),))
    yield Case((), (("often", KEPT, halves, 1.0, 0.4),))
    yield Case((), (("often", KEPT, halves, 1.0, 0.6),))
    yield Case((), (("often", KEPT, halves[::-1], 1.0, 0.6),))
    yield Case((), (("fewest", [0.0, 0.0, 0.0, 0.0], 0.5),))
    yield Case((), (("often", TEMPERATURE, halves, 0.5, 1.0),))
    yield Case((), (("often", TEMPERATURE, halves, 2.0, 1.0),))
    # At temperature 1 two tokens reach 0.75; at 3, where all are nearly equal, it takes three.
    yield Case((), (("often", TEMPERATURE, halves, 3.0, 0.75),))
    yield Case((), (("often", LARGE, [1000.0, 1001.0], 1.0, 1.0),))
    for logits, temperature in (([4000.0, 4001.0], 0.5), ([-4000.0, -4001.0], 2.0)):
        yield Case((), (("often", LARGE, logits, temperature, 1.0),))
    yield Case((), (("often", LARGE, [0.0, 4000.0, -4000.0], 1.0, 1.0),))


DRAW = Exercise(
    id="7.3",
    title="Draw a token",
    minutes=15,
    difficulty=2,
    stub='''
def draw_token(logits, temperature, top_p, seed, position):
    """The next token, given logits (vocabulary_size,) at a position.

    temperature 0: the most likely one. Else divide the logits by it and take the softmax;
    keep the most likely tokens, as few as reach top_p together; draw one of them by its
    probability. The draw depends on seed and position and on nothing else, and each pair of
    them has a draw of its own.
    """
    raise NotImplementedError
''',
    hints=(
        "Sort by probability, falling, and add up: `np.cumsum`. How many entries does it take to "
        "reach top_p? The one that crosses it is one of them.",
        "What is kept adds up to less than 1. Divide by its sum before you draw.",
        "`np.random.default_rng([seed, position])` makes a generator for this one draw.",
    ),
    solution=answers.draw_token,
    require=lambda thing: require_function(
        thing, "logits", "temperature", "top_p", "seed", "position"
    ),
    play=DrawPlay,
    cases=draw_cases,
    insight="Since seed and position are all the draw knows, it does not matter who else is in the "
    "batch, or whether the request was preempted on the way. Randomness is an input like any "
    "other.",
    mutants=(
        Mutant(
            "a generator for all",
            "whatever was drawn",
            "np.random.default_rng([seed, position])",
            "vars(np).setdefault('_all_draws', np.random.default_rng(0))",
        ),
        Mutant(
            "seed and position are added",
            "draws for itself",
            "[seed, position]",
            "seed + position",
        ),
        Mutant(
            "a seed has room for a thousand positions",
            "draws for itself",
            "[seed, position]",
            "1000 * seed + position",
        ),
        Mutant(
            "a number made of seed and position",
            "draws for itself",
            "[seed, position]",
            "31 * seed + position",
        ),
        Mutant(
            "the first token is never the most likely",
            "Temperature 0",
            "int(np.argmax(logits))",
            "int(np.argmax(logits[1:])) + 1",
        ),
        Mutant(
            "temperature 0 always gives the same token",
            "Temperature 0",
            "int(np.argmax(logits))",
            "1",
        ),
        Mutant("the lowest is subtracted", "no exp overflows", "scaled.max()", "scaled.min()"),
        Mutant(
            "the highest before the temperature is subtracted",
            "no exp overflows",
            "scaled.max()",
            "np.max(logits)",
        ),
        Mutant("the position is forgotten", "draw of its own", "[seed, position]", "seed"),
        Mutant("always the most likely", "the token is drawn", "if temperature == 0:", "if True:"),
        Mutant(
            "seed and position are mixed evenly",
            "draws for itself",
            "[seed, position]",
            "seed ^ position",
        ),
        Mutant(
            "seed 0 has one draw for all",
            "draw of its own",
            "[seed, position]",
            "seed * (1000 + position)",
        ),
        Mutant(
            "a token more when top_p is reached exactly",
            "crosses it stays",
            "(cumulative, top_p) + 1",
            "(cumulative, top_p, side='right') + 1",
        ),
        Mutant(
            "the token that crosses is cut off",
            "crosses it stays",
            "np.searchsorted(cumulative, top_p) + 1",
            "max(1, np.searchsorted(cumulative, top_p))",
        ),
        Mutant(
            "one token too many",
            "crosses it stays",
            "np.searchsorted(cumulative, top_p) + 1",
            "np.searchsorted(cumulative, top_p) + 2",
        ),
        Mutant(
            "not divided by the sum",
            "crosses it stays",
            " / probabilities[kept].sum()",
            "",
        ),
        Mutant(
            "all kept are equally likely",
            "as its probability says",
            ", p=probabilities[kept] / probabilities[kept].sum()",
            "",
        ),
        Mutant(
            "top-p before temperature",
            "top-p cuts what comes",
            "cumulative = np.cumsum(probabilities[order])",
            "plain = np.exp(logits - logits.max())\n"
            "    cumulative = np.cumsum(plain[order]) / plain.sum()",
        ),
        Mutant(
            "multiplied by the temperature",
            "divided by the temperature",
            "np.float64) / temperature",
            "np.float64) * temperature",
        ),
        Mutant(
            "exp without a maximum",
            "no exp overflows",
            "np.exp(scaled - scaled.max())",
            "np.exp(scaled)",
        ),
        Mutant("no case for temperature 0", "Temperature 0", "temperature == 0", "False"),
        Mutant(
            "probabilities not sorted",
            "crosses it stays",
            "np.argsort(-probabilities)",
            "np.arange(len(probabilities))",
        ),
    ),
    alternatives=(answers.draw_token_by_hand,),
)
