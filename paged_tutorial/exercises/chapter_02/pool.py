"""Exercise 2.2: write the block pool."""

from __future__ import annotations

import numpy as np

from paged_tutorial import OutOfBlocksError

from .. import answers_02 as answers
from ..checking import all_sequences, random_sequences
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_class
from ..telling import tell

FRESH = "A new pool has all its blocks free and nobody holds any."
REAL = "Blocks are numbered from 0 to num_blocks − 1; others are refused with ValueError."
ONE_OWNER = "A block is handed out only while nobody holds it."
AVAILABLE = "While a block is free, allocate hands one out."
EMPTY = "An empty pool says so with OutOfBlocksError(1, 0): one is needed, none is free."
DOUBLE = "Nobody can release a block that nobody holds."
HELD = "Nobody can share a block that nobody holds."
BACK = "Sharing a free block brings it back: it is held once and no longer free."
LAST = "A block becomes free when its last holder leaves, not before and not later."
HANDED_OUT = "A block that is handed out is no longer free."
COUNT = "The reference count of a block is the number of its holders."
UNCHANGED = "A refused call changes nothing."
FLOATS = (float, np.floating)


def whole(count):
    """A count as an int, of whatever kind it is; as it is, if it is no whole number."""
    return int(count) if int(count) == count else count


class PoolPlay(Play):
    """Moves on the reader's pool, and the holders of each block beside it."""

    revive = False
    sizes: tuple[int, ...] = ()  # what a pool is made of besides its number of blocks

    def begin(self, num_blocks: int) -> None:
        """Make the pool."""
        self.holders = [0] * num_blocks
        given = num_blocks, *self.sizes
        text = f"pool = {self.name}({', '.join(map(str, given))})"
        made = self.run(text, self.thing, *given)
        self.pool = self.subject = made.returned("a pool")
        made.value = None
        self._compare(FRESH)

    def allocate(self) -> None:
        """One block, or OutOfBlocksError."""
        outcome = self.run("pool.allocate()", lambda: self.pool.allocate())
        free = [block for block, count in enumerate(self.holders) if not count]
        if not free:
            outcome.raised(OutOfBlocksError, EMPTY)
            needed, free_then = outcome.error.needed, outcome.error.free
            came = f"needed {needed}, free {free_then}"
            self.require((needed, free_then) == (1, 0), EMPTY, "needed 1, free 0", came)
            self._compare(UNCHANGED)
            return
        expected = f"a free block: {' or '.join(map(str, free))}"
        if outcome.error is not None:
            self.require(
                not isinstance(outcome.error, OutOfBlocksError), AVAILABLE, expected, outcome.came()
            )
        block = outcome.integer(AVAILABLE, expected)
        self.require(block in range(len(self.holders)), REAL, expected, block)
        self.require(block in free, ONE_OWNER, expected, f"{block}, which somebody holds")
        self.holders[block] = 1
        self._compare(COUNT, HANDED_OUT)

    def share(self, block: int) -> None:
        """One more holder."""
        outcome = self.run(f"pool.share({block})", lambda: self.pool.share(block))
        if not self._refused(outcome, block, None if self.revive else HELD):
            brought_back = not self.holders[block]
            self.holders[block] += 1
            self._compare(BACK if brought_back else COUNT)

    def release(self, block: int) -> None:
        """One holder less."""
        outcome = self.run(f"pool.release({block})", lambda: self.pool.release(block))
        if not self._refused(outcome, block, DOUBLE):
            self.holders[block] -= 1
            self._compare(LAST)

    def _refused(self, outcome, block: int, rule_for_free: str | None) -> bool:
        """Whether the call had to be refused. It was then; else it went well."""
        if block not in range(len(self.holders)):
            rule = REAL
        elif not self.holders[block] and rule_for_free:
            rule = rule_for_free
        else:
            if outcome.error is not None and not self.holders[block]:
                self.require(False, BACK, "no exception", outcome.came())
            outcome.returned("no exception")
            return False
        outcome.raised(ValueError, rule, block)
        self._compare(UNCHANGED)
        return True

    def _compare(self, rule: str, rule_of_free: str | None = None) -> None:
        """The counts and the number of free blocks against the truth."""
        pool, wanted = self.pool, self.holders
        counts = self.peek(
            "pool.reference_counts",
            lambda: [whole(pool.reference_counts[block]) for block in range(len(wanted))],
        )
        expected = f"reference counts {wanted}"
        self.require(counts == wanted, rule, expected, f"reference counts {counts}")
        free = self.peek("pool.num_free", lambda: pool.num_free)
        advice = "num_free is read without parentheses: a @property." if callable(free) else ""
        expected = f"num_free {wanted.count(0)}"
        told = "a method" if callable(free) else f"num_free {tell(free)}"
        # An array of indices is no number, and a float counts nothing.
        one = not callable(free) and np.ndim(free) == 0 and not isinstance(free, FLOATS)
        right = one and free == wanted.count(0)
        self.require(right, rule_of_free or rule, expected, told, advice)


def _moves(blocks) -> list[tuple]:
    return [("allocate",), *(("share", b) for b in blocks), *(("release", b) for b in blocks)]


def pool_cases():
    """All short sequences on one and two blocks, then long ones on more."""
    yield from all_sequences((1,), _moves((0,)), 4)
    yield from all_sequences((2,), _moves((0, 1)), 4)
    yield from all_sequences((1,), _moves((0, 1, -1)), 3)
    for num_blocks in (3, 5):
        # Mostly moves on real blocks, or nothing would ever fill up.
        outside = (num_blocks, num_blocks + 3, -1, -num_blocks - 1)
        moves = [("allocate",)] * 2 * num_blocks + 2 * _moves(range(num_blocks)) + _moves(outside)
        yield from random_sequences((num_blocks,), moves, 30, 50)
    # More blocks than block_size is by default, and numbers of two digits.
    yield Case((20,), (("allocate",),) * 21 + (("release", 17), ("share", 17), ("share", 12)))


POOL = Exercise(
    id="2.2",
    title="Write the block pool",
    minutes=15,
    difficulty=2,
    stub='''
class MyPool:
    """Which blocks are free, and how many hold each of the others.

    Blocks are numbered from 0 to num_blocks - 1. To share or release a
    block that nobody holds, or a number that is no block, is refused:
    ValueError, with the block's number in its message.
    """

    def __init__(self, num_blocks, block_size=16):
        self.num_blocks = num_blocks
        self.block_size = block_size
        self.free = list(range(num_blocks))
        self.reference_counts = [0] * num_blocks

    @property
    def num_free(self):
        return len(self.free)

    def allocate(self):
        """A free block, now held once, or OutOfBlocksError(1, 0)."""
        raise NotImplementedError

    def share(self, block):
        """One more holder."""
        raise NotImplementedError

    def release(self, block):
        """One holder less. After the last one, the block is free."""
        raise NotImplementedError
''',
    hints=(
        "Start with `allocate`. Two things must be true afterwards: the block is in no list of "
        "free blocks, and its reference count is 1.",
        "`release` has three cases: nobody holds the block (refuse), one holder (free it), "
        "several (count down, nothing else). Refuse before you change anything.",
        "What are blocks −1 and `num_blocks`? Python is happy with `[0, 0][-1]`. Ask "
        "`block not in range(self.num_blocks)` first.",
    ),
    solution=answers.MyPool,
    require=lambda thing: require_class(thing, "MyPool(num_blocks)"),
    play=PoolPlay,
    cases=pool_cases,
    insight="Counting holders is all that sharing needs, and it is how CPython itself knows when "
    "an object may go. What a count cannot say is which free block to hand out next: that is "
    "chapter 4.",
    mutants=(
        Mutant(
            "release does not ask whether anybody holds the block",
            "release a block that nobody holds",
            "def release(self, block):\n        self._require_held(block)\n",
            "def release(self, block):\n",
        ),
        Mutant(
            "the first to leave frees the block",
            "last holder leaves",
            "-= 1\n        if self.reference_counts[block] == 0:",
            "= 0\n        if True:",
        ),
        Mutant(
            "the block never comes back", "last holder leaves", "self.free.append(block)", "pass"
        ),
        Mutant("sharing is not counted", "number of its holders", "+= 1", "+= 0"),
        Mutant("allocate does not count", "number of its holders", "[block] = 1", "[block] = 0"),
        Mutant(
            "the block stays in the free list",
            "no longer free",
            "self.free.pop(0)",
            "self.free[0]",
        ),
        Mutant(
            "an empty list speaks for itself",
            "empty pool",
            "if not self.free:",
            "if False:",
        ),
        Mutant(
            "block −1 is the last one",
            "numbered from 0",
            "block not in range(self.num_blocks) or ",
            "",
        ),
        Mutant(
            "only the next number is outside",
            "numbered from 0",
            "block not in range(self.num_blocks)",
            "block in (-1, self.num_blocks)",
        ),
        Mutant(
            "half a holder",
            "number of its holders",
            "+= 1",
            "+= 1.5",
        ),
        Mutant(
            "one free list for all pools",
            "new pool",
            "self.free = list(range(num_blocks))",
            "self.free = vars(MyPool).get('_all') or []; MyPool._all = self.free; "
            "self.free.extend(range(num_blocks))",
        ),
        Mutant(
            "needed and free exchanged",
            "one is needed, none is free",
            "OutOfBlocksError(needed=1, free=0)",
            "OutOfBlocksError(0, 1)",
        ),
        Mutant(
            "the message names another block",
            "a block that nobody holds",
            'f"nobody holds block {block}"',
            'f"nobody holds block {block + 10}"',
        ),
        Mutant(
            "a count for each token of a block",
            "in an unexpected exception",
            "[0] * num_blocks",
            "[0] * block_size",
        ),
        Mutant(
            "the number of free ones is a float",
            "new pool",
            "return len(self.free)",
            "return len(self.free) / 1",
        ),
        Mutant(
            "waiting for a free block",
            "comes to an end",
            "            raise OutOfBlocksError(needed=1, free=0)",
            "            while not self.free: pass",
        ),
    ),
    alternatives=(answers.PoolOfSets,),
)
