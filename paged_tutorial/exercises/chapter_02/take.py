"""Exercise 2.3: find the bug: all or nothing."""

from __future__ import annotations

from paged_tutorial import BlockPool, OutOfBlocksError

from .. import answers_02 as answers
from ..checking import all_sequences
from ..exercise import Exercise, Mutant
from ..planted import require_mended
from ..play import Play

ALL_OR_NOTHING = "With too few free blocks: OutOfBlocksError, and the pool as it was."
EXACTLY = "With enough free blocks, take returns exactly as many as asked for, each held once."


class TakePlay(Play):
    """Take blocks from a pool of the package, several times."""

    whose = "The"

    def begin(self, num_blocks: int) -> None:
        """Make the pool."""
        self.pool = self.subject = BlockPool(num_blocks, block_size=4)
        self.run(f"pool = BlockPool({num_blocks})", lambda: None)

    def take(self, number: int) -> None:
        """Take some blocks."""
        pool = self.pool
        free, counts = pool.num_free, list(pool.reference_counts)
        outcome = self.run(f"{self.name}(pool, {number})", self.thing, pool, number)
        now = f"{pool.num_free} free, reference counts {pool.reference_counts}"
        before = f"{free} free, reference counts {counts}"
        if number > free:
            outcome.raised(OutOfBlocksError, ALL_OR_NOTHING)
            same = pool.num_free == free and pool.reference_counts == counts
            self.require(same, ALL_OR_NOTHING, before, now)
            return
        expected = "a list of 1 block" if number == 1 else f"a list of {number} blocks"
        blocks = outcome.list_of_integers(EXACTLY, expected)
        self.require(len(blocks) == number, EXACTLY, expected, blocks)
        real = all(block in range(pool.num_blocks) for block in blocks)
        self.require(real, EXACTLY, f"blocks of 0 to {pool.num_blocks - 1}", blocks)
        wanted = [count + blocks.count(block) for block, count in enumerate(counts)]
        fresh = all(counts[block] == 0 for block in blocks) and max(wanted) <= 1
        self.require(
            fresh and pool.reference_counts == wanted, EXACTLY, f"reference counts {wanted}", now
        )


def take_cases():
    """All sequences of up to three takes, on pools of up to five blocks."""
    for num_blocks in range(1, 6):
        moves = [("take", number) for number in range(num_blocks + 2)]
        yield from all_sequences((num_blocks,), moves, 3)


TAKE_STUB = '''
def take(pool, num_blocks):
    """Several blocks at once, all or nothing.

    OutOfBlocksError, and the pool as it was, if there are not enough.
    """
    blocks = []
    try:
        for _ in range(num_blocks):
            blocks.append(pool.allocate())
    except OutOfBlocksError:
        for block in blocks:
            blocks.remove(block)
            pool.release(block)
        raise
    return blocks
'''


TAKE = Exercise(
    id="2.3",
    title="Find the bug: all or nothing",
    minutes=10,
    difficulty=2,
    stub=TAKE_STUB,
    hints=(
        "Take 3 of a pool of 4 and ask for 2, as in the cell: one is free afterwards, as before. "
        "Now take 2 of 4 and ask for 3, and count again.",
        "Print `block` inside the second loop. Which blocks does the loop never see?",
        "A list that shrinks under a `for` loop makes it skip. Loop over a copy, or look at "
        "`pool.num_free` before you take anything, so that there is nothing to undo.",
    ),
    solution=answers.take,
    require=lambda thing: require_mended(
        thing, TAKE_STUB, "`take` is as it was planted, bug included: blocks get lost."
    ),
    play=TakePlay,
    cases=take_cases,
    insight="Two ways are right: undo carefully, or check first, then act, and there is nothing to "
    "undo. The engine of chapter 7 checks first when it admits a request. With several threads "
    "check and act must be one step: chapter 10.",
    mutants=(
        Mutant("no check", "as it was", "num_blocks > pool.num_free", "False"),
        Mutant(
            "off by one",
            "exactly as many as asked",
            "num_blocks > pool.num_free",
            "num_blocks >= pool.num_free",
        ),
        Mutant(
            "the error is swallowed",
            "OutOfBlocksError",
            "raise OutOfBlocksError(needed=num_blocks, free=pool.num_free)",
            "return None",
        ),
        Mutant(
            "as many as there are",
            "OutOfBlocksError",
            "raise OutOfBlocksError(needed=num_blocks, free=pool.num_free)",
            "num_blocks = pool.num_free",
        ),
        Mutant(
            "a generator",
            "exactly as many as asked",
            "[pool.allocate() for _ in range(num_blocks)]",
            "(pool.allocate() for _ in range(num_blocks))",
        ),
        Mutant(
            "blocks numbered from 1",
            "exactly as many as asked",
            "[pool.allocate() for",
            "[pool.allocate() + 1 for",
        ),
        Mutant(
            "the same block again and again",
            "each held once",
            "[pool.allocate() for _ in range(num_blocks)]",
            "[pool.allocate()] * num_blocks if num_blocks else []",
        ),
    ),
    alternatives=(answers.take_and_undo,),
)
