"""The exercises of chapter 3: the page table."""

from __future__ import annotations

import functools
import itertools
import operator
import random
import sys
from types import SimpleNamespace

import numpy as np

from paged_tutorial import (
    BlockPool,
    DenseKV,
    PagedBatch,
    PageTable,
    paged_attention_gather,
    random_model,
)

from . import answers_03 as answers
from .checking import all_sequences, random_sequences
from .exercise import Exercise, Mutant
from .play import Case, Play, Unattempted, require_class, require_function
from .smollm2 import smollm2
from .telling import names

# -- 3.1 ----------------------------------------------------------------------------------

SLOT = "The slot is block id × block size + offset; the table has the block id."


def true_slot(block_ids, position: int, block_size: int) -> int:
    """The slot, by counting: one row of slots after the other."""
    block = block_ids[position // block_size]
    return block * block_size + position % block_size


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

# -- 3.2 ----------------------------------------------------------------------------------

ONE_EACH = "Every token of the batch gets one slot, in the order of the batch."
OWN_POSITION = "What counts is a token's position in its text, not its row in the batch."
OWN_TABLE = "Every token is looked up in the page table of its own request."
STEPS = "NumPy does the work: the Python steps do not grow with the batch."
SLACK = 30  # steps that NumPy's own functions may take more on a larger batch


def count_steps(function, *arguments) -> tuple[object, int]:
    """The result of a call, and how many lines and calls of Python ran meanwhile."""
    steps = 0

    def count(frame, event, argument):
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        return function(*arguments), steps
    finally:
        sys.settrace(before)


class Batch:
    """Requests of a step, each with its blocks and its positions; what is drawn."""

    def __init__(self, block_size: int, requests) -> None:
        self.block_size = block_size
        self.tables = {"ABCDEFGH"[k % 8]: list(blocks) for k, (blocks, _) in enumerate(requests)}

    @staticmethod
    def arrays(requests) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """page_tables, query_start and positions."""
        longest = max(len(blocks) for blocks, _ in requests)
        rows = [[*blocks, *[-1] * (longest - len(blocks))] for blocks, _ in requests]
        starts = np.cumsum([0, *(len(positions) for _, positions in requests)])
        flat = [position for _, positions in requests for position in positions]
        return np.array(rows), starts, np.array(flat, np.int64)


class RaggedSlots(Play):
    """One call for a batch; then the steps it takes for a small and for a large one."""

    whose = "The"

    def begin(self, block_size: int, requests) -> None:
        """A batch of requests, each (blocks, positions)."""
        self.subject = Batch(block_size, requests)
        tables, starts, positions = Batch.arrays(requests)
        self.run(f"page_tables = np.array({tables.tolist()})", lambda: None)
        self.run(f"query_start = np.array({starts.tolist()})", lambda: None)
        self.run(f"positions = np.array({positions.tolist()}, int)", lambda: None)
        text = f"{self.name}(page_tables, query_start, positions, {block_size})"
        outcome = self.run(text, self.thing, tables, starts, positions, block_size)
        truth = [true_slot(blocks, p, block_size) for blocks, chosen in requests for p in chosen]
        came = outcome.list_of_integers(ONE_EACH, f"whole numbers: {truth}")
        self.require(len(came) == len(truth), ONE_EACH, f"{len(truth)} slots: {truth}", came)
        if len(requests) > 1:
            rule = OWN_TABLE
        else:
            rule = SLOT if requests[0][1] == (*range(len(truth)),) else OWN_POSITION
        self.require(came == truth, rule, truth, came)

    def count(self) -> None:
        """Small and large, by steps; no clock is involved."""
        self.calls.clear()
        self.subject = None
        taken = []
        for number, length in ((2, 2), (64, 16)):
            blocks = [tuple(range(k, k + 4)) for k in range(number)]
            batch = Batch.arrays([(block, (*range(length),)) for block in blocks])
            said = f"{self.name}(…)  # {number} requests, {number * length} tokens"
            outcome = self.run(said, count_steps, self.thing, *batch, 4)
            outcome.value = outcome.returned("slots")[1]
            taken.append(outcome.value)
        few, many = taken
        advice = "Look for `for`, for a comprehension, for `map` or `np.vectorize`."
        self.require(
            many <= few + SLACK,
            STEPS,
            f"about {few} steps, as for 4 tokens",
            f"{many} steps",
            advice,
        )


def ragged_cases():
    """One request from its start, one from elsewhere, then several; last the steps."""
    yield Case((2, (((1,), (0,)),)))
    yield Case((2, (((1, 0), (0, 1, 2)),)))
    yield Case((3, (((4, 2), (0, 1, 2, 3, 4)),)))
    yield Case((2, (((1, 0), (2,)),)))
    yield Case((4, (((5, 0, 3), (11, 4)),)))
    for first, second in itertools.product(((0,), (1,), (0, 1), (2, 3)), ((0,), (1, 2), (3,))):
        yield Case((2, (((1, 0), first), ((3, 2), second))))
    yield Case((2, (((1,), (0,)), ((0, 2, 3), (1, 5)))))
    yield Case((2, (((1,), (0,)), ((0,), ()), ((2,), (1,)))))
    yield Case((4, (((7,), (3,)), ((2, 9), (0, 1, 2, 3, 4)), ((1, 5, 8), (10,)))))
    generator = random.Random(32)
    for number in (3, 5, 8):
        blocks = [
            tuple(generator.sample(range(99), generator.randint(1, 5))) for _ in range(number)
        ]
        yield Case((16, tuple(
            (block, tuple(generator.sample(range(16 * len(block)), generator.randint(0, 7))))
            for block in blocks
        )))  # fmt: skip
    yield Case((2, (((1,), (0,)),)), (("count",),))


RAGGED = Exercise(
    id="3.2",
    title="Slot mapping without a loop",
    minutes=15,
    difficulty=2,
    stub='''
def slots_of_batch(page_tables, query_start, positions, block_size):
    """The slots of all tokens of a batch, without a loop over tokens or requests.

    page_tables: (num_requests, longest), one table a row, short ones filled up with -1
    query_start: (num_requests + 1,), request i owns the rows query_start[i] up to, but not
        including, query_start[i + 1]; a request may own none
    positions: (num_tokens,), all inside their tables
    """
    raise NotImplementedError
''',
    hints=(
        "For one request you have it already: `table[positions // block_size]`. For a batch, "
        "`page_tables` needs two indices per token: the row of its request, and the column.",
        "Which request owns which token? The array [0, 0, 0, 1, 2, 2] is `np.repeat` of "
        "[0, 1, 2] with the counts [3, 1, 2]. The counts are the differences of `query_start`.",
        "`page_tables[requests, positions // block_size]` takes one entry for each pair of "
        "indices: that is the block of every token.",
    ),
    solution=answers.slots_of_batch,
    require=lambda thing: require_function(
        thing, "page_tables", "query_start", "positions", "block_size"
    ),
    play=RaggedSlots,
    cases=ragged_cases,
    insight="Five array operations for the whole batch, once a step; all layers use the result. "
    "On a GPU the same lines are one small kernel.",
    mutants=(
        Mutant(
            "all tokens in the first table",
            "page table of its own request",
            "np.repeat(np.arange(len(page_tables)), counts)",
            "np.zeros(len(positions), int)",
        ),
        Mutant(
            "requests take turns",
            "page table of its own request",
            "np.repeat(np.arange(len(page_tables)), counts)",
            "np.arange(len(positions)) % len(page_tables)",
        ),
        Mutant(
            "a loop over tokens",
            "NumPy does the work",
            "    blocks = page_tables[requests, positions // block_size]\n",
            "    blocks = np.array([page_tables[r, p // block_size]\n"
            "        for r, p in zip(requests, positions)], int)\n",
        ),
        Mutant(
            "a loop over requests",
            "NumPy does the work",
            "np.repeat(np.arange(len(page_tables)), counts)",
            "np.concatenate([np.full(n, k) for k, n in enumerate(counts)])",
        ),
        Mutant(
            "the row in the batch for the position",
            "position in its text",
            "    counts =",
            "    positions = np.arange(len(positions))\n    counts =",
        ),
        Mutant(
            "positions start at 0 in each request",
            "position in its text",
            "    blocks =",
            "    positions = np.arange(len(positions)) - query_start[requests]\n    blocks =",
        ),
        Mutant("offset in the batch", "position in its text", "positions % block_size",
               "np.arange(len(positions)) % block_size"),
        Mutant("one slot a request", "one slot", "requests = np.repeat",
               "counts = counts > 0; positions = positions[query_start[:-1][counts]]; "
               "requests = np.repeat"),
        Mutant("true division", "one slot", "return blocks * block_size",
               "return blocks * block_size / 1"),
        Mutant("blocks, not slots", "block id × block size", "blocks * block_size +", "blocks +"),
    ),
    alternatives=(answers.slots_of_batch_by_search,),
)  # fmt: skip

# -- 3.3 ----------------------------------------------------------------------------------

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


def require_other_than_planted(thing) -> None:
    """A function, and not the one with the planted bug."""
    require_function(thing, "table", "num_tokens", "allocate")
    names: dict[str, object] = {}
    exec(GROW_STUB, {}, names)
    code, planted = getattr(thing, "__code__", None), names["grow"].__code__
    if code is not None and (code.co_code, code.co_names) == (planted.co_code, planted.co_names):
        raise Unattempted("`grow` is as it was planted, bug included.")


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
    require=require_other_than_planted,
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

# -- 3.4 ----------------------------------------------------------------------------------

RESERVED = "reserve takes blocks until all tokens have room, none earlier, and keeps their order."
OWN_LIST = "Each table has a list of its own."
MAPPED = "slot_mapping gives the slot of each position, in the order of the positions."
ANY_KIND = "The positions may be a range, a list or an array; the slots are an array."
OUTSIDE = "A position outside the table is refused with ValueError that names it."
SAME_ANSWER = "On your page table the model says what it says on one array."
LONG = 120.0  # seconds for a model on a busy machine
QUESTION = "What is the capital of France?"
SUPPLY = (6, 2, 0, 5, 7, 1, 4, 3)


class TablePlay(Play):
    """Moves on the reader's table, with the truth in a list; at the end a model runs on it."""

    def begin(self, block_size: int) -> None:
        made = self.run(f"table = {self.name}({block_size})", self.thing, block_size)
        self.table = self.subject = made.returned("a table")
        made.value = None
        self.block_size, self.blocks = block_size, []
        found = self._block_ids()
        advice = "These blocks are from an earlier table. Is the list made anew in __init__?"
        expected, came = "a new table without blocks", f"block_ids {found}"
        self.require(found == [], OWN_LIST, expected, came, advice)

    def _block_ids(self) -> list[int]:
        return self.peek("table.block_ids", lambda: [*map(operator.index, self.table.block_ids)])

    def reserve(self, num_tokens: int) -> None:
        """Room for this many tokens in all."""
        supply = iter(SUPPLY[len(self.blocks) :])
        text = f"table.reserve({num_tokens}, pool.allocate)"
        outcome = self.run(text, lambda: self.table.reserve(num_tokens, lambda: next(supply)))
        outcome.returned("no exception")
        while len(self.blocks) * self.block_size < num_tokens:
            self.blocks.append(SUPPLY[len(self.blocks)])
        came = self._block_ids()
        self.require(came == self.blocks, RESERVED, f"block_ids {self.blocks}", f"block_ids {came}")

    def slots(self, *positions: int) -> None:
        """The slots of these positions, or ValueError for the first one outside."""
        said = f"np.array({list(positions)})"
        self._slots(said, np.array(positions, np.int64), positions, MAPPED)

    def slots_of_list(self, *positions: int) -> None:
        """The same for a list."""
        self._slots(str(list(positions)), list(positions), positions, ANY_KIND)

    def slots_of_range(self, start: int, stop: int) -> None:
        """The same for a range."""
        given = range(start, stop)
        self._slots(str(given), given, (*given,), ANY_KIND)

    def _slots(self, said: str, given, positions: tuple[int, ...], rule: str) -> None:
        text = f"table.slot_mapping({said})"
        outcome = self.run(text, lambda given: self.table.slot_mapping(given), given)
        if isinstance(outcome.error, (TypeError, AttributeError)):
            outcome.returned("slots, or ValueError", rule)
        room = len(self.blocks) * self.block_size
        wrong = [position for position in positions if not 0 <= position < room]
        if wrong:
            outcome.raised(ValueError, OUTSIDE)
            named = any(names(outcome.error, position) for position in wrong)
            expected = f"ValueError whose message names {wrong[0]}"
            self.require(named, OUTSIDE, expected, outcome.came())
            return
        truth = [true_slot(self.blocks, position, self.block_size) for position in positions]
        came = outcome.list_of_integers(rule, str(truth))
        self.require(came == truth, MAPPED, truth, came)
        an_array = isinstance(outcome.value, np.ndarray)
        self.require(an_array, ANY_KIND, f"an array of {truth}", outcome.came())

    def serve(self, name: str) -> None:
        """The model writes some texts side by side, each with a table of the reader's."""
        self.wait(LONG)
        model, prompts, new_tokens = _workload(name)
        expected = _alone(name)
        self.calls.clear()
        count = "1 text" if len(prompts) == 1 else f"{len(prompts)} texts at once"
        outcome = self.run(
            f"answers = write(…)  # {count}, {name}",
            lambda: _write(model, prompts, new_tokens, self.thing, self.block_size),
            seconds=LONG,
        )
        came = outcome.returned("answers", SAME_ANSWER)
        self.require(came == expected, SAME_ANSWER, f"tokens {expected}", f"tokens {came}")


def _write(model, prompts, new_tokens: int, make_table, block_size: int) -> list[list[int]]:
    """Continue all texts, one token each in every step, through tables that `make_table` makes."""
    config = model.config
    pool = BlockPool(
        16,
        block_size,
        num_layers=config.num_layers,
        num_kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
    )
    order = random.Random(3).sample(range(16), 16)
    for block in order:
        pool.queue.remove(block)
        pool.queue.put(block, cached=True)
    texts = [
        SimpleNamespace(tokens=list(prompt), table=make_table(block_size)) for prompt in prompts
    ]
    computed = [0] * len(texts)
    for _ in range(new_tokens):
        plan = []
        for k, text in enumerate(texts):
            text.table.reserve(len(text.tokens), pool.allocate)
            plan.append((text, range(computed[k], len(text.tokens))))
            computed[k] = len(text.tokens)
        batch = PagedBatch(pool, plan, paged_attention_gather)
        logits = model.forward(
            batch.tokens, batch.positions, batch, rows=batch.batch.query_start[1:] - 1
        )
        for text, row in zip(texts, logits, strict=True):
            text.tokens.append(int(row.argmax()))
    return [text.tokens[-new_tokens:] for text in texts]


@functools.cache
def _workload(name: str):
    """(model, prompts as tokens, tokens to generate)"""
    if name == "a tiny model":
        return random_model(), [[20, 21, 22], [30, 31, 32, 33], [40, 41, 42, 43, 44]], 9
    model, tokenizer = smollm2()
    return model, [tokenizer.chat(QUESTION)], 7


@functools.cache
def _alone(name: str) -> list[list[int]]:
    """The answers of the workload, each text alone on one contiguous array."""
    model, prompts, new_tokens = _workload(name)
    answers = []
    for prompt in prompts:
        memory = DenseKV(model.config, len(prompt) + new_tokens)
        tokens, computed = list(prompt), 0
        for _ in range(new_tokens):
            positions = np.arange(computed, len(tokens))
            logits = model.forward(tokens[computed:], positions, memory.at(positions))
            computed = len(tokens)
            tokens.append(int(logits[-1].argmax()))
        answers.append(tokens[-new_tokens:])
    return answers


def table_cases():
    """Moves first, since they fail with a smaller case; then a tiny model; then SmolLM2."""
    moves = [
        *(("reserve", n) for n in (1, 2, 3, 5)),
        *(("slots", *some) for some in ((0,), (1, 0), (2, 3), (4,), (-1,), (6,))),
    ]
    yield from all_sequences((2,), moves, 3)
    for asked in ((1, 9, 0), (1, -1, 0), (3, 0, 4), (-2, 1)):
        yield Case((2,), (("reserve", 3), ("slots", *asked)))
    for asked in (("slots_of_list", 2, 1), ("slots_of_list", 4, 7), ("slots_of_list", -1)):
        yield Case((2,), (("reserve", 3), asked))
    for asked in (("slots_of_range", 0, 3), ("slots_of_range", 3, 5)):
        yield Case((2,), (("reserve", 3), asked))
    for block_size in (1, 4):
        wide = [("reserve", block_size * n) for n in (1, 2, 7)]
        wide += [("slots", *range(block_size * n)) for n in (1, 2, 3)]
        yield from random_sequences((block_size,), wide, 8, 20)
    yield Case((4,), (("serve", "a tiny model"),))
    yield Case((8,), (("serve", "SmolLM2"),))


TABLE = Exercise(
    id="3.4",
    title="Run SmolLM2 on your page table",
    minutes=20,
    difficulty=3,
    stub='''
class MyPageTable:
    """The physical blocks of one text, in the order of its tokens."""

    def __init__(self, block_size):
        self.block_size = block_size
        self.block_ids = []

    def reserve(self, num_tokens, allocate):
        """Take blocks with allocate() until there is room for `num_tokens` tokens in all."""
        raise NotImplementedError

    def slot_mapping(self, positions):
        """The slots of these positions (a range, a list or an array), as an array.

        ValueError, naming the position, for one that is negative or beyond the table.
        """
        raise NotImplementedError
''',
    hints=(
        "`reserve` is `grow` of exercise 3.3 with `self` for the table.",
        "`positions = np.asarray(positions)`, then quotient and remainder of the whole array. "
        "A list cannot be indexed with an array; `np.asarray(self.block_ids)` can.",
        "The room is `len(self.block_ids) * self.block_size`. Refuse before you look up: "
        "NumPy takes −1 for the last entry and says nothing.",
    ),
    solution=answers.MyPageTable,
    require=lambda thing: require_class(thing, "MyPageTable(block_size)"),
    play=TablePlay,
    cases=table_cases,
    insight="SmolLM2 wrote “The capital of France is Paris.” through your table, over blocks in "
    "no particular order, token for token what it writes on one array.",
    mutants=(
        Mutant(
            "one list for all tables", "list of its own",
            "self.block_ids = []",
            "self.block_ids = MyPageTable.__dict__.get('_all', []); "
            "MyPageTable._all = self.block_ids",
        ),
        Mutant("a block early", "none earlier", "< num_tokens", "<= num_tokens"),
        Mutant("one block at a time", "until all tokens have room", "while", "if"),
        Mutant("nothing is refused", "is refused", "(positions < 0) | (positions >= room)",
               "positions != positions"),
        Mutant("minus one is the last", "is refused", "(positions < 0) | ", ""),
        Mutant("the first position beyond", "is refused", ">= room", "> room"),
        Mutant("the last position is refused", "slot of each position", ">= room", ">= room - 1"),
        Mutant(
            "blocks in order of their numbers",
            "slot of each position",
            "np.array(self.block_ids, dtype=np.int64)",
            "np.sort(np.array(self.block_ids, dtype=np.int64))",
        ),
        Mutant(
            "sorted positions",
            "in the order of the positions",
            "np.asarray(positions, dtype=np.int64)",
            "np.unique(positions).astype(np.int64)",
        ),
        Mutant("the message names no position", "names it",
               'f"position {position} is outside 0 to {room - 1}"', '"no such place"'),
        Mutant("only the last position is looked at", "is refused",
               "in positions[(positions < 0) | (positions >= room)]:",
               "in positions[-1:][(positions[-1:] < 0) | (positions[-1:] >= room)]:"),
        Mutant("only an array will do", "a range, a list or an array",
               "        positions = np.asarray(positions, dtype=np.int64)\n", ""),
        Mutant(
            "the slots are a list",
            "slots are an array",
            "return np.array(self.block_ids, dtype=np.int64)[logical] * self.block_size + offset",
            "return [self.block_ids[k] * self.block_size + o for k, o in zip(logical, offset)]",
        ),
        Mutant(
            "the positions are changed",
            "left as they were",
            "        logical, offset =",
            "        offset = positions % self.block_size; positions //= self.block_size\n"
            "        logical, _ =",
        ),
    ),
    alternatives=(answers.TableOfThePackage,),
)  # fmt: skip

EXERCISES = (SLOT_OF, RAGGED, GROW, TABLE)
