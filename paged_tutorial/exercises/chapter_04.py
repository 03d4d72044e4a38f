"""The exercises of chapter 4: the LRU manager."""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque
from types import SimpleNamespace

import numpy as np

from paged_tutorial import BlockPool, PagedKVCache, check_invariants
from paged_tutorial.lru import LRUManager
from paged_tutorial.views import draw
from paged_tutorial.views.duel import draw_order

from . import answers_04 as answers
from .checking import all_sequences, random_sequences
from .counting import CountedKey, count
from .exercise import Exercise, Mutant
from .play import NO_ACCIDENT, Case, Play, Unattempted, Unusable, require_class
from .telling import advice_on
from .tournament import contests, scores


class OrderPlay(Play):
    """A play whose subject keeps keys in an order: that order is what is drawn."""

    def picture(self, title: str):
        """The keys of the subject's first collection of them."""
        fields = vars(self.subject).values()
        keys = next(list(field) for field in fields if isinstance(field, (dict, list, deque)))
        if not all(isinstance(key, (str, int)) for key in keys):
            raise ValueError("something else is kept there too, perhaps in another order")
        return draw_order(keys, title)


# -- 4.1 ----------------------------------------------------------------------------------

FRESH = "A new cache is empty, whatever others hold."
STORED = "get returns what was put last under the key, and None for a key that is not there."
RETURNED = "evict returns the key that goes."
OLDEST = "The key that goes is the one unused for longest."
GET_COUNTS = "A get makes its key the most recent."
PUT_COUNTS = "A put makes its key the most recent, also if it was there before."
NO_MORE = "The cache holds at most `capacity` keys, and only a new key makes another one go."
COST = "An operation costs the same, however many keys there are."
FEW, MANY = 10, 1000  # keys in the cache when the cost is counted
# How much more an operation on MANY keys may cost than the same on FEW.
ALLOWANCE = {"looks at keys": 12, "lines run": 30, "bytes taken": 4 * MANY}


class CachePlay(OrderPlay):
    """Moves on the reader's cache, with an ordered dictionary beside it as the truth."""

    def begin(self, capacity: int) -> None:
        """Make the cache."""
        self.capacity = capacity
        self.truth: OrderedDict[str, int] = OrderedDict()
        self.used_by: dict[str, str] = {}  # the rule that made a key as recent as it is
        self.values = itertools.count(1)
        self.gone: dict[str, int] = {}  # what was in it once, and the value then
        made = self.run(f"cache = {self.name}({capacity})", self.thing, capacity)
        self.cache = self.subject = made.returned("a cache")
        made.value = None
        self._compare_size(FRESH)

    def put(self, key: str, value: int | None = None) -> None:
        """Store a value, a new one unless it is given."""
        value = next(self.values) if value is None else value
        outcome = self.run(f"cache.put({key!r}, {value})", lambda: self.cache.put(key, value))
        outcome.returned("no exception")
        outcome.value = None
        if key not in self.truth and len(self.truth) == self.capacity:
            self.gone.update([self.truth.popitem(last=False)])
        self._use(key, PUT_COUNTS if key in self.truth else OLDEST)
        self.truth[key] = value
        self._compare_size()

    def get(self, key: str) -> None:
        """Look a key up."""
        outcome = self.run(f"cache.get({key!r})", lambda: self.cache.get(key))
        expected = self.truth.get(key)
        value = outcome.returned(str(expected), STORED)
        if type(value) is not type(expected) or value != expected:
            rule = self._rule_of_a_wrong_get(key, value)
            self.require(False, rule, expected, outcome.came(), advice_on(value))
        if key in self.truth:
            self._use(key, GET_COUNTS)
        self._compare_size()

    def evict(self) -> None:
        """Let one key go; every case ends with this."""
        if not self.truth:
            return
        outcome = self.run("cache.evict()", lambda: self.cache.evict())
        expected = next(iter(self.truth))
        key = outcome.returned(repr(expected), RETURNED)
        if not any(key == other and type(key) is type(other) for other in self.truth):
            self.require(False, RETURNED, repr(expected), outcome.came(), advice_on(key))
        if key != expected:
            self.require(False, self.used_by.get(key, OLDEST), repr(expected), outcome.came())
        self.gone[expected] = self.truth.pop(expected)
        self._compare_size()

    def _use(self, key: str, rule: str) -> None:
        self.used_by[key] = rule
        if key in self.truth:
            self.truth.move_to_end(key)

    def _rule_of_a_wrong_get(self, key: str, value) -> str:
        """A key that is gone too early was not made recent; one that stays was not evicted."""
        if key not in self.truth:
            return NO_MORE if value == self.gone.get(key, value is None) else STORED
        return self.used_by[key] if self.gone and value is None and self.truth[key] else STORED

    def _compare_size(self, rule: str = NO_MORE) -> None:
        size = self.peek("len(cache)", lambda: len(self.cache))
        expected = f"len(cache) = {len(self.truth)}"
        self.require(size == len(self.truth), rule, expected, f"len(cache) = {size}")

    def cost(self) -> None:
        """Count the steps of each operation with few keys and with many."""
        self.calls.clear()
        few, many = self._costs(FEW), self._costs(MANY)
        self.calls.clear()
        for operation in few:
            self.run(f"{operation}  # with {MANY} keys", lambda: None)
            for what, allowed in ALLOWANCE.items():
                low, high = few[operation][what], many[operation][what]
                self.require(
                    high <= low + allowed,
                    COST,
                    f"about {low} {what}, as with {FEW} keys",
                    f"{high} {what}",
                    "Something is searched or copied. An OrderedDict can move a key to the end.",
                )

    def _costs(self, number: int) -> dict[str, dict[str, int]]:
        """The smallest cost of each operation in three tries; a dictionary may grow in one."""
        keys = [CountedKey(index) for index in range(number + 6)]
        self.subject = None  # too many keys to be drawn
        text = f"cache = {self.name}({number})"
        cache = self.run(text, self.thing, number).returned("a cache")
        text = f"cache.put(…)  # {number} different keys, of any kind that can be hashed"
        self.run(text, lambda: [cache.put(key, 0) for key in keys[:number]]).returned(
            "no exception"
        )
        fresh = iter(keys[number:])
        calls = {
            "cache.get(key)": lambda: cache.get(keys[number // 2]),
            "cache.put(known_key, value)": lambda: cache.put(keys[number // 2 + 1], 1),
            "cache.put(new_key, value)": lambda: cache.put(next(fresh), 1),
            "cache.evict()": lambda: cache.evict(),
        }
        self.wait(10.0)
        found = {}
        for name, call in calls.items():
            text = f"{name}  # with {number} keys"
            made = self.run(text, lambda call=call: [count(call) for _ in range(3)], seconds=10.0)
            tries = made.returned("no exception")
            found[name] = {what: min(one[what] for one in tries) for what in ALLOWANCE}
        return found


def cache_cases():
    """All short sequences on small caches, longer random ones, and the count of steps."""
    for capacity, keys in ((1, "AB"), (2, "ABC")):
        moves = [(kind, key) for kind in ("put", "get") for key in keys] + [("evict",)]
        yield from all_sequences((capacity,), moves, 4)
    moves = [(kind, key) for kind in ("put", "get") for key in "ABCDE"] + [("evict",)]
    yield from random_sequences((3,), moves, 20, 150)
    yield Case((1,), (("put", "A", 0), ("get", "A")))  # a value may be zero
    yield Case((2,), (("put", "A", 0), ("put", "B"), ("get", "A"), ("evict",)))
    yield Case((2,), (("put", "A", 5), ("put", "B"), ("put", "A", 5), ("evict",)))  # no new value
    yield Case((1,), (("put", 0), ("get", 0), ("put", "A"), ("get", 0), ("put", 0), ("evict",)))
    yield Case((2,), (("cost",),))


CACHE = Exercise(
    id="4.1",
    title="An LRU cache whose cost does not grow",
    minutes=12,
    difficulty=2,
    stub='''
class LRUCache:
    """At most `capacity` keys with their values; the key unused for longest goes first."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.values = OrderedDict()

    def get(self, key):
        """The value, or None if the key is not there. The key is now the most recent."""
        raise NotImplementedError

    def put(self, key, value):
        """Store it as the most recent. A new key in a full cache makes the oldest go."""
        raise NotImplementedError

    def evict(self):
        """Remove the key unused for longest, and return it."""
        raise NotImplementedError

    def __len__(self):
        return len(self.values)
''',
    hints=(
        "The dictionary is the order: the oldest key in front, the most recent at the back. "
        "Which two methods of OrderedDict move a key to the back, and take one from the front?",
        "`move_to_end(key)` and `popitem(last=False)`. Assigning to a key that is there already "
        "does not move it.",
        "In `put`: if the key is new and the cache is full, evict first. Then assign, then "
        "`move_to_end(key)`.",
    ),
    solution=answers.LRUCache,
    require=lambda thing: require_class(thing, "LRUCache(capacity)"),
    play=CachePlay,
    cases=cache_cases,
    insight="A hash table finds the key and a linked list keeps the order; each does in a few "
    "steps what the other cannot. Most LRU caches are this pair.",
    mutants=(
        Mutant(
            "get does not refresh",
            "A get makes its key",
            "        self.values.move_to_end(key)\n        return",
            "        return",
        ),
        Mutant(
            "put of a known key does not refresh",
            "A put makes its key",
            "self.values[key] = value\n        self.values.move_to_end(key)",
            "self.values[key] = value",
        ),
        Mutant("the newest goes", "unused for longest", "popitem(last=False)", "popitem()"),
        Mutant(
            "a known key makes another one go",
            "only a new key",
            "if key not in self.values and len",
            "if len",
        ),
        Mutant("one too many", "at most `capacity`", "== self.capacity", "> self.capacity"),
        Mutant(
            "evict returns nothing",
            "evict returns the key",
            "return self.values.popitem(last=False)[0]",
            "self.values.popitem(last=False)",
        ),
        Mutant(
            "evict returns key and value",
            "evict returns the key",
            "(last=False)[0]",
            "(last=False)",
        ),
        Mutant(
            "a key of zero counts as none",
            "get returns",
            "return self.values[key]",
            "return self.values[key] if key else None",
        ),
        Mutant(
            "get tells whether, not what", "get returns", "return self.values[key]", "return True"
        ),
        Mutant(
            "one dictionary for all",
            "whatever others hold",
            "self.values = OrderedDict()",
            "self.values = vars(LRUCache).get('_all', OrderedDict()); LRUCache._all = self.values",
        ),
        Mutant("a miss is an error", "get returns", "return None", "raise KeyError(key)"),
        Mutant(
            "a value of zero does not refresh",
            "A get makes its key",
            "        self.values.move_to_end(key)\n        return",
            "        if self.values[key]: self.values.move_to_end(key)\n        return",
        ),
        Mutant(
            "nothing is done if the value is the same",
            "A put makes its key",
            "        if key not in self.values and",
            "        if self.values.get(key) == value: return\n"
            "        if key not in self.values and",
        ),
        Mutant(
            "a value of zero counts as a miss",
            "get returns",
            "if key not in self.values:",
            "if not self.values.get(key):",
        ),
        Mutant(
            "the first key by way of a list of all",
            "costs the same",
            "return self.values.popitem(last=False)[0]",
            "key = list(self.values)[0]; del self.values[key]; return key",
        ),
        Mutant(
            "a search for the key",
            "costs the same",
            "if key not in self.values:",
            "if not any(key == other for other in self.values):",
        ),
        Mutant(
            "the order is built anew",
            "costs the same",
            "        self.values.move_to_end(key)\n        return",
            "        v = self.values.pop(key); "
            "self.values = OrderedDict(self.values); self.values[key] = v\n        return",
        ),
    ),
    alternatives=(answers.LinkedCache,),
)

# -- 4.2 ----------------------------------------------------------------------------------

TELLS = "use returns True if the key is there, and False if not."
REFRESH = "A key that is used again is the newest: that is what makes it LRU, not FIFO."
ONE_GOES = "A new key in a full cache makes exactly one other go: the one unused for longest."


class RecentPlay(OrderPlay):
    """Use keys one after the other; the truth is a list, the newest last."""

    def begin(self, capacity: int) -> None:
        """Make the object."""
        self.capacity, self.truth, self.again = capacity, [], set()
        made = self.run(f"recent = {self.name}({capacity})", self.thing, capacity)
        self.recent = self.subject = made.returned("an object")
        made.value = None
        size = self.peek("len(recent)", lambda: len(self.recent))
        self.require(size == 0, FRESH, "len(recent) = 0", f"len(recent) = {size}")

    def use(self, key: str) -> None:
        """Use a key."""
        outcome = self.run(f"recent.use({key!r})", lambda: self.recent.use(key))
        hit = key in self.truth
        came = outcome.returned(str(hit), NO_ACCIDENT)
        if not isinstance(came, (bool, np.bool_)) or came != hit:
            rule = TELLS
            if came in (True, False) and not hit and self.again & set(self.truth):
                rule = REFRESH
            elif came in (True, False) and key in self.again and hit:
                rule = REFRESH
            elif came in (True, False) and self.seen_full:
                rule = ONE_GOES
            self.require(False, rule, hit, outcome.came(), advice_on(came))
        if hit:
            self.truth.remove(key)
            self.again.add(key)
        elif len(self.truth) == self.capacity:
            self.again.discard(self.truth.pop(0))
        self.truth.append(key)
        size = self.peek("len(recent)", lambda: len(self.recent))
        expected = f"len(recent) = {len(self.truth)}"
        self.require(size == len(self.truth), ONE_GOES, expected, f"len(recent) = {size}")

    @property
    def seen_full(self) -> bool:
        """Whether anything may have been lost by now."""
        return len(self.truth) == self.capacity


def recent_cases():
    """All short sequences, then longer ones."""
    for capacity, keys, longest in ((1, "PQ", 3), (2, "PQR", 6)):
        yield from all_sequences((capacity,), [("use", key) for key in keys], longest)
    yield from random_sequences((3,), [("use", key) for key in "PQRST"], 25, 60)


RECENT_STUB = '''
class Recent:
    """The keys used last. A key that is used again becomes the newest."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.order = {}  # a dictionary keeps its keys in order, the newest last

    def use(self, key):
        """True if the key was there. A new one in a full cache makes the oldest go."""
        hit = key in self.order
        if not hit and len(self.order) == self.capacity:
            del self.order[next(iter(self.order))]
        self.order[key] = True  # the newest
        return hit

    def __len__(self):
        return len(self.order)
'''


def require_other_than_planted(thing) -> None:
    """A class, and not the one with the planted bug."""
    require_class(thing, "Recent(capacity)")
    names: dict[str, object] = {}
    exec(RECENT_STUB, {}, names)
    code, planted = (
        getattr(getattr(kind, "use", None), "__code__", None) for kind in (thing, names["Recent"])
    )
    same = code is not None and (code.co_code, code.co_names, code.co_consts[1:]) == (
        planted.co_code,
        planted.co_names,
        planted.co_consts[1:],
    )
    if same:
        raise Unattempted("`Recent` is as it was planted, bug included.")


RECENT = Exercise(
    id="4.2",
    title="Find the bug: FIFO that calls itself LRU",
    minutes=6,
    difficulty=1,
    stub=RECENT_STUB,
    hints=(
        "Use P, Q, P, R with room for two, as in the cell above. Which key should be gone?",
        "Print `list(recent.order)` after each use. What happens to the place of a key that is "
        "there already when you assign to it?",
        "Take the key out first: `hit = self.order.pop(key, False)`. Then it comes back as the "
        "newest.",
    ),
    solution=answers.Recent,
    require=require_other_than_planted,
    play=RecentPlay,
    cases=recent_cases,
    insight="A test that only fills and overflows a cache cannot tell LRU from FIFO: they differ "
    "in nothing but what a hit does. So test a hit, and then an eviction.",
    mutants=(
        Mutant(
            "a hit looks and moves nothing",
            "not FIFO",
            "self.order.pop(key, False)",
            "bool(self.order.get(key, False))",
        ),
        Mutant("the newest goes", "unused for longest", "iter(self.order)", "reversed(self.order)"),
        Mutant("one too many", "exactly one", "== self.capacity", "> self.capacity"),
        Mutant(
            "all go", "exactly one", "del self.order[next(iter(self.order))]", "self.order = {}"
        ),
        Mutant(
            "one dictionary for all",
            "whatever others hold",
            "self.order = {}",
            "self.order = vars(Recent).get('_all', {}); Recent._all = self.order",
        ),
        Mutant("a hit tells nothing", "use returns True", "return hit", "return None"),
        Mutant(
            "a key that was hit is not kept",
            "exactly one",
            "        self.order[key] = True",
            "        if not hit: self.order[key] = True",
        ),
    ),
    alternatives=(answers.RecentByClock, answers.RecentByArray),
)

# -- 4.3 ----------------------------------------------------------------------------------

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

EXERCISES = (CACHE, RECENT, POLICY)
