"""Exercise 4.2: find the bug: FIFO that calls itself LRU."""

from __future__ import annotations

import numpy as np

from .. import answers_04 as answers
from ..checking import all_sequences, random_sequences
from ..exercise import Exercise, Mutant
from ..planted import require_mended
from ..play import NO_ACCIDENT
from ..telling import advice_on
from .cache import FRESH
from .common import OrderPlay

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
    require=lambda thing: require_mended(
        thing, RECENT_STUB, "`Recent` is as it was planted, bug included."
    ),
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
