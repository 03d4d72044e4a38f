"""Exercise 3.3: find the bug: one block off."""

from __future__ import annotations

from paged_tutorial import PageTable

from .. import answers_03 as answers
from ..checking import all_sequences, random_sequences
from ..exercise import Exercise, Mutant
from ..planted import require_mended
from ..play import Case, Play

COVERED = "After grow, every one of the tokens has a slot: the table is long enough."
NOT_EARLY = "No block is taken before a token needs it: a full block is not yet a reason."
TAKEN = "The table gets exactly the blocks that allocate hands out, in that order, at its end."


class Grow(Play):
    """Grow one table, several times, with blocks from a pool."""

    whose = "The"

    def begin(self, block_size: int) -> None:
        self.table = self.subject = PageTable(block_size)
        self.handed_out: list[int] = []
        # Not 0, 1, 2: a table that invents its blocks must not be right by accident.
        self.supply = iter([7, 2, 9, 4, 11, 0, 5, 13, 1, 8, 3, 12, 6, 10, *range(20, 2000)])
        self.run(f"table = PageTable({block_size})", lambda: None)

    def _allocate(self) -> int:
        self.handed_out.append(next(self.supply))
        return self.handed_out[-1]

    def grow(self, num_tokens: int) -> None:
        """Room for this many tokens in all."""
        table, size = self.table, self.table.block_size
        before = len(table)
        room = 0
        while room * size < num_tokens:
            room += 1
        wanted = max(before, room)
        text = f"{self.name}(table, {num_tokens}, pool.allocate)"
        self.run(text, self.thing, table, num_tokens, self._allocate).returned("no exception")
        slots = f"{num_tokens} token{'s' * (num_tokens != 1)} in blocks of {size}"
        expected = f"{wanted} block{'s' * (wanted != 1)}: {slots}"
        came = f"{len(table)}: {table.block_ids}"
        self.require(len(table) >= wanted, COVERED, expected, came)
        self.require(len(table) <= wanted, NOT_EARLY, expected, came)
        exactly = table.block_ids == self.handed_out
        exactly = exactly and not any(isinstance(block, float) for block in table.block_ids)
        self.require(exactly, TAKEN, self.handed_out, table.block_ids)


def grow_cases():
    """All short histories, then prompts of 3, 4 and 5 tokens that grow one by one."""
    for block_size in (2, 4):
        lengths = range(1, 2 * block_size + 2)
        yield from all_sequences((block_size,), [("grow", n) for n in lengths], 2)
    for prompt in (3, 4, 5):
        yield Case((4,), tuple(("grow", prompt + more) for more in range(10)))
    yield from random_sequences((16,), [("grow", n) for n in (1, 15, 16, 17, 33, 160)], 6, 20)
    yield Case((1,), tuple(("grow", n) for n in (0, 1, 2, 7)))


GROW_STUB = '''
def grow(table, num_tokens, allocate):
    """Make room for `num_tokens` tokens in all. Each block is taken by calling allocate()."""
    while len(table) <= num_tokens // table.block_size:
        table.append(allocate())
'''


GROW = Exercise(
    id="3.3",
    title="Find the bug: one block off",
    minutes=8,
    difficulty=2,
    stub=GROW_STUB,
    hints=(
        "The test tries 3, 5, 6 and 7 tokens. Which lengths does it leave out?",
        "With blocks of 4, how many blocks do 4 tokens need, and how many does the loop take? "
        "Write down `num_tokens // block_size` for 3, 4 and 5.",
        "The loop must go on while the table has *less room* than there are tokens. Room is "
        "`len(table) * block_size`.",
    ),
    solution=answers.grow,
    require=lambda thing: require_mended(
        thing, GROW_STUB, "`grow` is as it was planted, bug included."
    ),
    play=Grow,
    cases=grow_cases,
    insight="Compare room with tokens, and no rounding is left to get wrong. The planted version "
    "never gave a wrong answer: it only refused a text that would have fitted exactly.",
    mutants=(
        Mutant("a block early", "a full block is not yet", "< num_tokens", "<= num_tokens"),
        Mutant("one block at a time", "long enough", "while", "if"),
        Mutant(
            "rounded down",
            "long enough",
            "len(table) * table.block_size < num_tokens",
            "len(table) < num_tokens // table.block_size",
        ),
        Mutant(
            "the last block may be missing",
            "long enough",
            "< num_tokens",
            "< num_tokens - 1",
        ),
        Mutant(
            "what the table has is forgotten",
            "a full block is not yet",
            "while len(table) * table.block_size < num_tokens:",
            "for _ in range(-(-num_tokens // table.block_size)):",
        ),
        Mutant(
            "blocks are invented",
            "exactly the blocks",
            "table.append(allocate())",
            "table.append(len(table))",
        ),
        Mutant(
            "a block gets lost",
            "exactly the blocks",
            "table.append(allocate())",
            "allocate(); table.append(allocate())",
        ),
        Mutant(
            "new blocks at the front",
            "at its end",
            "table.append(allocate())",
            "table.block_ids.insert(0, allocate())",
        ),
    ),
    alternatives=(answers.grow_by_counting,),
)
