"""Exercise 5.2: find the bug: one token in four."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from .. import answers_05 as answers
from ..exercise import Exercise, Mutant
from ..planted import require_mended
from ..play import Case, Play
from ..telling import message_of
from .common import close, numbers, softmax_mean, told

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
    require=lambda thing: require_mended(
        thing, ATTEND_STUB, "`attend` is as it was planted: one token in four goes wrong."
    ),
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
