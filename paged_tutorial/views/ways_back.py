"""A text whose blocks are partly gone, and what each way back computes.

In English: on top the blocks of the text, the missing ones dashed, with a question mark.
Below, one line for each way: a dark square is a position that the model must run on, a pale
one is read from the pool as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .frame import INNER, MARGIN, WIDTH, Caption, Title
from .palette import COLOURS, FAINT, GROUND, INK, MUTED
from .panels import count_of
from .svg import Picture, path, rect, text

BLUE, BLUE_INK, BLUE_TINT = COLOURS[0]
NAMES, COUNTS = 150, 84  # widths of the columns left and right of the squares
LINE = 34


def draw_ways(
    num_tokens: int,
    block_size: int,
    resident: Collection[int],
    ways: Mapping[str, Collection[int]],
    title: str,
    caption: str | None = None,
) -> Picture:
    """The blocks of a text, and the positions that each way computes.

    resident: the logical blocks that are in the pool
    ways: name -> positions. Raises ValueError for a position outside the text.
    """
    for name, positions in ways.items():
        outside = [position for position in positions if not 0 <= position < num_tokens]
        if outside:
            raise ValueError(f"{name}: position {outside[0]} is outside 0 to {num_tokens - 1}")
    head, foot = Title(title), Caption(caption)
    left, top = MARGIN + NAMES, head.bottom + 14
    cell = (INNER - NAMES - COUNTS) / num_tokens
    parts = [head.draw(), text(MARGIN, top + 22, "blocks of the text", 12, MUTED)]
    starts = range(0, num_tokens, block_size)
    for logical, start in enumerate(starts):
        width = min(block_size, num_tokens - start) * cell
        parts.append(_block(left + start * cell, top, width, logical, logical in resident))
    y = top + 52
    for name, positions in ways.items():
        parts.append(text(MARGIN, y + 15, name, 13, INK, weight=600))
        parts.append(_squares(left, y, cell, num_tokens, set(positions)))
        number = count_of(len(set(positions)), "token")
        parts.append(text(left + num_tokens * cell + 10, y + 15, number, 13, INK, weight=700))
        y += LINE
    parts.append(_key(left, y + 4))
    y += 36
    parts.append(foot.draw(y))
    missing = [str(logical) for logical in range(len(starts)) if logical not in resident]
    said = ", ".join(f"{name} {len(set(positions))}" for name, positions in ways.items())
    lost = f"missing: {', '.join(missing)}" if missing else "none missing"
    words = f"{count_of(len(starts), 'block')} of {block_size}, {lost}. Tokens computed: {said}."
    description = f"{words} {caption}" if caption else words
    return Picture("".join(parts), WIDTH, y + foot.height + 6, title, description)


def _block(x, y, width, logical, resident) -> str:
    """A block of the text; where it is missing, a dashed frame with a question mark."""
    fill, edge, dash = (BLUE_TINT, BLUE, "") if resident else (GROUND, MUTED, "3 3")
    tile = rect(x + 1, y, width - 2, 34, 5, fill, edge, 1.3, dash)
    name = str(logical) if resident else "?"
    size = 12 if width > 16 else 10
    if width < 0.7 * size * len(name) + 2:  # the name would run into its neighbours
        return tile
    ink = BLUE_INK if resident else INK
    return tile + text(x + width / 2, y + 22, name, size, ink, "middle", 700)


def _squares(left, y, cell, num_tokens, computed) -> str:
    """Two paths: the positions that are read, and those that are computed."""
    gap = 1.2 if cell > 5 else 0.4
    d = {True: "", False: ""}
    for position in range(num_tokens):
        x = left + position * cell + gap / 2
        d[position in computed] += f"M{x:.1f} {y:g}h{cell - gap:.1f}v20h{gap - cell:.1f}z"
    read = path(d[False], BLUE_TINT, FAINT, 0.6) if d[False] else ""
    return read + (path(d[True], BLUE_INK) if d[True] else "")


def _key(x, y) -> str:
    return "".join(
        (
            rect(x, y, 12, 14, 1, BLUE_INK),
            text(x + 19, y + 11.5, "computed by the model", 12, MUTED),
            rect(x + 190, y, 12, 14, 1, BLUE_TINT, FAINT, 0.6),
            text(x + 209, y + 11.5, "read from the pool", 12, MUTED),
        )
    )
