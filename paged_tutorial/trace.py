"""What happened: events that pool, cache and engine report to an optional observer.

An observer is any callable that takes one Event. It is called in the middle of things, so it
must neither raise nor change what it observes: the operation that it interrupts would stay
half done. Without an observer nothing is built and nothing is paid. `Trace` is the observer
that remembers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

SENTENCES = {
    "admit": "request {request} is admitted: {tokens} tokens are already in the pool",
    "hit": "block {block} already holds logical block {logical} of request {request}",
    "touch": "block {block} leaves the free queue before anybody can take it",
    "miss": "logical block {logical} of request {request} is not in the pool",
    "fault": "logical block {logical} of request {request} was evicted and must be recomputed",
    "evict": "block {block}, first in the free queue, gives way",
    "allocate": "block {block} becomes logical block {logical} of request {request}",
    "copy": "request {request} copies its logical block {logical} to block {block} before a write",
    "share": "request {request} shares block {block} as its logical block {logical}",
    "register": "block {block} is full and can be found by its hash",
    "compute": "the model computes {tokens} new tokens of request {request}",
    "recompute": "the model computes {tokens} lost tokens of request {request} again",
    "token": "request {request} gets its next token, {tokens}",
    "free": "block {block} goes to the free queue",
    "release": "request {request} gives its blocks back",
    "preempt": "request {request} loses its blocks to an older one and waits",
    "finish": "request {request} is finished",
    "drop": "all cached blocks are forgotten",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened. `kind` is a key of SENTENCES; the other fields may be None."""

    kind: str
    request: Hashable = None
    block: int | None = None
    logical: int | None = None
    tokens: int | None = None

    def sentence(self) -> str:
        """The event in plain English."""
        return SENTENCES[self.kind].format(
            request=self.request, block=self.block, logical=self.logical, tokens=self.tokens
        )


Observer = Callable[[Event], None]


class Trace:
    """An observer that keeps every event in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def counts(self) -> Counter[str]:
        """How often each kind of event happened."""
        return Counter(event.kind for event in self.events)

    def of(self, *kinds: str) -> list[Event]:
        """The events of the given kinds, in order."""
        return [event for event in self.events if event.kind in kinds]
