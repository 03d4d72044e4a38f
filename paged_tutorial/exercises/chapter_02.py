"""The exercises of chapter 2: the block pool."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from paged_tutorial import (
    BlockPool,
    OutOfBlocksError,
    PagedEngine,
    random_model,
)

from . import answers_02 as answers
from .checking import all_sequences, random_sequences
from .exercise import Exercise, Mutant
from .play import Case, Play, Unattempted, require_class, require_function
from .plug import PluggedPool
from .smollm2 import new_tokens_of, smollm2
from .telling import tell

# -- 2.1 ----------------------------------------------------------------------------------

UNUSED = "Unused slots are what the last block has left: 0 to block size − 1."


class UnusedSlots(Play):
    """One call; the truth is found by adding blocks until the text fits."""

    def begin(self, num_tokens: int, block_size: int) -> None:
        text = f"{self.name}({num_tokens}, {block_size})"
        outcome = self.run(text, self.thing, num_tokens, block_size)
        room = 0
        while room < num_tokens:
            room += block_size
        truth = room - num_tokens
        noun = "token takes" if num_tokens == 1 else "tokens take"
        filled = f"{num_tokens} {noun} {room // block_size} × {block_size} slots"
        came = outcome.integer(UNUSED, f"{truth}, a whole number: {filled}")
        self.require(came == truth, UNUSED, f"{truth}: {filled}", came)


def unused_slots_cases():
    """Small texts and small blocks first; then large ones, and the odd ones out."""
    small = sorted(itertools.product(range(1, 10), range(2, 6)), key=sum)
    large = itertools.product((15, 16, 17, 499, 8192), (8, 16, 128))
    odd = [(0, 4), (1, 1), (5, 1), (0, 1)]
    return (Case(pair) for pair in [*small, *large, *odd])


UNUSED_SLOTS = Exercise(
    id="2.1",
    title="How many slots stay empty?",
    minutes=4,
    difficulty=1,
    stub='''
def unused_slots(num_tokens, block_size):
    """How many slots of its last block does a text leave empty?

    unused_slots(5, 4) is 3: two blocks of four, three slots unused.
    unused_slots(0, 4) is 0: no tokens, no block.
    """
    raise NotImplementedError
''',
    hints=(
        "How many blocks does the text need? That is `num_tokens / block_size`, rounded up.",
        "All slots of those blocks, minus the tokens, stay empty. Try 8 tokens in blocks of 4.",
        "In Python `-7 % 4` is 1: the remainder takes the sign of the divisor.",
    ),
    solution=answers.unused_slots,
    require=lambda thing: require_function(thing, "num_tokens", "block_size"),
    play=UnusedSlots,
    cases=unused_slots_cases,
    insight="However long a text gets, it wastes less than one block. If every remainder is "
    "equally likely, that is (block size − 1) / 2 slots on average: 7.5 for blocks of 16.",
    mutants=(
        Mutant(
            "a full last block counts as empty",
            "last block",
            "-num_tokens % block_size",
            "block_size - num_tokens % block_size",
        ),
        Mutant("the used slots", "last block", "-num_tokens %", "num_tokens %"),
        Mutant(
            "a float", "last block", "-num_tokens % block_size", "float(-num_tokens % block_size)"
        ),
        Mutant("no return", "last block", "return -num", "-num"),
        Mutant("block size fixed at 16", "last block", "% block_size", "% 16"),
        Mutant(
            "printed, not returned",
            "last block",
            "return -num_tokens % block_size",
            "print(-num_tokens % block_size)",
        ),
    ),
    alternatives=(answers.unused_slots_by_blocks,),
)

# -- 2.2 and 2.4 --------------------------------------------------------------------------

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

# -- 2.3 ----------------------------------------------------------------------------------

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


def require_other_than_planted(thing) -> None:
    """A function, and not the one with the planted bug."""
    require_function(thing, "pool", "num_blocks")
    names: dict[str, object] = {}
    exec(TAKE_STUB, {}, names)
    code, planted = getattr(thing, "__code__", None), names["take"].__code__
    if code is not None and (code.co_code, code.co_names) == (planted.co_code, planted.co_names):
        raise Unattempted("`take` is as it was planted, bug included: blocks get lost.")


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
    require=require_other_than_planted,
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

# -- 2.4 ----------------------------------------------------------------------------------

OWN_SIZE = "A pool is made of a number of blocks and a block size, and keeps both."
SAME_ANSWER = "On your pool the model says what it says on the package's own."
ALL_BACK = "When all requests are finished, all blocks are free."
LONG = 120.0  # seconds for a model on a busy machine
QUESTION = "What is the capital of France?"
ANSWER_SO_FAR = ("The capital of France is", "The capital of France is Paris")


class ModelPlay(PoolPlay):
    """As in 2.2, but a free block can be shared; at the end a model runs on the pool."""

    revive = True
    sizes = (4,)

    def allocate(self) -> None:
        """As in 2.2, which has to be solved first."""
        try:
            super().allocate()
        except Unattempted as unattempted:
            sign = f"{unattempted} This class inherits it: solve 2.2, and run its cell again."
            raise Unattempted(sign) from None

    def serve(self, name: str, block_size: int) -> None:
        """Run requests that share a beginning; the second round finds blocks of the first."""
        self.wait(LONG)
        model, rounds, new_tokens = _workload(name)
        truth = _truth(name)
        number = len(self.holders)
        self.calls.clear()
        text = f"pool = {self.name}({number}, {block_size})"
        made = self.run(text, self.thing, number, block_size)
        pool = self.subject = made.returned("a pool", OWN_SIZE)
        made.value = None
        for field, wanted in (("num_blocks", number), ("block_size", block_size)):
            came = getattr(pool, field, None)
            self.require(came == wanted, OWN_SIZE, f"pool.{field} {wanted}", tell(came))
        engine = PagedEngine(model, pool=PluggedPool(pool, model.config))
        for prompts, expected in zip(rounds, truth, strict=True):
            outcome = self.run(
                f"engine.generate(…)  # {len(prompts)} at a time, {name}",
                lambda prompts=prompts: new_tokens_of(engine, prompts, new_tokens),
                seconds=LONG,
            )
            answers = outcome.returned("answers")
            self.require(
                answers == expected, SAME_ANSWER, f"tokens {expected}", f"tokens {answers}"
            )
            free = self.peek("pool.num_free", lambda: pool.num_free)
            self.require(free == number, ALL_BACK, f"num_free {number}", f"num_free {free}")


@functools.cache
def _workload(name: str):
    """(model, rounds of prompts as tokens, tokens to generate)"""
    if name == "tiny":
        start = list(range(9))
        return random_model(), [[start + [20], start + [30, 31], [40] * 5], [start + [50]]], 6
    model, tokenizer = smollm2()
    # One token a round, so that a busy machine has few steps to make.
    prompts = [tokenizer.chat(QUESTION) + tokenizer.encode(text) for text in ANSWER_SO_FAR]
    return model, [[prompt] for prompt in prompts], 1


@functools.cache
def _truth(name: str) -> list[list[list[int]]]:
    """The answers of the workload on the package's own pool, all prompts in one batch."""
    model, rounds, new_tokens = _workload(name)
    prompts = [prompt for prompts in rounds for prompt in prompts]
    answers = iter(new_tokens_of(PagedEngine(model, 16), prompts, new_tokens))
    return [[next(answers) for _ in prompts] for prompts in rounds]


def model_cases():
    """Moves first, since they fail with a smaller case; then a tiny model; then SmolLM2."""
    yield from pool_cases()
    yield Case((9,), (("serve", "tiny", 4),))
    # The first round fills three blocks, the second brings them back and needs a fourth.
    yield Case((4,), (("serve", "SmolLM2", 7),))


MODEL = Exercise(
    id="2.4",
    title="Run SmolLM2 on your pool",
    minutes=20,
    difficulty=3,
    stub='''
class PoolForTheModel(MyPool):
    """Your pool, but a free block can be brought back."""

    def share(self, block):
        """One more holder. A free block leaves the free list, its content intact.

        Only a number that is no block is refused, as before.
        """
        raise NotImplementedError
''',
    hints=(
        "Two cases: somebody holds the block, or nobody does. In both it has one holder more "
        "afterwards. What else must be true of a block that is held?",
        "A block with count 0 sits in your free list. If it stays there while it is held, "
        "`allocate` will hand it to somebody else.",
        "`self.free.remove(block)` takes it out of a list. It searches; chapter 4 does without.",
    ),
    solution=answers.PoolForTheModel,
    require=lambda thing: require_class(thing, "PoolForTheModel(num_blocks, block_size)"),
    play=ModelPlay,
    cases=model_cases,
    insight="On your bookkeeping SmolLM2 completed “The capital of France is” with “ Paris”, and, "
    "when asked again, with “.”: token for token what it writes alone. The second time it found "
    "three blocks of the first and brought them back. Which free block you hand out cannot "
    "change an answer, only what can still be found.",
    mutants=(
        Mutant(
            "a block that is brought back stays free",
            "brings it back",
            "self.free.remove(block)",
            "pass",
        ),
        Mutant(
            "bringing back is not counted",
            "number of its holders",
            "+= 1",
            "+= self.reference_counts[block] == 0",
        ),
        Mutant(
            "the wrong block leaves the list",
            "brings it back",
            "self.free.remove(block)",
            "self.free.pop(); self.free.pop()",
        ),
        Mutant(
            "a free block is refused",
            "brings it back",
            "self.free.remove(block)",
            "raise ValueError(f'nobody holds block {block}')",
        ),
        Mutant(
            "any number is a block",
            "numbered from 0",
            'raise ValueError(f"there is no block {block}")',
            "return",
        ),
        Mutant(
            "the block size is not kept",
            "and keeps both",
            "    def share",
            "    def __init__(self, num_blocks, block_size=16):\n"
            "        super().__init__(num_blocks)\n\n    def share",
        ),
        Mutant(
            "a block size cannot be given",
            "in an unexpected exception",
            "    def share",
            "    def __init__(self, num_blocks):\n"
            "        super().__init__(num_blocks)\n\n    def share",
        ),
    ),
    alternatives=(answers.PoolOfThePackage, answers.PoolOfItsOwn),
)

EXERCISES = (UNUSED_SLOTS, POOL, TAKE, MODEL)
