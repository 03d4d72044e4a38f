"""Pictures of an engine at work: single steps as rows of positions, and a whole run.

In English: in the first picture each row is a request in one step, each square one of its
positions. In the second each line is a request and each column a step. Both are drawn from
what `watch` has seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence

from .frame import INNER, MARGIN, WIDTH, Caption, Title
from .palette import FAINT, GOLD, GROUND, INK, MUTED, NEUTRAL, PALE, RULE, Cast, Style
from .svg import Picture, path, rect, text, text_width
from .watching import EngineStep, runs

# How a request is drawn that does not run: edge, line, dash.
STANDS = {"idle": (FAINT, 1, ""), "waits": (FAINT, 1, "3 2"), "preempted": (GOLD, 2, "3 2")}


def draw_positions(
    rows: Sequence[tuple[str, EngineStep, Hashable]],
    block_size: int,
    title: str,
    caption: str | None = None,
) -> Picture:
    """Rows of (label, step, request): the positions that are computed, and those that are read.

    A filled square is computed in this step, a pale one is read from the pool; beside them
    stand how many rows of the step's batch are this request's.
    """
    head, foot, cast = Title(title), Caption(caption), Cast(who for _, _, who in rows)
    longest = max(step.lengths[who] for _, step, who in rows)
    left, right = MARGIN + 92, 104
    cell = min(22.0, (INNER - 92 - right) / longest)
    top, high = head.bottom + 30, 50
    parts = [head.draw(), text(left, top - 9, "position", 12, MUTED)]
    parts.append(text(WIDTH - MARGIN, top - 9, "rows of the batch", 12, MUTED, "end"))
    said = []
    for index, (label, step, who) in enumerate(rows):
        y, style = top + index * high, cast.style(who)
        computed = frozenset(step.computed[who])
        read = [p for p in range(max(computed)) if p not in computed]
        words = f"computes {runs(sorted(computed))}, reads {runs(read)}"
        said.append(f"{label}, request {who}: {words}; {len(computed)} of {step.rows} rows.")
        parts.append(path(f"M{MARGIN} {y:g}H{WIDTH - MARGIN}", "none", RULE, 1))
        parts.append(text(MARGIN, y + 20, label, 14, INK, weight=700))
        parts.append(text(MARGIN, y + 38, cast.label(who), 13, style.ink, weight=700))
        for position in range(step.lengths[who]):
            x = left + position * cell
            fill, edge = (style.tint, style.solid) if position in read else (GROUND, FAINT)
            fill = style.solid if position in computed else fill
            parts.append(rect(x + 0.5, y + 7, cell - 1.5, 17, 2, fill, edge, 0.9))
        ends = range(0, step.lengths[who] + block_size - 1, block_size)
        lines = "".join(f"M{left + min(e, step.lengths[who]) * cell - 0.5:g} {y + 4:g}v23"
                        for e in ends)  # fmt: skip
        parts.append(path(lines, "none", INK, 1.4))
        parts.append(text(left, y + 41, words, 12, MUTED))
        share = f"{len(computed)} of {step.rows}"
        parts.append(text(WIDTH - MARGIN, y + 20, share, 14, INK, "end", 700))
    bottom = top + len(rows) * high
    parts.append(_key(bottom + 8, ((NEUTRAL.solid, NEUTRAL.solid, "computed in this step"),
                                   (NEUTRAL.tint, NEUTRAL.solid, "read from the pool"),
                                   (GROUND, FAINT, "comes in a later step"))))  # fmt: skip
    parts.append(foot.draw(bottom + 36))
    styles = [NEUTRAL, *(cast.style(who) for _, _, who in rows)]
    height = bottom + 40 + foot.height
    words = " ".join([*said, caption or ""]).strip()
    return Picture("".join(parts), WIDTH, height, title, words, styles)


def draw_steps(
    steps: Sequence[EngineStep], title: str, caption: str | None = None, columns: int = 0
) -> Picture:
    """A run: a line for each request, a column for each step, and below how full the pool was.

    The number in a square is how many positions were computed; 1 is left out, and a square
    too narrow for its number is filled. columns: room for as many steps at least, so that
    pictures of several runs have one scale
    """
    if not steps:
        raise ValueError("there is no step to draw: the engine did not run")
    names = list(dict.fromkeys(who for step in steps for who in (*step.lengths, *step.waiting)))
    cast = Cast(names)
    head, foot = Title(title), Caption(caption)
    left, line, high = MARGIN + 56, 26, 56
    cell = min(30.0, (INNER - 56) / max(columns, len(steps)))
    top = head.bottom + 12
    pool = top + len(names) * line + 14
    bottom = pool + high
    parts = [head.draw()]
    for row, who in enumerate(names):
        y, style = top + row * line, cast.style(who)
        parts.append(text(left - 10, y + 17, cast.label(who), 13, style.ink, "end", 700))
        parts.append(path(f"M{left} {y + 13:g}h{cell * len(steps):.1f}", "none", RULE, 1))
        parts.append(_line(steps, who, style, left, y, cell))
    parts.append(_filling(steps, left, pool, cell, high))
    round_numbers = (k * 10**n for n in itertools.count() for k in (1, 2, 5))
    every = next(k for k in round_numbers if k * cell >= 24)
    for number in range(every, len(steps) + 1, every):
        x = left + (number - 0.5) * cell
        parts.append(text(x, bottom + 15, number, 11, MUTED, "middle"))
    parts.append(text(MARGIN, bottom + 15, "step", 11, MUTED))
    numbers = [len(positions) for step in steps for positions in step.computed.values()]
    narrow = any(n > 1 and not _number_size(n, _width(1, cell)) for n in numbers)
    more = [(NEUTRAL.solid, NEUTRAL.solid, "more than one")] if narrow else []
    parts.append(_key(bottom + 26, ((NEUTRAL.tint, NEUTRAL.solid, "runs: positions computed"),
                                    *more,
                                    (PALE, FAINT, "admitted, not its turn"),
                                    (GROUND, FAINT, "waits"),
                                    (GROUND, GOLD, "was preempted, waits"))))  # fmt: skip
    parts.append(foot.draw(bottom + 54))
    height = bottom + 58 + foot.height
    said = [f"{len(steps)} steps of {len(names)} requests."]
    for who in names:
        ran = sum(who in step.computed for step in steps)
        waited = sum(who in step.waiting for step in steps)
        lost = sum(who in step.preempted for step in steps)
        said.append(f"{who} runs in {ran}, waits in {waited}, {lost} of them preempted.")
    fullest = max(step.used for step in steps)
    said.append(f"At most {fullest} of {steps[0].num_blocks} blocks are used. {caption or ''}")
    styles = [NEUTRAL, *map(cast.style, names)]
    return Picture("".join(parts), WIDTH, height, title, " ".join(said).strip(), styles)


def _line(steps: Sequence[EngineStep], who: Hashable, style: Style, left, y, cell) -> str:
    """What one request did: a square for each step it ran in, a bar while it stood still."""
    parts = []
    states = [_state(step, who) for step in steps]
    column = 0
    while column < len(steps):
        state, x = states[column], left + column * cell + 1
        length = 1
        while state != "runs" and states[column + length : column + length + 1] == [state]:
            length += 1
        wide = _width(length, cell)
        if state == "runs":
            number = len(steps[column].computed[who])
            size = _number_size(number, wide)
            fill = style.tint if number == 1 or size else style.solid
            parts.append(rect(round(x, 1), y + 3, round(wide, 1), 20, 3, fill, style.solid))
            if number > 1 and size:
                middle = round(x + wide / 2, 1)
                parts.append(text(middle, y + 17, number, size, style.ink, "middle", 600))
        elif state:
            edge, line, dash = STANDS[state]
            fill = PALE if state == "idle" else GROUND
            parts.append(rect(round(x, 1), y + 8, round(wide, 1), 10, 2, fill, edge, line, dash))
        column += length
    return "".join(parts)


def _width(columns: int, cell: float) -> float:
    return max(columns * cell - 2, 1.5)


def _number_size(number: int, wide: float) -> int | None:
    """The size in which a number fits into a square of this width; None if it does not."""
    return next((size for size in (11, 9) if text_width(str(number), size, 600) <= wide), None)


def _state(step: EngineStep, who: Hashable) -> str:
    """What a request does in a step; nothing before it comes and after it has left."""
    if who in step.computed:
        return "runs"
    if who in step.preempted:
        return "preempted"
    if who in step.waiting:
        return "waits"
    return "idle" if who in step.lengths else ""


def _filling(steps: Sequence[EngineStep], left, top, cell, high) -> str:
    """Bars of the blocks in use, under a line at all blocks."""
    total = steps[0].num_blocks
    parts = [
        text(left - 10, top + 9, total, 11, MUTED, "end"),
        text(left - 10, top + high, "blocks", 11, MUTED, "end"),
        path(f"M{left} {top + 4:g}h{cell * len(steps):.1f}", "none", INK, 1.2, "4 3"),
        path(f"M{left} {top + high:g}h{cell * len(steps):.1f}", "none", FAINT, 1),
    ]
    for column, step in enumerate(steps):
        tall = round((high - 4) * step.used / total, 1)
        x = round(left + column * cell + 1, 1)
        wide = round(max(cell - 2, 1.5), 1)
        parts.append(rect(x, top + high - tall, wide, tall, 0, NEUTRAL.tint, NEUTRAL.solid, 0.8))
    return "".join(parts)


def _key(y: float, entries: Sequence[tuple[str, str, str]]) -> str:
    """What the squares mean."""
    parts, x = [], MARGIN
    for fill, edge, words in entries:
        dash = "3 2" if "waits" in words else ""
        parts.append(rect(x, y, 15, 13, 2, fill, edge, 2 if edge == GOLD else 1, dash))
        parts.append(text(x + 21, y + 11, words, 12, MUTED))
        x += 21 + text_width(words, 12) + 12
    return "".join(parts)
