"""Exercise 4.1: an LRU cache whose cost does not grow."""

from __future__ import annotations

import itertools
from collections import OrderedDict

from .. import answers_04 as answers
from ..checking import all_sequences, random_sequences
from ..counting import CountedKey, count
from ..exercise import Exercise, Mutant
from ..play import Case, require_class
from ..telling import advice_on
from .common import OrderPlay

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
