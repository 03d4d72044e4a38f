"""Exercise 6.3: lose what is cheap."""

from __future__ import annotations

import functools

import numpy as np

from ...block_traces import conversations
from ...cost_replay import replay_cost
from ...restore_cost import relative_cost
from ...shapes import SHAPES
from .. import answers_06 as answers
from ..chapter_04.policy import PolicyPlay, policy_cases, require_policy
from ..exercise import Exercise, Mutant

CHEAPER = "On the unseen traces what is lost costs less to compute than with LRU, on the whole."
CAPACITY, NUM_REQUESTS, SEEDS, BLOCK_SIZE = 300, 300, (5, 6, 7, 8), 512


@functools.cache
def prices() -> tuple[float, ...]:
    """What the k-th block of a text costs in Llama-3-8B, by the model of restore_cost."""
    llama = next(shape for shape in SHAPES if shape.name == "Llama-3-8B")
    return tuple(relative_cost(llama, logical, BLOCK_SIZE) for logical in range(600))


@functools.cache
def contests() -> tuple:
    """(trace, cost of LRU) of each contest. No cell of the chapter shows these traces."""
    traces = [conversations(NUM_REQUESTS, seed=seed) for seed in SEEDS]
    price = prices().__getitem__
    return tuple((trace, replay_cost(trace, CAPACITY, price=price)) for trace in traces)


def cost_score(make_queue) -> float:
    """The cost of what a policy loses, that of LRU being 1; the mean over all contests."""
    price = prices().__getitem__
    shares = [
        replay_cost(trace, CAPACITY, make_queue, price=price) / lru for trace, lru in contests()
    ]
    return float(np.mean(shares))


class CostPlay(PolicyPlay):
    """The queue as in 4.3, with costs; then the real cache; then the traces."""

    arguments = "(cost)"

    def __init__(self, thing, guard=None) -> None:
        super().__init__(thing, guard)
        # The other plays make a queue without arguments; here block b costs b + 1.
        self.thing = functools.partial(thing, lambda block: block + 1.0)
        self.make = thing

    def compete(self) -> None:
        """All contests; the cost of LRU is 1."""
        self.calls.clear()
        self.subject = None
        self.wait(60.0)
        contests()
        outcome = self.run(
            f"cost of what is lost, {self.name}{self.arguments}, LRU = 1",
            lambda: cost_score(self.make),
            seconds=60.0,
        )
        score = outcome.returned("less than 1")
        outcome.value = None
        self.require(score < 0.999, CHEAPER, "less than 1, the cost of LRU", f"{score:.3f}")


def cost_cases():
    """Short sequences, longer ones, the real cache, the contests."""
    return policy_cases(length=5, number=20)


COST_AWARE = Exercise(
    id="6.3",
    title="Lose what is cheap",
    minutes=20,
    difficulty=3,
    stub='''
class CostAware(Policy):
    """A free queue that knows what it costs to compute the content of a block again.

    cost: a function; cost(block) is 1.0 for the first block of a text, and more further back.
    Ask it in `keep`, when a block comes in.
    """

    def __init__(self, cost):
        super().__init__()
        self.cost = cost

    def keep(self, block):
        """Nobody uses the block now: put it in your order."""
        raise NotImplementedError

    def take(self, block):
        """The block was hit and is in use: take it out of your order."""
        raise NotImplementedError

    def choose(self):
        """Take the block to lose out of your order, and return it."""
        raise NotImplementedError
''',
    hints=(
        "Start with a dictionary from block to value, the value being its cost, and let the "
        "lowest go: `min(self.value, key=self.value.get)`. Then dear blocks never leave, even "
        "if nobody wants them any more. That costs more than LRU.",
        "Values must age. Keep a clock: a block that comes in is worth *clock + cost*.",
        "When a block goes, set the clock to its value. What comes in later starts higher, and "
        "what nobody uses is overtaken in time. This is GreedyDual (Young, 1994).",
    ),
    solution=answers.CostAware,
    require=lambda thing: require_policy(thing, "CostAware(cost)"),
    play=CostPlay,
    cases=cost_cases,
    insight="What is lost costs less than with LRU, since your order weighs the price against the "
    'time of the last use. `solution("6.3")` shows GreedyDual, which is LRU where all prices '
    "are equal. `against_lru(CostAware)` has your number on the traces of this page.",
    mutants=(
        Mutant("all cost the same, which is LRU", "than with LRU", "self.cost(block)", "1.0"),
        Mutant("nothing ages", "than with LRU", "self.clock + self.cost", "self.cost"),
        Mutant("the dearest goes", "than with LRU", "self.clock + self", "self.clock - self"),
        Mutant(
            "one dictionary for all queues",
            "an order of its own",
            "self.value = {}",
            "self.value = vars(CostAware).get('_all', {}); CostAware._all = self.value",
        ),
        Mutant("a block in use stays", "a block that waits", "del self.value[block]", "pass"),
        Mutant(
            "choose looks and leaves it there",
            "a block that waits",
            "self.value.pop(block)",
            "self.value[block]",
        ),
        Mutant("no return", "a block that waits", "        return block\n", ""),
        Mutant(
            "worthless or not is forgotten",
            "nobody can find again",
            "    def take(self, block):\n",
            "    def put(self, block, cached):\n        super().put(block, True)\n\n"
            "    def take(self, block):\n",
        ),
    ),
    alternatives=(answers.CostPerAge,),
)
