"""The exercises of chapter 5: paged attention."""

from __future__ import annotations

import copy
import functools
import math
from itertools import product

import numpy as np

from paged_tutorial import (
    Batch,
    PagedEngine,
    dense_attention,
    random_model,
)

from . import answers_05 as answers
from .checking import all_sequences
from .exercise import Exercise, Mutant
from .play import (
    NO_ACCIDENT,
    SAME_INPUT,
    Broken,
    Case,
    Outcome,
    Play,
    Unattempted,
    require_function,
)
from .smollm2 import new_tokens_of, smollm2
from .telling import advice_on, message_of

EXACT = 1e-4  # for numbers of size 1; the mistakes to be found are far larger


def numbers(
    outcome: Outcome, shape: tuple[int, ...], rule: str, expected: str, form: str = ""
) -> np.ndarray:
    """The value as float64 numbers of this shape. Raises Broken for anything else.

    rule: broken by an exception of arithmetic; form: broken by another shape, if not the same
    """
    arithmetic = isinstance(outcome.error, ArithmeticError)
    value = outcome.returned(expected, rule if arithmetic else NO_ACCIDENT)
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        found = None
    wanted = f"an array of shape {shape}: {expected}" if shape else f"a number: {expected}"
    if found is None or found.shape != shape:
        # None and single numbers have a shape too, (), which says less than they do.
        plain = found is None or not found.shape
        came = outcome.came() if plain else f"shape {found.shape}"
        raise Broken(form or rule, wanted, came, advice_on(value))
    return found


def close(found, truth) -> bool:
    """Equal but for rounding, infinities included."""
    return bool(np.allclose(found, truth, rtol=EXACT, atol=EXACT))


def told(array) -> str:
    """Few numbers, rounded."""
    array = np.asarray(array, np.float64)
    if array.ndim == 0:
        return f"{array:.4g}"
    return f"[{', '.join(told(entry) for entry in array)}]"


def softmax_mean(scores, values) -> np.ndarray:
    """The truth, in float64: the mean of the values, weighted by exp(score)."""
    weights = [math.exp(score - max(scores)) for score in scores]
    return np.array(weights) @ np.asarray(values, np.float64) / sum(weights)


# -- 5.1 ----------------------------------------------------------------------------------

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

# -- 5.2 ----------------------------------------------------------------------------------

OWN = "A query sees every position up to its own, the last one included."
SCALED = "Scores are query · key / √head_dim."
LATER = "A query sees no position after its own."
GARBAGE = "Slots that were never written may hold NaN, in keys and in values."
ONE_SOFTMAX = "All blocks share one softmax: it is rescaled whenever the maximum rises."
PLACES = "Logical block k lies in physical block table[k]."
LARGE = "Large scores do not overflow."
ONE_VECTOR = "The result is one vector, (head_dim,)."
NO_FURTHER = "The loop ends with the block of the query's own position; the table has no more."


def layout(position: int, block_size: int, shuffled: bool) -> list[int]:
    """A page table for positions up to this one."""
    order = list(range(position // block_size + 1))
    return order[::-1] if shuffled else order


class AttendPlay(Play):
    """One query over a few blocks; keys and values are small whole numbers."""

    def begin(
        self,
        position: int,
        block_size: int,
        rule: str,
        shuffled=False,
        filling=0.0,
        scale=1.0,
        later=0,
    ) -> None:
        """filling: what the unused slots hold; scale: how large the scores are.

        later: how many tokens of the text come after the query's
        """
        table = layout(position + later, block_size, shuffled)
        number = np.arange(position + later + 1)
        keys = np.stack([3 * number % 7 - 3, number % 2, number % 3, 0 * number], 1) * scale
        values = np.stack([number + 1, number % 3, -number, 0 * number + 5], 1)
        # Not the same query each time, or an answer could do without it.
        query = np.array([-1, 2, 0.5, 1] if shuffled and position % 2 else [1, -1, 1, 2])
        blocks = np.full((2, len(table) + 1, block_size, 4), filling, np.float64)
        for index in number:
            blocks[:, table[index // block_size], index % block_size] = keys[index], values[index]
        seen = slice(0, position + 1)
        truth = softmax_mean((keys[seen] @ query / 2).tolist(), values[seen])
        text = f"{self.name}(query, key_blocks, value_blocks, table={table}, position={position})"
        text += f"  # block size {block_size}, the value of position j is [j + 1, j % 3, -j, 5]"
        with np.errstate(all="ignore"):
            outcome = self.run(text, self.thing, query, *blocks, np.array(table), position)
        if isinstance(outcome.error, IndexError) and "bounds" in message_of(outcome.error):
            outcome.returned(told(truth), NO_FURTHER)
        found = numbers(outcome, (4,), rule, told(truth), ONE_VECTOR)
        self.require(close(found, truth), rule, told(truth), told(found))


def attend_cases():
    """Each case brings one new difficulty, and the rule that goes with it."""
    yield Case((0, 1, OWN))
    yield Case((1, 2, SCALED))
    yield Case((1, 2, SCALED, True))
    yield Case((3, 4, OWN))
    yield Case((1, 4, LATER))
    yield Case((1, 4, GARBAGE, False, math.nan))
    yield Case((3, 2, ONE_SOFTMAX))
    yield Case((4, 3, PLACES, True))
    for position, block_size in product(range(14), (1, 2, 3, 4, 5)):
        yield Case((position, block_size, OWN, True))
        yield Case((position, block_size, GARBAGE, True, math.nan))
        yield Case((position, block_size, LATER, True, math.nan, 1.0, 3))
    # The highest score of all may lie in the first block that is read, or in the last.
    for position, block_size in product((5, 6, 7, 8), (2, 3)):
        yield Case((position, block_size, LARGE, True, math.nan, 30_000.0))


ATTEND_STUB = '''
def attend(query, key_blocks, value_blocks, table, position):
    """Attention of one query over the blocks of its text. (head_dim,)"""
    block_size, head_dim = key_blocks.shape[1:]
    highest, total, output = -np.inf, 0.0, np.zeros(head_dim)
    for logical in range(blocks_needed(position, block_size)):
        block = table[logical]
        seen = logical * block_size + np.arange(block_size) <= position
        scores = key_blocks[block] @ query / np.sqrt(head_dim)
        scores = np.where(seen, scores, -np.inf)
        values = np.where(seen[:, None], value_blocks[block], 0)
        new_highest = max(highest, scores.max())
        shrink = np.exp(highest - new_highest)
        weights = np.exp(scores - new_highest)
        total = total * shrink + weights.sum()
        output = output * shrink + weights @ values
        highest = new_highest
    return output / total
'''


def require_other_than_planted(thing) -> None:
    """A function, and not the one with the planted bug."""
    require_function(thing, "query", "key_blocks", "value_blocks", "table", "position")
    names: dict[str, object] = {}
    exec(ATTEND_STUB, {}, names)
    code, planted = getattr(thing, "__code__", None), names["attend"].__code__
    same = code is not None and code.co_consts == planted.co_consts
    if same and (code.co_code, code.co_names) == (planted.co_code, planted.co_names):
        raise Unattempted("`attend` is as it was planted: one token in four goes wrong.")


ATTEND = Exercise(
    id="5.2",
    title="Find the bug: one token in four",
    minutes=8,
    difficulty=2,
    stub=ATTEND_STUB,
    hints=(
        "Which positions are wrong? Print the differences in the test below for all of them.",
        "The wrong ones are 0, 4, 8, … A query at position 4 is the first token of a new block. "
        "Count the blocks that the loop visits.",
        "Position 4 is the *fifth* token. How many blocks do five tokens need?",
    ),
    solution=answers.attend,
    require=require_other_than_planted,
    play=AttendPlay,
    cases=attend_cases,
    insight="A position is one less than a length. Engines confuse the two at block boundaries, "
    "and the answer stays fluent: the token just does not see itself. So test each length "
    "around a boundary: chapter 3 asked for the same.",
    mutants=(
        Mutant("the planted bug", "last one included", "position + 1,", "position + 0,"),
        Mutant(
            "one block too many",
            "table has no more",
            "position + 1,",
            "position + block_size + 1,",
        ),
        Mutant("no rescaling of the output", "one softmax", "output * shrink", "output"),
        Mutant("no rescaling of the total", "one softmax", "total * shrink", "total"),
        Mutant(
            "values are not masked",
            "may hold NaN",
            "np.where(seen[:, None], value_blocks[block], 0)",
            "value_blocks[block]",
        ),
        Mutant("not scaled", "√head_dim", " / np.sqrt(head_dim)", ""),
        Mutant(
            "the token does not see itself",
            "last one included",
            "np.arange(block_size) <= position",
            "np.arange(block_size) < position",
        ),
        Mutant(
            "nothing is masked",
            "after its own",
            "np.arange(block_size) <= position",
            "np.arange(block_size) < np.inf",
        ),
        Mutant("logical for physical", "table[k]", "block = table[logical]", "block = logical"),
        Mutant(
            "the query is taken for the last token of its text",
            "after its own",
            "    highest, total",
            "    position = max(position, (len(table) - 1) * block_size)\n    highest, total",
        ),
        Mutant(
            "keys are added up",
            "√head_dim",
            "key_blocks[block] @ query",
            "key_blocks[block] @ [1, -1, 1, 2.0]",
        ),
        Mutant(
            "the maximum of the present block",
            "overflow",
            "max(highest, scores.max())",
            "scores.max()",
        ),
        Mutant(
            "no running maximum",
            "overflow",
            "max(highest, scores.max())",
            "0.0",
        ),
    ),
    alternatives=(answers.attend_by_gathering,),
)

# -- 5.3 ----------------------------------------------------------------------------------

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

# -- 5.4 ----------------------------------------------------------------------------------

LIKE_QUERIES = "The result is an array like the queries: (num_tokens, num_heads, head_dim)."
GROUPED = "Query head h reads kv head h // (num_heads // num_kv_heads)."
BY_POSITION = "Each query has its own position, batch.positions[row], and sees up to it."
RAGGED = "Each request has its own rows and its own page table."
SAME_TOKENS = "On your attention the model writes the tokens that it writes on the package's."
TEXT = (
    "The key is in the red box and the coin is in the blue box. Both boxes stand on the table. "
    "To find the coin, open the"
)
LONG = 120.0  # seconds for a model on a busy machine


class PagedPlay(Play):
    """Small ragged batches against dense attention, then models on the reader's function."""

    def attend(self, rule, heads, kv_heads, block_size, chosen, filling=0.0, scale=1.0) -> None:
        """chosen: the positions of each request's queries; tables lie in falling order."""
        random = np.random.default_rng(5)
        counts = [max(positions) // block_size + 1 for positions in chosen]
        blocks = np.full((2, sum(counts) + 1, block_size, kv_heads, 4), filling, np.float32)
        free, tables, parts = list(range(sum(counts))), [], []
        for positions, count in zip(chosen, counts, strict=True):
            table = np.array([free.pop() for _ in range(count)])
            at = np.arange(max(positions) + 1)
            both = random.normal(size=(2, len(at), kv_heads, 4)).astype(np.float32)
            both[0] *= scale
            blocks[:, table[at // block_size], at % block_size] = both
            queries = random.normal(size=(len(positions), heads, 4)).astype(np.float32)
            parts.append((queries, dense_attention(queries, *both, positions)))
            tables.append(table)
        queries, truth = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        flat = np.array([position for positions in chosen for position in positions])
        batch = Batch(flat, np.cumsum([0, *map(len, chosen)]), tables)
        text = f"{self.name}(queries, key_blocks, value_blocks, batch)  # positions "
        text += f"{[list(p) for p in chosen]}, tables {[t.tolist() for t in tables]}, "
        text += f"block size {block_size}, {heads} heads, {kv_heads} kv heads"
        with np.errstate(all="ignore"):
            outcome = self.run(text, self.thing, queries, *blocks, batch)
        found = numbers(outcome, truth.shape, rule, "an array like the queries", LIKE_QUERIES)
        kind = type(outcome.value).__name__
        an_array = isinstance(outcome.value, np.ndarray)
        self.require(an_array, LIKE_QUERIES, "an array", f"a {kind}")
        wrong = np.argwhere(~np.isclose(found, truth, rtol=EXACT, atol=EXACT).all(axis=-1))
        for row, head in wrong[:1].tolist():
            where = f"row {row}, head {head}: "
            expected, came = where + told(truth[row, head]), where + told(found[row, head])
            self.require(False, rule, expected, came)

    def serve(self, name: str) -> None:
        """A model on the reader's attention, token for token."""
        self.wait(LONG)
        model, prompts, new_tokens = _workload(name)
        expected = _expected(name)

        def answer():
            engine = PagedEngine(model, 40, 4, attention=self.thing)
            return new_tokens_of(engine, prompts, new_tokens)

        text = f"PagedEngine(model, 40, 4, attention={self.name}).generate(…)  # {name}"
        outcome = self.run(text, answer, seconds=LONG)
        tokens = outcome.returned("tokens", SAME_TOKENS)
        self.require(tokens == expected, SAME_TOKENS, f"tokens {expected}", f"tokens {tokens}")


@functools.cache
def _workload(name: str):
    """Model, prompts, new tokens for each."""
    if name == "tiny":
        return random_model(), [[5, 17, 3, 99, 42], [1, 2], list(range(9))], 6
    model, tokenizer = smollm2()
    return model, [tokenizer.encode(TEXT)], 8


@functools.cache
def _expected(name: str) -> list[list[int]]:
    model, prompts, new_tokens = _workload(name)
    return new_tokens_of(PagedEngine(model, 40, 4), prompts, new_tokens)


def paged_cases():
    """Each case brings one new difficulty, and the rule that goes with it; then two models."""
    nan = math.nan

    def case(*arguments):
        return Case((), (("attend", *arguments),))

    yield case(OWN, 1, 1, 1, [[0]])
    yield case(SCALED, 1, 1, 2, [[1]])
    yield case(LATER, 1, 1, 4, [[1]])
    yield case(GARBAGE, 1, 1, 4, [[1]], nan)
    yield case(ONE_SOFTMAX, 1, 1, 2, [[3]])
    yield case(PLACES, 1, 1, 3, [[4]])
    yield from (case(OWN, 1, 1, 4, [[position]]) for position in range(3, 9))
    yield case(GROUPED, 2, 1, 4, [[2]])
    yield case(GROUPED, 4, 2, 4, [[2]])
    yield from (case(GROUPED, *heads, 4, [[5]]) for heads in ((8, 2), (6, 2), (9, 3), (12, 4)))
    yield case(GROUPED, 9, 3, 2, [[5]])
    yield case(BY_POSITION, 2, 1, 4, [[0, 1]])
    yield case(BY_POSITION, 2, 1, 4, [[2, 5, 9]], nan)
    yield case(RAGGED, 2, 1, 4, [[1], [2]])
    yield case(RAGGED, 6, 2, 4, [[8], [0, 1, 2], [3, 6]], nan)
    yield case(LARGE, 6, 2, 4, [[6], [3]], nan, 30_000.0)
    yield Case((), (("serve", "tiny"),))
    yield Case((), (("serve", "SmolLM2"),))


PAGED = Exercise(
    id="5.4",
    title="Run SmolLM2 on your attention",
    minutes=25,
    difficulty=3,
    stub='''
def my_paged_attention(queries, key_blocks, value_blocks, batch):
    """Attention of the queries of many requests over the blocks of one layer. Like queries.

    queries: (num_tokens, num_heads, head_dim), all requests one after the other
    key_blocks, value_blocks: (num_blocks, block_size, num_kv_heads, head_dim)
    batch.requests() yields for each request: its rows (a slice), the position of each of
    them (an array), and its page table (an array of physical block ids).
    """
    raise NotImplementedError
''',
    hints=(
        "Three loops will do: requests, rows of the request, heads. Inside them it is one query "
        "over the blocks of one text: exercise 5.2.",
        "Head h reads `key_blocks[block, :, h // group]` with `group = num_heads // num_kv_heads`.",
        "`for rows, positions, table in batch.requests():` and then "
        "`for row, position in zip(range(rows.start, rows.stop), positions):`. Write into "
        "`output[row, head]`.",
    ),
    solution=answers.my_paged_attention,
    require=lambda thing: require_function(thing, "queries", "key_blocks", "value_blocks", "batch"),
    play=PagedPlay,
    cases=paged_cases,
    insight="SmolLM2 wrote its sentence on your attention, token for token. The engine needs to "
    "know nothing of how you read the blocks. Chapter 12 puts a compiled kernel into the same "
    "place.",
    mutants=(
        Mutant(
            "kv heads are dealt like cards",
            "kv head h //",
            "scores = keys[:, head // group]",
            "scores = keys[:, head % num_kv_heads]",
        ),
        Mutant(
            "values from the first kv head",
            "kv head h //",
            "weights @ values[:, head // group]",
            "weights @ values[:, 0]",
        ),
        Mutant("not scaled", "√head_dim", " / np.sqrt(head_dim)", ""),
        Mutant(
            "the whole last block is seen",
            "after its own",
            "keys = key_blocks[blocks].reshape(-1, num_kv_heads, head_dim)[: position + 1]\n"
            "            values = value_blocks[blocks].reshape(-1, num_kv_heads, head_dim)"
            "[: position + 1]",
            "keys = key_blocks[blocks].reshape(-1, num_kv_heads, head_dim)\n"
            "            values = value_blocks[blocks].reshape(-1, num_kv_heads, head_dim)",
        ),
        Mutant(
            "positions count within the request's rows",
            "its own position",
            "in zip(range(rows.start, rows.stop), positions, strict=True)",
            "in ((row, max(positions) - rows.stop + 1 + row) for row in range(*rows.indices(99)))",
        ),
        Mutant(
            "the blocks as they lie",
            "table[k]",
            "blocks = table[: position // block_size + 1]",
            "blocks = np.sort(table[: position // block_size + 1])",
        ),
        Mutant("no maximum", "overflow", "scores - scores.max()", "scores"),
        Mutant(
            "heads in one row",
            "like the queries",
            "return output",
            "return output.reshape(len(output), -1)",
        ),
        Mutant("a list of rows", "like the queries", "return output", "return list(output)"),
        Mutant(
            "a block for as many tokens as there are kv heads",
            "kv head h //",
            "blocks = table[: position // block_size + 1]",
            "blocks = table[: position // max(num_kv_heads, block_size) + 1]",
        ),
        Mutant(
            "only the first request",
            "own rows",
            "in batch.requests()",
            "in list(batch.requests())[:1]",
        ),
        Mutant(
            "the first block is left out",
            "last one included",
            "blocks = table[: position // block_size + 1]",
            "blocks = table[: max(1, -(-position // block_size))]",
        ),
    ),
    alternatives=(answers.paged_attention_by_merging,),
)

EXERCISES = (MERGE, ATTEND, WINDOW, PAGED)
