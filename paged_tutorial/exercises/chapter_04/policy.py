"""Exercise 4.3: your own policy in the tournament."""

from __future__ import annotations

from types import SimpleNamespace

from paged_tutorial import BlockPool, PagedKVCache, check_invariants
from paged_tutorial.lru import LRUManager
from paged_tutorial.views import draw

from .. import answers_04 as answers
from ..checking import all_sequences, random_sequences
from ..exercise import Exercise, Mutant
from ..play import Case, Play, Unusable, require_class
from ..tournament import contests, scores

WAITING = "pop hands out a block that waits in the queue, and then it waits no longer."
CHOSEN = "What `take` or `choose` took out is gone from your order: only a block that waits may go."
WORTHLESS = "Blocks whose content nobody can find again go before all others."
OWN_ORDER = "Each queue has an order of its own, made in __init__."
LENGTH = "len(queue) is the number of blocks that wait."
REAL = "The real cache runs on your queue, and no invariant is broken."
BETTER = "On the unseen traces the policy hits more often than LRU, on the whole."
ORDER_OF_METHODS = ("put", "remove", "pop", "__len__")


class PolicyPlay(Play):
    """A queue of blocks: put, remove and pop; then the real cache; then the tournament."""

    arguments = "()"  # how the queue is made, in the words of the calls

    def begin(self, num_blocks: int) -> None:
        """Make the queue and put in all blocks, as a pool does."""
        made = self.run(f"queue = {self.name}{self.arguments}", self.thing)
        self.queue = self.subject = made.returned("a queue")
        made.value = None
        self.waits: dict[int, bool] = {}  # block -> whether its content can be hit
        self.used: list[int] = []
        for block in range(num_blocks):
            self._call(f"queue.put({block}, True)", lambda block=block: self.queue.put(block, True))
            self.waits[block] = False
        self._compare()

    def pop(self) -> None:
        """Hand out a block, if one waits."""
        if not self.waits:
            return
        outcome = self.run("queue.pop()", lambda: self.queue.pop())
        expected = f"one of {sorted(self.waits)}"
        rule = CHOSEN if str(outcome.error).startswith("choose() gave") else WAITING
        block = outcome.integer(rule, expected)
        self.require(block in self.waits, WAITING, expected, block)
        worthless = [waiting for waiting, kept in self.waits.items() if not kept]
        if worthless:
            self.require(block in worthless, WORTHLESS, f"one of {sorted(worthless)}", block)
        del self.waits[block]
        self.used.append(block)
        self._compare()

    def put(self, cached: bool) -> None:
        """The block that was handed out or hit first comes back."""
        if self.used:
            block = self.used.pop(0)
            self._call(f"queue.put({block}, {cached})", lambda: self.queue.put(block, cached))
            self.waits[block] = cached
            self._compare()

    def hit(self) -> None:
        """The block that waits longest is hit."""
        if self.waits:
            block = next(iter(self.waits))
            self._call(f"queue.remove({block})", lambda: self.queue.remove(block))
            del self.waits[block]
            self.used.append(block)
            self._compare()

    def beside(self) -> None:
        """Another queue loses a block of its own, whatever this one keeps, and keeps it then."""
        other = self.run(f"other = {self.name}{self.arguments}", self.thing).returned("a queue")
        self._call("other.put(9, True)", lambda: other.put(9, True))
        self._call("other.pop()", lambda: other.pop())
        self._call("other.put(9, True)", lambda: other.put(9, True))
        block = self.run("other.pop()", lambda: other.pop()).integer(OWN_ORDER, "9")
        self.require(block == 9, OWN_ORDER, 9, block)
        self._call("other.put(9, True)", lambda: other.put(9, True))

    def picture(self, title: str):
        """The blocks, and which of them wait in the reader's queue; in the end, the cache."""
        if self.subject is not self.queue:
            return super().picture(title)
        number = len(self.waits) + len(self.used)
        counts = [int(block not in self.waits) for block in range(number)]
        seen = SimpleNamespace(num_blocks=number, reference_counts=counts, queue=list(self.queue))
        seen.cached = {block for block, kept in self.waits.items() if kept}
        return draw(seen, title=title)

    def _call(self, text: str, call) -> None:
        self.run(text, call).returned("no exception")

    def _compare(self) -> None:
        size = self.peek("len(queue)", lambda: len(self.queue))
        expected = f"len(queue) = {len(self.waits)}"
        self.require(size == len(self.waits), LENGTH, expected, f"len(queue) = {size}")

    def serve(self) -> None:
        """Requests that share beginnings on the real cache, its invariants checked."""
        self.calls.clear()
        cache = PagedKVCache(BlockPool(8, 4, queue=self.thing()))
        self.subject = cache
        outcome = self.run("cache.admit(…), cache.release(…)", lambda: _serve(cache), seconds=10.0)
        outcome.returned("no exception", REAL)

    def compete(self) -> None:
        """All contests of the tournament; LRU is the one to beat."""
        self.calls.clear()
        self.subject = None
        self.wait(60.0)
        contests()
        mark = scores(LRUManager)["all"]
        outcome = self.run(
            f"score = average of 6 contests, {self.name}",
            lambda: scores(self.thing)["all"],
            seconds=60.0,
        )
        score = outcome.returned(f"more than {mark:.1%}")
        outcome.value = None
        expected = f"more than LRU's {mark:.1%} of the optimum's hits"
        self.require(score > mark, BETTER, expected, f"{score:.1%}")


def _serve(cache: PagedKVCache) -> None:
    """Two requests at a time, five texts that begin alike in pairs."""
    running: list[int] = []
    for number in range(40):
        tokens = [number % 5 // 2] * 6 + list(range(number * 7 % 9 + 1))
        while running and (len(running) == 2 or not cache.can_admit(tokens)):
            cache.release(running.pop(0))
        cache.admit(number, tokens)
        cache.commit(number, cache.missing(number))
        check_invariants(cache)
        running.append(number)


def policy_cases(length: int = 6, number: int = 40):
    """All sequences up to `length`, a `number` of longer ones, the real cache, the contests."""
    moves = [("pop",), ("put", True), ("put", False), ("hit",)]
    for num_blocks in (1, 2):
        yield from all_sequences((num_blocks,), moves, length)
    yield from random_sequences((6,), [*moves, ("pop",), ("put", True)], 60, number)
    yield Case((1,), (("pop",), ("put", True), ("beside",), ("pop",)))
    yield Case((2,), (("serve",),))
    yield Case((2,), (("compete",),))


def require_policy(thing, call: str = "MyPolicy()") -> None:
    """A class with the methods of a queue."""
    require_class(thing, call)
    missing = [name for name in ORDER_OF_METHODS if not hasattr(thing, name)]
    if missing:
        raise Unusable(f"A queue needs {', '.join(ORDER_OF_METHODS)}; yours lacks {missing[0]}.")


POLICY = Exercise(
    id="4.3",
    title="Your own policy in the tournament",
    minutes=25,
    difficulty=3,
    stub='''
class MyPolicy(Policy):
    """Which block goes, of those that can still be hit? (Policy lets empty ones go first.)

    self.history[block].uses says how often a block was used, .used when last, .arrived since when
    """

    def __init__(self):
        super().__init__()

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
        "Start with one OrderedDict that does LRU: `keep` adds at the end, `take` deletes, "
        "`choose` is `popitem(last=False)[0]`. That passes all rules but the last.",
        "Three of four blocks are never used a second time. Keep those apart from the others: "
        "`self.history[block].uses` tells which is which.",
        "Two OrderedDicts, one for blocks used once and one for the rest. Let the larger of the "
        "two lose its oldest.",
    ),
    solution=answers.MyPolicy,
    require=require_policy,
    play=PolicyPlay,
    cases=policy_cases,
    insight="You have beaten LRU on traces you had not seen. `league(MyPolicy)` shows your place. "
    "The solution shown is 2Q in its simple form; what separates it from 100 % is the future.",
    mutants=(
        Mutant("all blocks count as new, which is LRU", "than LRU", ".uses > 1", ".uses > 10**9"),
        Mutant("the newest goes", "than LRU", "popitem(last=False)", "popitem()"),
        Mutant(
            "a block in use stays in the order",
            "took out is gone",
            "self.new.pop(block, None)",
            "pass",
        ),
        Mutant(
            "choose looks and leaves it there",
            "took out is gone",
            "queue.popitem(last=False)[0]",
            "next(iter(queue))",
        ),
        Mutant(
            "key and value", "took out is gone", "popitem(last=False)[0]", "popitem(last=False)"
        ),
        Mutant("no return", "took out is gone", "return queue", "queue"),
        Mutant(
            "worthless or not is forgotten",
            "nobody can find again",
            "    def take(self, block):\n",
            "    def put(self, block, cached):\n        super().put(block, True)\n\n"
            "    def take(self, block):\n",
        ),
        Mutant(
            "the length of one half",
            "number of blocks that wait",
            "    def take(self, block):\n",
            "    def __len__(self):\n        return len(self.new)\n\n    def take(self, block):\n",
        ),
    ),
    alternatives=(answers.PolicyByRank,),
)
