"""Exercise 3.1: from position to slot."""

from __future__ import annotations

import random

from paged_tutorial import PageTable

from .. import answers_03 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_function
from .common import SLOT, true_slot


class SlotOf(Play):
    """One call for one position."""

    whose = "The"

    def begin(self, block_ids: tuple[int, ...], position: int, block_size: int) -> None:
        self.subject = PageTable(block_size, block_ids)
        blocks = list(block_ids)
        text = f"{self.name}({blocks}, {position}, {block_size})"
        outcome = self.run(text, self.thing, blocks, position, block_size)
        logical, offset = divmod(position, block_size)
        block, truth = blocks[logical], true_slot(blocks, position, block_size)
        expected = f"{truth}: block {block}, offset {offset}, {block} × {block_size} + {offset}"
        came = outcome.integer(SLOT, expected)
        self.require(came == truth, SLOT, expected, came)


def slot_of_cases():
    """Every position of a few small tables, then some of large ones."""
    for block_size, blocks in ((4, (5, 0)), (2, (1, 3, 0)), (3, (2,)), (1, (4, 7)), (5, (0, 9, 3))):
        for position in range(len(blocks) * block_size):
            yield Case((blocks, position, block_size))
    large = tuple(random.Random(3).sample(range(10_000), 100))
    for position in (0, 15, 16, 17, 777, 1599):
        yield Case((large, position, 16))


SLOT_OF = Exercise(
    id="3.1",
    title="From position to slot",
    minutes=4,
    difficulty=1,
    stub='''
def slot_of(block_ids, position, block_size):
    """The slot of a position, for a text whose page table is the list `block_ids`.

    slot_of([5, 0], 6, 4) is 2: position 6 is in logical block 1, which is block 0, at offset 2.
    """
    raise NotImplementedError
''',
    hints=(
        "Two numbers come from the position: in which logical block it lies, and how far into "
        "it. One is a quotient, the other a remainder.",
        "`divmod(position, block_size)` gives both. The table, at the first, is the block id.",
        "Before block 5 lie 5 whole blocks, that is `5 * block_size` slots.",
    ),
    solution=answers.slot_of,
    require=lambda thing: require_function(thing, "block_ids", "position", "block_size"),
    play=SlotOf,
    cases=slot_of_cases,
    insight="One division, one look-up, one multiplication, and never a search: a slot is found "
    "as fast in a text of a million tokens as in one of ten.",
    mutants=(
        Mutant(
            "the table is left out",
            "the table has the block id",
            "block_ids[logical] * block_size",
            "logical * block_size",
        ),
        Mutant("the offset is left out", "+ offset", " + offset", ""),
        Mutant("slots are blocks", "block size", "* block_size + offset", "+ offset"),
        Mutant(
            "quotient and remainder exchanged",
            "block id × block size",
            "logical, offset =",
            "offset, logical =",
        ),
        Mutant("block size fixed at 16", "block size", "divmod(position, block_size)",
               "divmod(position, 16)"),
        Mutant("positions count from 1", "offset", "divmod(position, ", "divmod(position - 1, "),
        Mutant("no return", "slot is", "return block", "block"),
    ),
    alternatives=(answers.slot_of_walking,),
)  # fmt: skip
