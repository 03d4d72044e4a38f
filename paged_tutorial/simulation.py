"""Serve a workload on a memory that is only counted, and measure what its slots are good for.

In English: requests wait in line. Whoever can be admitted runs, and each step gives every
running request one token. The finished leave. In a paged memory a text that outgrows its
blocks gets another one; when none is left, the newest request goes back into the line and
keeps its tokens. Between two such events nothing changes but the number of tokens, so the
clock jumps from event to event.

A simulation: no model runs, and a step is a step, however many requests are in it. What it
is after is figure 2 of Kwon et al., "PagedAttention", SOSP 2023.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from .checks import check_integer
from .reservation import Memory, Text
from .workload import Arrival


@dataclass
class Usage:
    """Sums over the measured steps of what the slots were good for; see the properties."""

    num_slots: int
    steps: int = 0
    preemptions: int = 0
    measured: int = 0
    slots_held: int = 0
    slots_tokens: int = 0
    slots_used_in_the_end: int = 0
    slots_scattered: int = 0
    requests: int = 0

    def _share(self, slots: int) -> float:
        return slots / (self.measured * self.num_slots) if self.measured else 0.0

    @property
    def tokens(self) -> float:
        """Share of all slots that hold the keys and values of a token."""
        return self._share(self.slots_tokens)

    @property
    def later(self) -> float:
        """Share that is set aside for tokens still to come."""
        return self._share(self.slots_used_in_the_end - self.slots_tokens)

    @property
    def never(self) -> float:
        """Share that is set aside and will never hold a token: internal fragmentation."""
        return self._share(self.slots_held - self.slots_used_in_the_end)

    @property
    def free(self) -> float:
        """Share that nobody has, though requests wait."""
        return self._share(self.measured * self.num_slots - self.slots_held)

    @property
    def scattered(self) -> float:
        """Part of `free` that would do for the next in line if it lay in one piece: external
        fragmentation in the strict sense. The rest of `free` is too little anyway."""
        return self._share(self.slots_scattered)

    @property
    def running(self) -> float:
        """Requests at a time."""
        return self.requests / self.measured if self.measured else 0.0


def serve(arrivals: Iterable[Arrival], memory: Memory, max_tokens: int = 2048) -> Usage:
    """Serve all requests in order, as if all had arrived at once, and measure.

    Measured are the steps from when a quarter of them have finished, so that old and young
    texts are mixed, to when nobody waits any more. Texts longer than max_tokens are cut.
    Raises ValueError for a request that does not fit even alone.
    """
    check_integer("max_tokens", max_tokens, 2)
    texts = []
    for arrival in arrivals:
        now = min(arrival.prompt_tokens, max_tokens - 1)
        texts.append(Text(now, max(now + 1, min(arrival.total_tokens, max_tokens))))
    return _Service(texts, memory).run()


class _Service:
    """Requests in line and running. `due` says who is finished or out of room at which step."""

    def __init__(self, texts: list[Text], memory: Memory) -> None:
        self.memory, self.usage = memory, Usage(memory.num_slots)
        self.waiting = deque(texts)
        self.running: dict[Text, None] = {}  # in the order of admission
        self.due: dict[int, list[Text]] = {}
        self.steps: list[int] = []  # the keys of `due` as a heap: the next one first
        self.tokens = self.in_the_end = 0  # of all running texts: now, and within their slots
        self.unmeasured, self.finished = len(texts) // 4, 0

    def run(self) -> Usage:
        while self.waiting or self.running:
            while self.waiting and self.memory.admit(self.waiting[0]):
                self._start(self.waiting.popleft())
            if not self.running:
                needs = self.memory.needs(self.waiting[0])
                raise ValueError(f"a request for {needs} slots does not fit even alone")
            step = heapq.heappop(self.steps)
            self._advance(step - self.usage.steps)
            self._look_at(self.due.pop(step))
        return self.usage

    def _advance(self, steps: int) -> None:
        """Every running text gets this many tokens; until then nothing else happens."""
        usage, memory, running = self.usage, self.memory, len(self.running)
        if self.waiting and self.finished >= self.unmeasured:
            free = memory.num_slots - memory.taken
            usage.measured += steps
            usage.requests += steps * running
            usage.slots_held += steps * memory.taken
            usage.slots_tokens += steps * self.tokens + running * steps * (steps + 1) // 2
            usage.slots_used_in_the_end += steps * self.in_the_end
            if memory.needs(self.waiting[0]) <= free:
                usage.slots_scattered += steps * free
        usage.steps += steps
        self.tokens += steps * running

    def _look_at(self, texts: list[Text]) -> None:
        """Let the finished ones go first, so that nobody is preempted with nothing left to do."""
        now = self.usage.steps
        out_of_room = []
        for text in texts:
            if text not in self.running or text.due != now:  # preempted since it was noted
                continue
            if text.tokens + now - text.since == text.end:
                self._stop(text)
                self.finished += 1
            else:
                out_of_room.append(text)
        for text in out_of_room:
            if text in self.running:
                self._grow(text)

    def _start(self, text: Text) -> None:
        text.since = self.usage.steps
        self.running[text] = None
        self.tokens += text.tokens
        self._plan(text)

    def _plan(self, text: Text) -> None:
        """Look at the text again when it is finished or its slots are full."""
        full = min(text.slots, text.end)
        self.in_the_end += full
        text.due = text.since + full - text.tokens
        if text.due not in self.due:
            self.due[text.due] = []
            heapq.heappush(self.steps, text.due)
        self.due[text.due].append(text)

    def _grow(self, text: Text) -> None:
        """One more block, if need be from the newest, which may be this text itself."""
        while not self.memory.grow(text):
            newest = next(reversed(self.running))
            if newest is text and len(self.running) == 1:
                raise ValueError(f"a request of {text.end} tokens does not fit even alone")
            self._stop(newest)
            self.waiting.appendleft(newest)
            self.usage.preemptions += 1
            if newest is text:
                return
        self.in_the_end -= text.due - text.since + text.tokens
        self._plan(text)

    def _stop(self, text: Text) -> None:
        """Take a text off, finished or preempted; it keeps its tokens."""
        del self.running[text]
        self.memory.release(text)
        self.in_the_end -= text.due - text.since + text.tokens
        text.tokens += self.usage.steps - text.since
        self.tokens -= text.tokens
        text.slots = 0
