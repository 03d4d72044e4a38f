"""Pictures of attention: the weights over the blocks, and blocks arriving one at a time.

In English: a dark square is a large weight. In the first picture each row is a token that
looks back. In the second one token looks at one block after the other, and its highest
score, total and output approach those of attention over everything at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from .frame import INNER, MARGIN, WIDTH, Caption, Title
from .palette import COLOURS, FAINT, GOLD, GROUND, INK, MUTED, PALE, RULE
from .svg import Picture, path, rect, text, text_width, written

# Weights from each limit on have the shade beside it. Lightness alone tells them apart.
LIMITS = (0.01, 0.03, 0.1, 0.2, 0.4, 0.7)
SHADES = ("#DCEBF5", "#B4D5EA", "#7DB4D8", "#3C8BBF", "#005F96", "#003557")
BLUE, BLUE_INK, BLUE_TINT = COLOURS[0]


@dataclass(frozen=True)
class Arrival:
    """A block on its way to a query: its name, its tokens as text, its scores (slots,)."""

    name: str
    tokens: Sequence[str]
    scores: np.ndarray


def draw_weights(
    weights, labels: Sequence[str], block_ids: Sequence[int], block_size: int, title: str
) -> Picture:
    """The attention weights of one head of one request as a heat map over its blocks.

    weights: (num_tokens, num_tokens), each row a query; labels: the text of each token
    block_ids: the page table. Above each block stands its share of the last row.
    Raises ValueError if weights and labels do not fit together.
    """
    weights = np.asarray(weights)
    number = len(labels)
    if weights.shape != (number, number):
        raise ValueError(f"{number} labels need weights {(number, number)}, got {weights.shape}")
    head = Title(title)
    left, top = MARGIN + 76, head.bottom + 50
    cell = (INNER - 76 - 92) / number
    side = cell * number
    starts = range(0, number, block_size)
    shares = [weights[-1, start : start + block_size].sum() for start in starts]
    parts = [head.draw(), _key(left + side + 20, top)]
    for block, start, share in zip(block_ids, starts, shares, strict=False):
        x, width = left + start * cell, min(block_size, number - start) * cell
        parts.append(rect(x + 1, top - 42, width - 2, 38, 5, BLUE_TINT, BLUE, 1.2))
        name = f"block {block}"
        name = name if text_width(name, 12, 700) < width else str(block)
        parts.append(text(x + width / 2, top - 26, name, 12, BLUE_INK, "middle", 700))
        parts.append(text(x + width / 2, top - 11, f"{share:.0%}", 12, INK, "middle"))
    parts.append(text(left - 8, top - 11, "last row", 11, MUTED, "end"))
    later = f"M{left:g} {top:g}H{left + side:g}V{top + side:g}"
    steps = "".join(f"V{top + row * cell:g}h{-cell:g}" for row in range(number - 1, 0, -1))
    parts.append(path(f"{later}{steps}z", PALE))
    parts.append(_squares(weights, left, top, cell))
    lines = "".join(f"M{left + start * cell:g} {top:g}v{side:g}" for start in [*starts, number])
    parts.append(path(lines, "none", FAINT, 1))
    last = top + (number - 1) * cell
    parts.append(rect(left, last, side, cell, 2, "none", GOLD, 2))
    for row, label in enumerate(labels):
        y = top + (row + 0.5) * cell + 4
        parts.append(text(left - 6, y, _short(label), 11, INK, "end"))
        parts.append(_upright(left + (row + 0.5) * cell + 4, top + side + 6, label))
    said = ", ".join(f"block {b} {s:.0%}" for b, s in zip(block_ids, shares, strict=False))
    description = f"Heat map of {number} tokens by {number}. Shares of the last row: {said}."
    return Picture("".join(parts), WIDTH, top + side + 76, title, description)


def draw_arrivals(
    arrivals: Sequence[Arrival],
    states: Sequence[tuple[float, float, np.ndarray]],
    exact: np.ndarray,
    title: str,
    caption: str | None = None,
) -> Picture:
    """Blocks that arrive at a query one at a time.

    arrivals: all blocks in the order in which they arrive
    states: (highest, total, output (head_dim,)) after each block that has arrived so far, the
    output not yet divided by the total
    exact: (head_dim,) attention over all keys at once
    """
    head, foot = Title(title), Caption(caption)
    left, top = MARGIN + 104, head.bottom + 16
    width = (INNER - 104) / len(arrivals)
    slots = max(len(arrival.scores) for arrival in arrivals)
    means = [_divided(output, total) for _, total, output in states]
    highest, total = states[-1][:2] if states else (0.0, 1.0)
    longest = max(
        (len(_short(token)) for arrival in arrivals for token in arrival.tokens), default=0
    )
    table = top + 74 + text_width("x" * longest, 11)
    parts = [head.draw(), path(f"M{MARGIN} {table:g}h{INNER}", "none", RULE, 1)]
    for line, name in enumerate(("highest", "total", "off by at most")):
        parts.append(text(MARGIN, table + 20 + 23 * line, name, 12, MUTED))
    for index, (arrival, state) in enumerate(zip_longest(arrivals, states)):
        x = left + index * width
        newest = index == len(states) - 1
        shaded = None if state is None else _weights(arrival.scores, highest, total)
        parts.append(_block(arrival, shaded, x, top, width, slots, newest))
        if state is not None:
            numbers = f"{state[0]:.2f}", f"{state[1]:.2f}", _off(means[index], exact)
            weight = 700 if newest else 400
            for line, number in enumerate(numbers):
                middle = x + width / 2
                parts.append(
                    text(middle, table + 20 + 23 * line, number, 12, INK, "middle", weight)
                )
    reached = means[-1] if means else np.zeros_like(exact)
    parts.append(_outputs(reached, exact, table + 92))
    bottom = table + 92 + 122
    parts.append(foot.draw(bottom))
    off = f"off by {_off(reached, exact)} at most" if states else "not there yet"
    description = f"{len(states)} of {len(arrivals)} blocks; the output is {off}. {caption or ''}"
    return Picture("".join(parts), WIDTH, bottom + max(foot.height, 35) + 8, title, description)


def _block(arrival, shaded, x, y, width, slots, newest) -> str:
    """A block with its slots in the shade of their weights; dashed until it has arrived."""
    tile = rect(x + 3, y, width - 6, 52, 6, BLUE_TINT, BLUE, 1.2)
    if shaded is None:
        tile = rect(x + 3, y, width - 6, 52, 6, GROUND, FAINT, 1.2, "4 3")
    ink = MUTED if shaded is None else BLUE_INK
    parts = [rect(x + 0.5, y - 2.5, width - 1, 57, 8, GROUND, GOLD, 2.5)] if newest else []
    parts += [tile, text(x + width / 2, y + 17, arrival.name, 12, ink, "middle", 700)]
    size = min(20.0, (width - 12) / slots)
    start = x + (width - size * len(arrival.scores)) / 2
    for slot in range(len(arrival.scores)):
        fill, edge = (GROUND, FAINT) if shaded is None else (_shade(shaded[slot]), BLUE)
        at = start + slot * size
        parts.append(rect(at + 0.5, y + 25, size - 1, 20, 2, fill, edge, 0.8))
        if slot < len(arrival.tokens):
            parts.append(_upright(at + size / 2 + 4, y + 60, arrival.tokens[slot]))
    return "".join(parts)


def _outputs(reached, exact, y) -> str:
    """The output so far as bars, the exact one as outlines around them."""
    height, middle = 92.0, y + 56
    unit = height / 2 / max(float(np.abs(exact).max()), 1e-30)
    step = INNER / len(exact)
    bars = [
        rect(MARGIN, y - 2, 10, 10, 1, BLUE),
        text(MARGIN + 15, y + 7, "output so far", 12, INK),
        rect(MARGIN + 116, y - 2, 10, 10, 1, "none", INK, 1),
        text(MARGIN + 131, y + 7, f"exact, the {len(exact)} numbers of the head", 12, INK),
    ]
    for index, (now, wanted) in enumerate(zip(reached, exact, strict=True)):
        x = MARGIN + index * step
        now = float(np.clip(np.nan_to_num(now) * unit, -60, 52))
        wanted = float(wanted * unit)
        bars.append(rect(x + 2, middle - max(now, 0), max(step - 5, 1), abs(now), 0, BLUE))
        bars.append(
            rect(x + 0.5, middle - max(wanted, 0), step - 2, abs(wanted), 0, "none", INK, 1)
        )
    return "".join([*bars, path(f"M{MARGIN} {middle:g}h{INNER}", "none", FAINT, 1)])


def _squares(weights, left, top, cell) -> str:
    """One path for each shade: a picture of a thousand squares stays small."""
    shade = np.searchsorted(LIMITS, np.nan_to_num(weights), side="right") - 1
    drawn = []
    for index, colour in enumerate(SHADES):
        places = np.argwhere(shade == index)
        d = "".join(
            f"M{left + column * cell + 0.5:.1f} {top + row * cell + 0.5:.1f}"
            f"h{cell - 1:.1f}v{cell - 1:.1f}h{1 - cell:.1f}z"
            for row, column in places
        )
        if d:
            drawn.append(path(d, colour))
    return "".join(drawn)


def _key(x, y) -> str:
    """What the shades mean."""
    parts = [text(x, y + 10, "weight", 12, MUTED)]
    for row, (limit, colour) in enumerate(zip(LIMITS, SHADES, strict=True)):
        parts.append(rect(x, y + 18 + 22 * row, 16, 16, 2, colour))
        parts.append(text(x + 23, y + 31 + 22 * row, f"{limit:.0%} up", 12, INK))
    return "".join(parts)


def _shade(weight: float) -> str:
    index = int(np.searchsorted(LIMITS, weight, side="right")) - 1
    return SHADES[index] if index >= 0 else GROUND


def _weights(scores, highest, total):
    """The weights as they are at this moment; none while nothing has been seen."""
    return np.exp(scores - highest) / total if total else np.zeros(len(scores))


def _divided(output, total):
    return np.asarray(output, float) / total if total else np.zeros(np.shape(output))


def _off(reached, exact) -> str:
    """The largest difference; what is left of it by rounding differs from machine to machine."""
    worst = float(np.abs(np.asarray(reached) - exact).max())
    return "under 1e-5" if worst < 1e-5 else f"{worst:.3f}"


def _short(label: str) -> str:
    """A token in few characters, its line breaks made visible."""
    label = label.strip(" ").replace("\n", "↵")
    return label if len(label) <= 9 else f"{label[:8]}…"


def _upright(x, y, label: str) -> str:
    """A label that is read from bottom to top, ending at its place."""
    return (
        f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)" font-size="11" '
        f'fill="{INK}" text-anchor="end">{written(_short(label))}</text>'
    )
