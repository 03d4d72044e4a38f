"""Exercise 3.4: run SmolLM2 on your page table."""

from __future__ import annotations

import functools
import operator
import random
from types import SimpleNamespace

import numpy as np

from paged_tutorial import BlockPool, DenseKV, PagedBatch, paged_attention_gather, random_model

from .. import answers_03 as answers
from ..checking import all_sequences, random_sequences
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_class
from ..smollm2 import LONG, smollm2
from ..telling import names
from .common import true_slot

RESERVED = "reserve takes blocks until all tokens have room, none earlier, and keeps their order."
OWN_LIST = "Each table has a list of its own."
MAPPED = "slot_mapping gives the slot of each position, in the order of the positions."
ANY_KIND = "The positions may be a range, a list or an array; the slots are an array."
OUTSIDE = "A position outside the table is refused with ValueError that names it."
SAME_ANSWER = "On your page table the model says what it says on one array."
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
