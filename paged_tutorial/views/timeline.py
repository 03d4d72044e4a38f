"""Time from left to right: who had which block, or how long each request lived."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from .frame import MARGIN, WIDTH, Caption, Title
from .palette import GOLD, GROUND, INK, MUTED, NEUTRAL, RULE, Cast
from .recording import Step
from .svg import Picture, path, rect, text, text_width
from .tiles import CACHED, HELD, tiles_of

MOST_LANES = 300


class Span(NamedTuple):
    """One bar: a lane, from when to when, whose it is.

    lane: a name, or a number; bars in numbered lanes may be `size` lanes high, as a piece of
    contiguous memory is. kept: shown pale and dashed. note: written into the bar
    """

    lane: Hashable
    start: float
    end: float
    owner: Hashable = None
    size: int = 1
    kept: bool = False
    note: str = ""


def draw_timeline(
    lifetimes,
    title: str | None = None,
    caption: str | None = None,
    *,
    time: str = "step",
    lane: str | None = None,
    marks: Iterable[tuple[float, str]] = (),
) -> Picture:
    """Bars over time: of a Recording, with blocks as lanes, or of your own lifetimes.

    lifetimes: a Recording, or Spans, or tuples (lane, start, end, owner, size, ...)
    time, lane: what the axes count; marks: (time, words) of moments to point out in gold
    """
    steps = getattr(lifetimes, "steps", lifetimes)
    steps = list(steps)
    if steps and isinstance(steps[0], Step):
        spans, lane = spans_of(steps), lane or "block"
    else:
        spans = [Span(*item) for item in steps]
    if not spans:
        raise ValueError("there is nothing to draw: no lifetimes were given")
    return _Chart(spans, title, caption, time, lane or "", list(marks)).picture()


def spans_of(steps: list[Step]) -> list[Span]:
    """For each block, the stretches of steps during which its owner and state were the same."""
    cast = Cast()
    open_since: dict[int, tuple[int, Hashable, bool]] = {}
    spans: list[Span] = []
    for now, step in enumerate(steps):
        for tile in tiles_of(step.snapshot, cast):
            kept = tile.state == CACHED
            busy = kept or tile.state == HELD
            before = open_since.get(tile.block)
            state = (cast.request_of(tile.label), kept) if busy else None
            if before is not None and before[1:] != state:
                spans.append(Span(tile.block, before[0], now, before[1], 1, before[2]))
                del open_since[tile.block]
                before = None
            if before is None and state is not None:
                open_since[tile.block] = (now, *state)
    end = len(steps)
    spans += [Span(block, since, end, who, 1, kept) for block, (since, who, kept) in
              open_since.items()]  # fmt: skip
    return sorted(spans, key=lambda span: (span.lane, span.start))


class _Chart:
    """Scales of a timeline, and its drawing."""

    def __init__(self, spans, title, caption, time, lane, marks) -> None:
        self.words, self.marks = (title, caption), marks
        self.title, self.caption = Title(title), Caption(caption)
        self.time, self.lane = time, lane
        self.cast = Cast(dict.fromkeys(span.owner for span in spans))
        self.numbered = all(isinstance(span.lane, int) for span in spans)
        if self.numbered:
            self.first = min(span.lane for span in spans)
            self.names = range(self.first, max(span.lane + span.size for span in spans))
        else:
            self.first, self.names = 0, list(dict.fromkeys(span.lane for span in spans))
        self.hidden = max(0, len(self.names) - MOST_LANES)
        self.names = self.names[:MOST_LANES]
        self.rows = {name: row for row, name in enumerate(self.names)}
        self.spans = [span for span in spans if span.lane in self.rows]
        many = len(self.names)
        self.row = 26 if many <= 16 else max(3.0, 420 / many)
        self.begin = min(span.start for span in spans)
        self.end = max(max(span.end for span in spans), self.begin + 1e-9)
        longest = max(text_width(str(name)[:18], 11.5) for name in self.names)
        self.left = MARGIN + max(longest + 14, 34)
        self.scale = (WIDTH - MARGIN - self.left) / (self.end - self.begin)
        self.top = self.title.bottom + 12 + (16 if lane else 0) + (20 if marks else 0)
        self.bottom = self.top + len(self.names) * self.row

    def x(self, time: float) -> float:
        return self.left + (time - self.begin) * self.scale

    def y(self, lane: Hashable) -> float:
        return self.top + self.rows[lane] * self.row

    def picture(self) -> Picture:
        title, caption = self.words
        body = [self.title.draw(), *self._grid(), *map(self._bar, self.spans)]
        for time, words in self.marks:
            x = self.x(time)
            anchor = "end" if x > WIDTH * 0.6 else "start"
            body.append(path(f"M{x:.1f} {self.top - 4}V{self.bottom:g}", "none", GOLD, 2.5))
            body.append(text(x, self.top - 9, words, 12, INK, anchor, 600))
        body.append(self.caption.draw(self.bottom + 48))
        height = self.bottom + 54 + self.caption.height
        styles = [NEUTRAL, *(self.cast.style(span.owner) for span in self.spans)]
        title = title or f"Timeline of {len(self.names)} {self.lane or 'lane'}s"
        return Picture("".join(body), WIDTH, height, title, self._words(), styles)

    def _grid(self) -> list[str]:
        """The axes: time below, lanes on the left."""
        parts, bottom = [], self.bottom
        for tick in _ticks(self.begin, self.end):
            x = self.x(tick)
            parts.append(path(f"M{x:.1f} {self.top - 2:g}V{bottom:g}", "none", RULE, 1))
            parts.append(text(x, bottom + 17, f"{tick:g}", 11, MUTED, "middle"))
        parts.append(text(WIDTH - MARGIN, bottom + 34, f"{self.time} →", 12, MUTED, "end", 600))
        if any(span.kept for span in self.spans):
            parts.append(
                rect(self.left, bottom + 24, 30, 13, 4, NEUTRAL.pattern, NEUTRAL.solid, 1.2, "4 3")
            )
            parts.append(text(self.left + 38, bottom + 34.5, "kept for a hit", 12, MUTED))
        if self.hidden:
            words = f"{self.hidden} more are not shown"
            parts.append(text(WIDTH / 2, bottom + 34.5, words, 12, MUTED, "middle"))
        if self.lane:
            parts.append(text(MARGIN, self.top - 8, self.lane, 12, MUTED, weight=600))
        every = next(k for k in (1, 2, 5, 10, 20, 50, 100) if k * self.row >= 14)
        for index, name in enumerate(self.names):
            if index % every == 0:
                y = self.top + index * self.row + min(self.row, 15 * every) / 2 + 4
                parts.append(text(self.left - 8, y, str(name)[:18], 11.5, MUTED, "end"))
        return parts

    def _bar(self, span: Span) -> str:
        style, label = self.cast.style(span.owner), self.cast.label(span.owner)
        x, y = self.x(span.start), self.y(span.lane)
        wide = max(1.5, (span.end - span.start) * self.scale)
        inset = 2 if self.row > 10 else 0.5
        high = min(self.row * span.size, self.bottom - y) - 2 * inset
        dash, fill = ("4 3", style.pattern) if span.kept else ("", style.tint)
        parts = [rect(round(x, 1), y + inset, round(wide, 1), high, min(4, high / 4), fill,
                      style.solid, 1.4, dash)]  # fmt: skip
        said = f"{label} {span.note}".strip()
        for words in (said, label):
            size = min(13, high - 3)
            room = text_width(words, size, 600) + 8
            if words and size >= 8 and room <= wide:
                middle = x + wide / 2, y + inset + high / 2 + size * 0.36
                if span.kept:
                    parts.append(
                        rect(
                            middle[0] - room / 2 + 2,
                            y + inset + (high - size) / 2 - 1,
                            room - 4,
                            size + 2,
                            4,
                            GROUND,
                        )
                    )
                parts.append(
                    text(
                        round(middle[0], 1),
                        round(middle[1], 1),
                        words,
                        size,
                        style.ink,
                        "middle",
                        600,
                    )
                )
                break
        return "".join(parts)

    def _words(self) -> str:
        said = [self.words[1]] if self.words[1] else []
        said.append(f"{len(self.spans)} bars from {self.time} {self.begin:g} to {self.end:g}.")
        for span in self.spans[:20]:
            owner = "" if span.owner is None else f" {span.owner}"
            kept = ", kept" if span.kept else ""
            name = f"{self.lane} {span.lane}".strip()
            said.append(f"{name}:{owner} {span.start:g} to {span.end:g}{kept}.")
        return " ".join(said)


def _ticks(begin: float, end: float) -> list[float]:
    """Five to ten round numbers."""
    span = end - begin
    size = 1.0
    while span / size > 10:
        size *= 2.5 if str(size).lstrip("0.").startswith("2") else 2
    while span / size < 4 and span > 0:
        size /= 2
    first = -(-begin // size)
    many = int((end - first * size) / size + 1e-9) + 1
    return [round((first + k) * size, 9) for k in range(many)]
