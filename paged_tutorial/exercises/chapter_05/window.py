"""Exercise 5.3: sliding-window attention."""

from __future__ import annotations

from itertools import product

import numpy as np

from .. import answers_05 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_function
from .common import close, numbers, softmax_mean, told

SEES_ITSELF = "With a window of 1 a row sees only itself."
NARROW = "Row i sees rows i − window + 1 to i: as many as the window is wide."
BEGINNING = "The first rows see fewer: there is nothing before row 0."
CAUSAL = "No row sees a later one."
FINITE = "Each row subtracts its own maximum, and no number becomes NaN or infinite."
WHOLE = "The weights of the rows that a row sees add up to 1."
A_ROW_EACH = "The result has a row for each query: (num_tokens, head_dim)."
WEIGHTED = "Within the window it is attention: softmax of query · key / √head_dim."


class WindowPlay(Play):
    """One call; each row of the result against its own small softmax."""

    def begin(self, num_tokens: int, window: int, scale: float = 1.0) -> None:
        """scale: how large the scores are."""
        number = np.arange(num_tokens)
        queries = np.stack([number % 3 - 1, 1 + 0 * number, 0 * number, number % 2], 1) * scale
        keys = np.stack([number % 5 - 2, number % 4 - 1, number, -number % 3], 1) * 1.0
        values = np.stack([10.0 * number, number % 2, -number, 1 + 0 * number], 1)
        text = f"{self.name}(queries, keys, values, window={window})  # {num_tokens} tokens"
        text += ", values[j] is [10 * j, j % 2, -j, 1]"
        with np.errstate(all="ignore"):
            outcome = self.run(text, self.thing, queries, keys, values, window)
        found = numbers(outcome, (num_tokens, 4), FINITE, "a row for each query", A_ROW_EACH)
        for row, came in enumerate(found):
            first = max(0, row - window + 1)
            truth = self._mean(queries, keys, values, row, first, row + 1)
            seen = f"row {row}, which sees rows {first} to {row}: {told(truth)}"
            rule = self._rule(queries, keys, values, window, row, came)
            self.require(close(came, truth), rule, seen, told(came))

    @staticmethod
    def _mean(queries, keys, values, row, first, stop):
        scores = (keys[first:stop] @ queries[row] / 2).tolist()
        return softmax_mean(scores, values[first:stop])

    def _rule(self, queries, keys, values, window, row, came) -> str:
        """Which rule a wrong row breaks, from what it seems to have seen."""
        if not np.isfinite(came).all():
            return FINITE
        if not close(came[3], 1):  # the last of each value is 1, so this is the sum of weights
            return WHOLE
        firsts, stops = range(row + 1), range(row + 2, len(queries) + 1)
        looks_later = any(
            close(came, self._mean(queries, keys, values, row, first, stop))
            for first, stop in product(firsts, stops)
        )
        if looks_later:
            return CAUSAL
        if window == 1:
            return SEES_ITSELF
        if any(close(came, self._mean(queries, keys, values, row, f, row + 1)) for f in firsts):
            return NARROW if row >= window - 1 else BEGINNING
        if row and close(came, self._mean(queries, keys, values, row, max(0, row - window), row)):
            return NARROW
        return WEIGHTED if row >= window - 1 else BEGINNING


def window_cases():
    """One token, then windows of all widths; the case of the text; then large scores."""
    yield Case((1, 1))
    yield Case((2, 1))
    yield Case((2, 2))
    for num_tokens in range(2, 7):
        for window in range(1, num_tokens + 2):
            yield Case((num_tokens, window))
    yield Case((16, 4))
    yield Case((9, 3, 60_000.0))


WINDOW = Exercise(
    id="5.3",
    title="Sliding-window attention",
    minutes=12,
    difficulty=2,
    stub='''
def window_attention(queries, keys, values, window):
    """Attention in which row i sees only rows i - window + 1 to i. (num_tokens, head_dim)

    queries, keys, values: (num_tokens, head_dim), one head. With window 4, row 9 sees rows
    6, 7, 8 and 9; row 1 sees rows 0 and 1.
    """
    raise NotImplementedError
''',
    hints=(
        "How far back is key j from query i? `back = rows[:, None] - rows` has all the answers.",
        "Seen is what lies 0 to window − 1 back: two conditions. All other scores become −inf.",
        "Every row sees itself, so its maximum is finite: subtract it, exp, divide by the sum, "
        "`@ values`.",
    ),
    solution=answers.window_attention,
    require=lambda thing: require_function(thing, "queries", "keys", "values", "window"),
    play=WindowPlay,
    cases=window_cases,
    insight="A block whose tokens are all out of every window will never be read again, so it can "
    "be given back while the request runs. Only with a window: with full attention each query "
    "reads every block.",
    mutants=(
        Mutant("one too many", "only itself", "back < window", "back <= window"),
        Mutant(
            "one too few", "as many as the window", "back < window", "back < max(window - 1, 1)"
        ),
        Mutant("looks ahead", "later one", "(back >= 0) & (back < window)", "abs(back) < window"),
        Mutant("no window", "only itself", "(back >= 0) & (back < window)", "back >= 0"),
        Mutant("not scaled", "Within the window", " / np.sqrt(queries.shape[1])", ""),
        Mutant(
            "the last row only",
            "a row for each query",
            "    return weights / weights.sum(axis=1, keepdims=True) @ values",
            "    return (weights / weights.sum(axis=1, keepdims=True) @ values)[-1]",
        ),
        Mutant(
            "weights are not divided by their sum",
            "add up to 1",
            " / weights.sum(axis=1, keepdims=True)",
            "",
        ),
        Mutant(
            "masked after the softmax",
            "add up to 1",
            "    scores = np.where(seen, scores, -np.inf)\n"
            "    weights = np.exp(scores - scores.max(axis=1, keepdims=True))\n"
            "    return weights / weights.sum(axis=1, keepdims=True) @ values",
            "    weights = np.exp(scores - scores.max(axis=1, keepdims=True))\n"
            "    return weights / weights.sum(axis=1, keepdims=True) * seen @ values",
        ),
        Mutant(
            "one maximum for all rows",
            "its own maximum",
            "scores.max(axis=1, keepdims=True)",
            "scores.max()",
        ),
        Mutant(
            "blocks instead of a sliding window",
            "as many as the window",
            "back < window",
            "rows // window == rows[:, None] // window",
        ),
    ),
    alternatives=(answers.window_attention_by_row,),
)
