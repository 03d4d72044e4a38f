"""Exercise 1.4: find the bug: the buddy that is not found."""

from __future__ import annotations

import itertools

from paged_tutorial.placement import Buddy

from .. import answers_01 as answers
from ..checking import all_sequences, random_sequences
from ..exercise import Exercise, Mutant
from ..planted import require_mended
from ..play import Play

GONE = "A piece that is given back is no longer among the pieces."
ONCE = "Each slot is in one piece or free, and free once."
MULTIPLE = "A free piece of size s starts at a multiple of s."
JOINED = "Two free buddies become one piece, again and again as long as the buddy is free."


class GiveBack(Play):
    """Pieces are taken from a row by the package, and given back by the reader."""

    whose = "The"

    def begin(self, num_slots: int) -> None:
        """Make the row, and another one that is done right."""
        self.row, self.right = Buddy(num_slots), Buddy(num_slots)
        self.num_slots, self.names = num_slots, itertools.count()
        self.name_of: dict[int, str] = {}
        self.run(f"row = Buddy({num_slots})", lambda: None)

    def take(self, slots: int) -> None:
        """Take a piece, if there is one."""
        start = self.right.allocate(slots)
        if start is not None:
            self.name_of[start] = chr(ord("A") + next(self.names))
            self.run(f"row.allocate({slots})", self.row.allocate, slots)

    def give(self, which: int) -> None:
        """Give back a piece, counted from the left."""
        starts = sorted(self.right.pieces)
        if which >= len(starts):
            return
        start = starts[which]
        self.right.release(start)
        text = f"{self.name}(row, {start})"
        outcome = self.run(text, self.thing, self.row, start)
        row, free = self.row, _free(self.right)
        self.subject = Row(row, self.num_slots, self.name_of)
        outcome.returned("no exception")
        expected = f"pieces {self.right.pieces}, free {free}"
        came = f"pieces {row.pieces}, free {_free(row)}"
        self.require(row.pieces == self.right.pieces, GONE, expected, came)
        self.require(_slots(row) == _slots(self.right), ONCE, expected, came)
        crooked = any(at % size for size, starts in row.free.items() for at in starts)
        self.require(not crooked, MULTIPLE, expected, came)
        self.require(_free(row) == free, JOINED, expected, came)


class Row:
    """A row as a picture shows it: each slot a block, each piece a request."""

    # No fields to be told: they are not those that the reader's function works on.
    __slots__ = ("block_size", "free", "num_blocks", "tables")

    def __init__(self, row: Buddy, num_slots: int, name_of: dict[int, str]) -> None:
        self.num_blocks, self.block_size, self.free = num_slots, 1, _slots(row)
        self.tables = {
            name_of[start]: list(range(start, start + size)) for start, size in row.pieces.items()
        }


def _free(row: Buddy) -> dict[int, list[int]]:
    """Starts of free pieces by size, without sizes that have none."""
    return {size: sorted(starts) for size, starts in sorted(row.free.items()) if starts}


def _slots(row: Buddy) -> list[int]:
    """All free slots, each as often as it is free."""
    pieces = ((at, size) for size, starts in row.free.items() for at in starts)
    return sorted(slot for at, size in pieces for slot in range(at, at + size))


def give_back_cases():
    """All short sequences on a row of 8, and on one that is no power of two; longer ones."""
    for num_slots in (2, 4, 8, 6):
        takes = [("take", slots) for slots in (1, 2, 3) if slots <= num_slots // 2 + 1]
        gives = [("give", which) for which in range(3)]
        yield from all_sequences((num_slots,), [*takes, *gives], 5)
    moves = [*(("take", slots) for slots in (1, 1, 2, 3, 5)), *(("give", k) for k in range(5))]
    for num_slots in (32, 44):
        yield from random_sequences((num_slots,), moves, 24, 20)


GIVE_BACK_STUB = '''
def give_back(row, start):
    """Give a piece back to a Buddy row, and join it with its buddy as long as that is free.

    row.pieces: start of each piece to its size; row.free: size to the set of starts
    """
    size = row.pieces.pop(start)
    buddy = start + size
    while buddy in row.free[size]:
        row.free[size].remove(buddy)
        size *= 2
        buddy = start + size
    row.free[size].add(start)
'''


GIVE_BACK = Exercise(
    id="1.4",
    title="Find the bug: the buddy that is not found",
    minutes=12,
    difficulty=2,
    stub=GIVE_BACK_STUB,
    hints=(
        "Give the two pieces back from left to right instead, and look again.",
        "A piece was cut from one twice as long. It is the lower half, or the upper half. Where "
        "is the other half in each case?",
        "`start ^ size` flips the one bit in which the two halves differ. After joining, the "
        "piece starts where the lower half did.",
    ),
    solution=answers.give_back,
    require=lambda thing: require_mended(
        thing, GIVE_BACK_STUB, "`give_back` is as it was planted, bug included: pieces stay apart."
    ),
    play=GiveBack,
    cases=give_back_cases,
    insight="One flipped bit finds the neighbour, without a search: this is why the buddy system, "
    "published in 1965, still lives in operating systems. Its price is a rounding up to powers of "
    "two, the dotted part of the oracle's bar.",
    mutants=(
        Mutant("never joined", "become one piece", "while (start", "while False and (start"),
        Mutant("joined once", "again and again", "size *= 2", "size *= 2\n        break"),
        Mutant("starts at the upper half", "free once", "min(start", "max(start"),
        Mutant(
            "the half is free twice",
            "free once",
            "row.free[size].remove(start ^ size)",
            "pass",
        ),
        Mutant("the piece stays", "no longer among", ".pop(start)", "[start]"),
        Mutant(
            "only the neighbour on the right",
            "become one piece",
            "while (start ^ size) in",
            "while not start & size and (start ^ size) in",
        ),
        Mutant(
            "joined three times at most",
            "again and again",
            "while (start ^ size) in",
            "while size < 8 and (start ^ size) in",
        ),
    ),
    alternatives=(answers.give_back_by_halves,),
)
