"""Lines over two logarithmic axes, as SVG: drawn in a few milliseconds, so that a slider can
move it. matplotlib takes a quarter of a second to lay out two such axes.

In English: an axis maps the logarithm of a number to pixels, and has a rule at each tick. A
line goes through its points, with a marker at some of them, and has its name at its right
end; names that would touch each other are moved apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, floor, log10

from .frame import MARGIN, WIDTH, Title
from .palette import COLOURS, FAINT, GROUND, INK, MUTED, RULE
from .svg import Picture, apart, path, text, text_width

HIGH, MARKS, LABEL_GAP = 270, 6, 19
DASHES = ("", "9 4", "9 3 2 3", "2 3")
MARKERS = (  # circle, square, triangle, diamond: in the order of the charts by matplotlib
    "M{x:.1f} {y:.1f}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    "M{x:.1f} {y:.1f}m-4 -4h8v8h-8z",
    "M{x:.1f} {y:.1f}m-5 4h10l-5 -9z",
    "M{x:.1f} {y:.1f}m-5 0l5 -5l5 5l-5 5z",
)


class Scale:
    """Maps numbers from `low` to `high` to pixels from `start` to `end`, by their logarithm."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.start = log10(low), start
        self.step = (end - start) / (log10(high) - self.low)

    def __call__(self, number: float) -> float:
        return self.start + (log10(number) - self.low) * self.step


def draw_lines(
    lines: Mapping[str, Sequence[float]],
    x: Sequence[float],
    title: str,
    x_label: str,
    y_label: str,
    *,
    ticks: Sequence[int],
    dotted: Sequence[float] = (),
) -> Picture:
    """A chart of one line a name, `lines[name][i]` over `x[i]`; all numbers above zero.

    x: rising; ticks: the numbers written along the x axis; dotted: numbers of the x axis where
    a dotted line stands upright. The y axis has a tick at each power of ten.
    Raises ValueError if there is nothing to draw, x does not rise, or a number is not above 0.
    """
    numbers = [y for line in lines.values() for y in line]
    if not numbers or len(x) < 2:
        raise ValueError("there is nothing to draw: give a line of two points or more")
    if any(right <= left for left, right in pairwise(x)):
        raise ValueError(f"x must rise, got {list(x)}")
    if min(*numbers, *x, *ticks) <= 0:
        raise ValueError(f"a logarithm needs numbers above zero, got {min(*numbers, *x, *ticks)}")
    head = Title(title)
    top = head.bottom + 34.0
    bottom = top + HIGH
    right = WIDTH - MARGIN - max(text_width(name, 13, 600) for name in lines)
    lowest, highest = floor(log10(min(numbers))), ceil(log10(max(numbers)))
    to_y = Scale(10.0**lowest, 10.0 ** max(highest, lowest + 1), bottom, top)
    to_x = Scale(x[0], x[-1], MARGIN + 62.0, right - 12)

    parts = [head.draw(), text(MARGIN, top - 16, y_label, 12.5, MUTED)]
    for power in range(lowest, highest + 1):
        y = to_y(10.0**power)
        parts.append(path(f"M{MARGIN + 54} {y:.1f}H{right - 4:.1f}", stroke=RULE))
        parts.append(text(MARGIN + 48, y + 4, _plain(10.0**power, 1), 12, MUTED, "end"))
    for tick in ticks:
        parts.append(path(f"M{to_x(tick):.1f} {bottom:.1f}v5", stroke=FAINT))
        parts.append(text(to_x(tick), bottom + 20, f"{tick:,}", 12, MUTED, "middle"))
    parts.append(path(f"M{MARGIN + 54} {bottom:.1f}H{right - 4:.1f}", stroke=FAINT))
    parts.append(text((MARGIN + 54 + right) / 2, bottom + 40, x_label, 12.5, MUTED, "middle"))
    for number in dotted:
        parts.append(path(f"M{to_x(number):.1f} {top:.1f}V{bottom:.1f}", stroke=FAINT, dash="2 4"))
    for number, line in enumerate(lines.values()):
        points = [(to_x(a), to_y(b)) for a, b in zip(x, line, strict=True)]
        parts.append(_line(points, number))
    ends = apart([to_y(line[-1]) for line in lines.values()], LABEL_GAP)
    for name, y in zip(lines, ends, strict=True):
        parts.append(text(right, y + 4.5, name, 13, INK, weight=600))
    said = [f"{y_label}, against {x_label}; both axes logarithmic."]
    said += [
        f"{name}: from {_plain(line[0])} at {x[0]:,} to {_plain(line[-1])} at {x[-1]:,}."
        for name, line in lines.items()
    ]
    return Picture("".join(parts), WIDTH, bottom + 58, title, " ".join(said))


def _line(points: Sequence[tuple[float, float]], number: int) -> str:
    """The line, dashed by its number, and a marker at some of its points."""
    colour = COLOURS[number % len(COLOURS)][0]
    way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    marker = MARKERS[number % len(MARKERS)]
    some = points[:: max(1, len(points) // MARKS)]
    marks = "".join(marker.format(x=x, y=y) for x, y in some)
    dash = DASHES[number % len(DASHES)]
    return path(way, stroke=colour, line=2.4, dash=dash) + path(marks, colour, GROUND, 1)


def _plain(number: float, digits: int = 3) -> str:
    """A number with so many digits, as people write it: 1,000,000 and never 1e+06."""
    return f"{number:,.{max(0, digits - 1 - floor(log10(number)))}f}"
