"""Exercise 3.2: slot mapping without a loop."""

from __future__ import annotations

import itertools
import random
import sys

import numpy as np

from .. import answers_03 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_function
from .common import SLOT, true_slot

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
