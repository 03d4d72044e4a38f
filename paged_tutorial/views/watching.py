"""Watch an engine step by step: which positions of whom are computed, and who waits.

In English: whatever an engine does in a step, it hands its plan to `cache.batch`, which says
where keys and values go. `watch` listens there, so that it works for any engine that has a
`cache`, your own included.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class EngineStep:
    """One run of the model.

    computed: request -> its positions in this step; lengths: request -> tokens it holds
    waiting: requests in line; preempted: those of them that had run before
    used, num_blocks: blocks that are held, and all
    """

    computed: dict[Hashable, tuple[int, ...]]
    lengths: dict[Hashable, int]
    waiting: tuple[Hashable, ...]
    preempted: frozenset[Hashable]
    used: int
    num_blocks: int

    @property
    def rows(self) -> int:
        """Rows of the ragged batch: the positions of all requests."""
        return sum(map(len, self.computed.values()))


class Watch(Sequence):
    """The steps of an engine, as they happen. Use it with `with`."""

    def __init__(self, engine) -> None:
        self.engine = engine
        self.steps: list[EngineStep] = []
        self._ran: set[Hashable] = set()

    def __enter__(self) -> Watch:
        cache, batch = self.engine.cache, self.engine.cache.batch
        self._before = vars(cache).get("batch")  # somebody else may be watching already

        def listen(plan):
            self._note(plan)
            return batch(plan)

        cache.batch = listen
        return self

    def __exit__(self, *_) -> None:
        del self.engine.cache.batch
        if self._before is not None:
            self.engine.cache.batch = self._before

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index):
        return self.steps[index]

    def _note(self, plan) -> None:
        cache = self.engine.cache
        line = getattr(self.engine, "scheduler", self.engine).waiting
        waiting = tuple(request.request_id for request in line)
        self._ran -= {who for who in self._ran if who not in cache.holdings and who not in waiting}
        preempted = frozenset(who for who in waiting if who in self._ran)
        self._ran |= cache.holdings.keys()
        step = EngineStep(
            {who: tuple(positions) for who, positions in plan},
            {who: len(holding.tokens) for who, holding in cache.holdings.items()},
            waiting,
            preempted,
            cache.pool.num_blocks - cache.pool.num_free,
            cache.pool.num_blocks,
        )
        self.steps.append(step)


def watch(engine) -> Watch:
    """Listen to an engine: `with watch(engine) as steps:` fills `steps`, one for each run of
    the model. engine: an object with `cache`, and `waiting` or a `scheduler` that has it."""
    return Watch(engine)


def runs(positions: Iterable[int]) -> str:
    """Ascending positions in words: 0–3, 8, 12–14."""
    parts: list[list[int]] = []
    for position in positions:
        if parts and position == parts[-1][1] + 1:
            parts[-1][1] = position
        else:
            parts.append([position, position])
    return ", ".join(f"{a}–{b}" if a < b else str(a) for a, b in parts) or "nothing"
