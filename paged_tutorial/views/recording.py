"""Record what happens to a live object: after each event, what was said and how it looked.

In English: a cache or engine reports its events; a recording listens, and takes a snapshot
at each. Your own class need not report anything: its public methods are wrapped, and each
call is a step. A recording remembers whose content a block keeps after its request has left.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from reprlib import Repr

from ..trace import Event
from .snapshot import Snapshot, snapshot, with_changes

# `touch` is sent between the two halves of one act: the block has left the queue and is not
# held yet. The `hit` that follows tells the same when it is done.
SILENT = frozenset({"touch"})

_brief = Repr()
_brief.maxlist = _brief.maxtuple = _brief.maxdict = 4
_brief.maxstring = _brief.maxother = 40


@dataclass(frozen=True)
class Step:
    """One step: an Event or None, its sentence, the state after it, and what to mark.

    highlight: blocks, and (request, logical block) entries of page tables
    """

    event: Event | None
    sentence: str
    snapshot: Snapshot
    highlight: tuple = ()


class Recording:
    """The steps of a live object, the first being how it was. Use it with `with`, or `stop` it.

    idle: {request: token ids} of chats whose resident blocks are to be shown too; you may
    change it while the recording runs
    """

    def __init__(self, thing, idle: Mapping[Hashable, Sequence[int]] | None = None) -> None:
        self.thing, self.idle = thing, idle
        self.steps: list[Step] = []
        self._order: dict[Hashable, None] = {}
        self._owners: dict[int, tuple[Hashable, int | None]] = {}
        self._evicted: set[int] = set()
        self._undo: list = []
        self._depth = 0
        self._add(self._state(), None, "This is how it is before the first step.")
        self._attach()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __getitem__(self, index: int) -> Step:
        return self.steps[index]

    def __repr__(self) -> str:
        return f"<Recording of {type(self.thing).__name__}, {len(self.steps)} steps>"

    def only(self, *kinds: str) -> list[Step]:
        """The start, and the steps whose event is of one of these kinds."""
        chosen = [step for step in self.steps[1:] if step.event and step.event.kind in kinds]
        return self.steps[:1] + chosen

    def stop(self) -> None:
        """Leave the object as it was before the recording."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()

    def _state(self) -> Snapshot:
        return snapshot(self.thing, idle=self.idle)

    # -- listening ---------------------------------------------------------------------

    def _attach(self) -> None:
        cache = getattr(self.thing, "cache", self.thing)
        if not hasattr(cache, "holdings"):
            self._wrap_methods()
            return
        for part in (self.thing, getattr(self.thing, "scheduler", None), cache, cache.pool):
            if part is not None and hasattr(part, "observer") and not self._listens_to(part):
                self._listen(part)

    def _listens_to(self, part) -> bool:
        return getattr(part.observer, "recording", None) is self

    def _listen(self, part) -> None:
        before = part.observer

        def observe(event: Event) -> None:
            if before is not None:
                before(event)
            self._on_event(event)

        observe.recording = self
        part.observer = observe
        self._undo.append(lambda: setattr(part, "observer", before))

    def _wrap_methods(self) -> None:
        for name in dir(type(self.thing)):
            method = inspect.getattr_static(type(self.thing), name)
            if name.startswith("_") or not inspect.isfunction(method):
                continue
            try:
                setattr(self.thing, name, self._wrapped(name, getattr(self.thing, name)))
            except AttributeError:
                raise TypeError(
                    f"a {type(self.thing).__name__} cannot be recorded, since its methods "
                    "cannot be exchanged; leave out __slots__"
                ) from None
            self._undo.append(functools.partial(delattr, self.thing, name))

    def _wrapped(self, name: str, method):
        @functools.wraps(method)
        def call(*args, **kwargs):
            self._depth += 1
            said = " is interrupted"
            try:
                result = method(*args, **kwargs)
                said = "" if result is None else f" returns {_brief.repr(result)}"
                return result
            except Exception as error:
                said = f" raises {type(error).__name__}: {str(error)[:80]}"
                raise
            finally:
                self._depth -= 1
                # What a method calls within itself is part of its own step.
                if self._depth == 0:
                    self._on_call(name, args, kwargs, said)

        return call

    # -- steps -------------------------------------------------------------------------

    def _on_call(self, name: str, args, kwargs, said: str) -> None:
        given = [_brief.repr(arg) for arg in args]
        given += [f"{key}={_brief.repr(value)}" for key, value in kwargs.items()]
        before, state = self.steps[-1].snapshot, self._state()
        sentence = f"{name}({', '.join(given)}){said}."
        self._add(state, None, sentence, changed(before, state))

    def _on_event(self, event: Event) -> None:
        if event.kind in SILENT:
            return
        state = self._state()
        sentence = self._sentence(event, state)
        if event.kind == "evict":
            self._owners.pop(event.block, None)
            self._evicted.add(event.block)
        elif event.kind == "drop":
            self._evicted |= set(self._owners)
            self._owners.clear()
        elif event.kind in ("allocate", "copy", "register"):
            self._owners[event.block] = event.request, event.logical
            self._evicted.discard(event.block)
        self._add(state, event, sentence, self._marks(event, state))

    def _sentence(self, event: Event, state: Snapshot) -> str:
        said = re.sub(r"\b1 ((?:new |lost )?)tokens", r"1 \1token", event.sentence())
        if event.kind == "token" and state.decode is not None:
            said += f": {state.decode([event.tokens])!r}"
        if event.kind == "evict" and event.block in self._owners:
            request, logical = self._owners[event.block]
            here = any(view.request == request for view in state.requests)
            fate = "must be recomputed" if here else "is forgotten"
            full = "" if event.block in (state.queue or ()) else "pool full: "
            said = f"{full}{said}; request {request}'s block {logical} {fate}"
        return said[0].upper() + said[1:] + "."

    @staticmethod
    def _marks(event: Event, state: Snapshot) -> tuple:
        """What an event is about: a block, an entry of a page table, or what is computed."""
        marks: tuple = () if event.block is None else (event.block,)
        if event.request is not None and event.logical is not None:
            marks += ((event.request, event.logical),)
        if event.kind in ("compute", "recompute"):
            for view in state.requests:
                if view.request == event.request:
                    logicals = sorted({p // state.block_size for p in view.missing})
                    marks += tuple(view.blocks[logical] for logical in logicals)
        return marks

    def _add(
        self, state: Snapshot, event: Event | None, sentence: str, highlight: tuple = ()
    ) -> None:
        for view in state.requests:
            self._order[view.request] = None
            if view.state not in ("waiting", "idle"):
                for logical, block in enumerate(view.blocks):
                    self._owners.setdefault(block, (view.request, logical))
        owners = {block: owner for block, (owner, _) in self._owners.items()}
        state = with_changes(
            state, owners=owners, evicted=frozenset(self._evicted), order=tuple(self._order)
        )
        self.steps.append(Step(event, sentence, state, highlight))


def changed(before: Snapshot, after: Snapshot) -> tuple[int, ...]:
    """The blocks whose count changed, or that entered or left the queue."""
    waited, waits = set(before.queue or ()), set(after.queue or ())
    common = min(before.num_blocks, after.num_blocks)
    blocks = {block for block in range(common) if before.count(block) != after.count(block)}
    return tuple(sorted(blocks | (waited ^ waits)))


def record(thing, *, idle: Mapping[Hashable, Sequence[int]] | None = None) -> Recording:
    """Record a PagedKVCache, PagedEngine, BlockPool or an object of your own class.

    with record(engine) as recording: engine.generate(prompts)
    """
    return Recording(thing, idle)
