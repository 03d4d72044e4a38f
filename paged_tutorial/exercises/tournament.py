"""The tournament of policies: unseen traces, and a league table.

Three kinds of traces, each at two sizes of the cache. A policy scores its hits as a share of
the hits of Belady's optimum, so that every trace counts alike; the table has the average.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from ..block_cache import replay
from ..block_traces import accesses, chats, conversations, documents
from ..lru import LRUManager
from ..optimum import Belady
from ..policies import FIFO, LFU, LIFO, Random, Sieve, TwoQueue
from .cards import Card, show

FIELD = {
    "LRU": LRUManager,
    "FIFO": FIFO,
    "LIFO": LIFO,
    "random": Random,
    "LFU": LFU,
    "SIEVE": Sieve,
    "2Q": TwoQueue,
}


@dataclass(frozen=True)
class Contest:
    """A trace, a capacity, and the hits of the optimum."""

    name: str
    trace: list[int]
    capacity: int
    best: int


@functools.cache
def contests() -> tuple[Contest, ...]:
    """The traces of the tournament. No cell of the chapter shows these."""
    made = {
        "conversations": (accesses(conversations(500, seed=77)), (400, 800)),
        "documents": (accesses(documents(500, seed=78)), (150, 400)),
        "chats": (accesses(chats(25, 8, 3, seed=79)), (100, 250)),
    }
    return tuple(
        Contest(name, trace, capacity, replay(trace, capacity, lambda trace=trace: Belady(trace)))
        for name, (trace, capacities) in made.items()
        for capacity in capacities
    )


def scores(make_queue: Callable) -> dict[str, float]:
    """For each kind of trace, hits as a share of the optimum's; "all" is the average."""
    shares: dict[str, list[float]] = {}
    for contest in contests():
        hits = replay(contest.trace, contest.capacity, make_queue)
        shares.setdefault(contest.name, []).append(hits / contest.best)
    result = {name: sum(values) / len(values) for name, values in shares.items()}
    return result | {"all": sum(result.values()) / len(result)}


@functools.cache
def field_scores() -> dict[str, dict[str, float]]:
    """The scores of the package's policies."""
    return {name: scores(make_queue) for name, make_queue in FIELD.items()}


def league(mine: Callable, name: str = "yours") -> None:
    """Show the league table with your policy in it; `mine()` makes an empty queue."""
    table = dict(field_scores()) | {name: scores(mine)}
    order = sorted(table, key=lambda entry: -table[entry]["all"])
    kinds = list(table[name])
    rows = [
        [f"{place}", f"→ {entry}" if entry == name else entry]
        + [f"{table[entry][kind]:.1%}" for kind in kinds]
        for place, entry in enumerate(order, 1)
    ]
    card = Card("quiet", "≡", "League table · hits, as a share of the optimum's")
    show(card.table(["", "policy", *kinds], rows))
