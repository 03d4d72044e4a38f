"""Two policies on the same trace, side by side: who hits, who misses, who goes next.

`draw_order` shows one cache alone, as a line of keys from the oldest to the newest.

In English: the trace is a line of letters, each the block that is asked for. Below it every
policy has a line of marks, one an access: a dot is a hit, a dash a miss. Then come the blocks
of each cache with what they hold, and an arrow at the one that would go next.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping, Sequence

from ..block_cache import BlockCache
from .frame import INNER, MARGIN, WIDTH, Caption, Title
from .palette import FAINT, GROUND, INK, MUTED, Cast
from .svg import Picture, moved, path, rect, text
from .tiles import ring

NAMES = 96  # width of the column with the policies' names
TILE, GAP = 46, 9


class Side:
    """One policy, its cache after some accesses, and what each access came to."""

    def __init__(self, name: str, make_queue: Callable, trace, step: int, capacity: int) -> None:
        self.name = name
        self.cache = BlockCache(capacity, make_queue())
        self.hits: list[bool] = []
        self.gone: Hashable | None = None  # the key that gave way in the last access
        for key in trace[:step]:
            before = dict(self.cache.key_of)
            self.hits.append(self.cache.access(key))
            lost = [k for block, k in before.items() if self.cache.key_of[block] != k]
            self.gone = lost[0] if lost else None
        # Asking a copy of the queue changes nothing in the queue itself.
        self.next = copy.deepcopy(self.cache.queue).pop()

    def sentence(self) -> str:
        """What the last access came to."""
        if self.hits[-1]:
            return f"{self.name}: a hit."
        return f"{self.name}: a miss, " + (
            "and a block was still empty." if self.gone is None else f"{self.gone} gives way."
        )


def draw_duel(
    trace: Sequence[Hashable],
    step: int,
    capacity: int,
    policies: Mapping[str, Callable],
) -> Picture:
    """The state after `step` accesses of `trace`, for each policy in `policies`.

    policies: name -> a function that makes an empty queue, such as LRUManager
    trace: keys, best as single capital letters, at most about 40
    Raises ValueError unless step is 0 to len(trace).
    """
    if not 0 <= step <= len(trace):
        raise ValueError(f"step must be 0 to {len(trace)}, got {step}")
    cast = Cast(dict.fromkeys(trace))
    sides = [Side(name, make, trace, step, capacity) for name, make in policies.items()]
    title = Title(_finding(sides, step, len(trace)))
    caption = Caption(_said(sides, trace, step))
    y = title.bottom + 14.0
    body = [title.draw(), moved(MARGIN, y, _trace_strip(sides, trace, step, cast))]
    y += 44 + 24 * len(sides)
    for side in sides:
        row, height = _cache_row(side, trace[step - 1] if step else None, cast)
        body.append(moved(MARGIN, y, row))
        y += height
    body.append(caption.draw(y + 2))
    words = f"{_said(sides, trace, step)} " + " ".join(map(_in_words, sides))
    styles = [cast.style(key) for key in dict.fromkeys(trace)]
    return Picture(
        "".join(body),
        WIDTH,
        y + caption.height + 4,
        _finding(sides, step, len(trace)),
        words,
        styles,
    )


def _finding(sides: list[Side], step: int, length: int) -> str:
    scores = ", ".join(f"{side.name} {side.cache.hits}" for side in sides)
    return f"Hits after {step} of {length} accesses: {scores}"


def _said(sides: list[Side], trace, step: int) -> str:
    if not step:
        return "All blocks are empty. Move the step to the right."
    return " ".join([f"{trace[step - 1]} is asked for.", *(side.sentence() for side in sides)])


def _in_words(side: Side) -> str:
    held = side.cache.key_of
    blocks = ", ".join(str(held.get(block, "empty")) for block in range(side.cache.capacity))
    following = held.get(side.next, "an empty one")
    return f"{side.name} holds {blocks}; {following} would go next."


def _trace_strip(sides: list[Side], trace, step: int, cast: Cast) -> str:
    """The letters of the trace, and the marks of each policy below them."""
    wide = min(24.0, (INNER - NAMES) / max(1, len(trace)))
    parts = [text(0, 15, "asked for", 12, MUTED, weight=600)]
    for index, key in enumerate(trace):
        x, style = NAMES + index * wide, cast.style(key)
        done = index < step
        fill, edge = (style.tint, style.solid) if done else (GROUND, FAINT)
        if index == step - 1:
            parts.append(moved(x, 0, ring(wide - 2, 22, 4, 3)))
        parts.append(rect(x, 0, wide - 2, 22, 4, fill, edge, 1))
        ink = style.ink if done else MUTED
        parts.append(text(x + wide / 2 - 1, 15.5, cast.label(key), 12, ink, "middle", 700))
    for row, side in enumerate(sides):
        y = 40 + 24 * row
        parts.append(text(0, y + 4, side.name, 13, INK, weight=600))
        for index, hit in enumerate(side.hits):
            x = NAMES + index * wide + wide / 2 - 1
            if hit:
                parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="4.5" fill="{INK}"/>')
            else:
                parts.append(path(f"M{x - 4:g} {y:g}h8", "none", FAINT, 1.8))
    return "".join(parts)


def _cache_row(side: Side, last: Hashable | None, cast: Cast) -> tuple[str, float]:
    """The blocks of one cache, and the height they take."""
    parts = [text(0, 28, side.name, 13, INK, weight=600)]
    columns = int((INNER - NAMES + GAP) // (TILE + GAP))
    for block in range(side.cache.capacity):
        row, column = divmod(block, columns)
        x, y = NAMES + column * (TILE + GAP), row * (TILE + 26)
        key = side.cache.key_of.get(block)
        if key is None:
            parts.append(rect(x, y, TILE, TILE, 7, GROUND, FAINT, 1.2))
        else:
            style = cast.style(key)
            if key == last:
                parts.append(moved(x, y, ring(TILE, TILE)))
            parts.append(rect(x, y, TILE, TILE, 7, style.tint, style.solid, 1.6))
            middle = x + TILE / 2
            parts.append(text(middle, y + 30, cast.label(key), 19, style.ink, "middle", 700))
        if block == side.next:
            parts.append(text(x + TILE / 2, y + TILE + 15, "↑ next", 11.5, INK, "middle", 600))
    rows = -(-side.cache.capacity // columns)
    return "".join(parts), rows * (TILE + 26) + 6.0


def draw_order(keys: Sequence[Hashable], title: str) -> Picture:
    """Keys in a line, the one that goes next first; at most 12 are shown."""
    shown, cast = list(keys)[:12], Cast(keys)
    head = Title(title)
    y = head.bottom + 14.0
    body = [head.draw(), text(MARGIN, y + 28, "goes next →", 12, MUTED, weight=600)]
    for index, key in enumerate(shown):
        x, style = MARGIN + NAMES + index * (TILE + GAP), cast.style(key)
        body.append(rect(x, y, TILE, TILE, 7, style.tint, style.solid, 1.6))
        body.append(text(x + TILE / 2, y + 30, cast.label(key), 19, style.ink, "middle", 700))
    if not shown:
        body.append(text(MARGIN + NAMES, y + 28, "empty", 14, MUTED))
    words = ", ".join(map(str, shown)) or "empty"
    styles = [cast.style(key) for key in shown]
    return Picture(
        "".join(body), WIDTH, y + TILE + 16, title, f"Next to go first: {words}.", styles
    )
