"""One tile a block: what state it is in, and how that state looks.

In English: free is a thin outline; held is a strong edge, with one slot filled for each
token; held but not yet computed has dots for tokens and a question mark; cached, which is
kept for a hit but may go, is pale with a dashed edge; evicted is hollow with a dotted edge.
No state is told by colour alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from .palette import ALARM, FAINT, GOLD, GROUND, INK, MUTED, PALE, Cast, Style
from .snapshot import ABSENT, Snapshot
from .svg import moved, path, rect, text

FREE, HELD, CACHED, EVICTED = "free", "held", "cached", "evicted"


class Geometry(NamedTuple):
    """Sizes of a tile in pixels: baselines of number and letter, and the box of the slots.

    Without `id_size` there is room for the letter only.
    """

    width: float
    height: float
    gap: float
    id_size: float
    letter_size: float
    number: tuple[float, float] = (0, 0)
    letter: tuple[float, float] = (0, 0)
    slots: tuple[float, float, float, float] = (0, 0, 0, 0)

    @property
    def roomy(self) -> bool:
        """Whether lines and badges have their full size."""
        return self.id_size > 11


LARGE = Geometry(62, 62, 10, 14, 14, (7, 19), (55, 19), (7, 23, 48, 33))
MEDIUM = Geometry(46, 46, 8, 12, 12, (6, 17), (40, 17), (6.5, 21, 33, 19))
SMALL = Geometry(41, 32, 5, 10, 10, (4, 14), (37, 14), (5, 19, 31, 8))
TINY = Geometry(16, 16, 4, 0, 9, letter=(8, 11.3))
STRIP = Geometry(250, 32, 8, 14, 14, (12, 21), (240, 21), (50, 9, 150, 14))  # a row of memory


class Tile(NamedTuple):
    """What is to be seen of a block.

    filled, awaiting: slots with a computed token, and with one still to compute, as bits;
    filled is None if nobody knows; wrong: the state contradicts itself
    """

    block: int
    state: str
    label: str
    style: Style
    count: int = 0
    size: int | None = None
    filled: int | None = None
    awaiting: int = 0
    wrong: bool = False

    @property
    def face_key(self) -> tuple:
        """Tiles with equal keys look the same but for their number."""
        return self[1:3] + self[4:]


def tiles_of(state: Snapshot, cast: Cast) -> list[Tile]:
    """The tiles of all blocks of a snapshot."""
    holders, fills = _fills(state)
    absent = [view for view in state.requests if view.state in ABSENT]
    finders = {block: view.request for view in absent for block in view.blocks}
    counts = state.reference_counts
    if counts is None:
        tables = Counter(block for view in state.requests for block in set(view.blocks))
        counts = [tables[block] for block in range(state.num_blocks)]
    queued = None if state.queue is None else set(state.queue)
    size = state.block_size
    full = None if size is None else (1 << size) - 1
    tiles = []
    for block in range(state.num_blocks):
        count, held = counts[block], block in holders
        owner = holders[block] if held else state.owners.get(block, finders.get(block))
        filled, awaiting = fills.get(block, (None, 0))
        if block in state.evicted and not held:
            kind, owner = EVICTED, None
        elif count or held:
            kind = HELD
        elif block in state.cached:
            kind, filled = CACHED, full
        else:
            kind, owner = FREE, None
        wrong = queued is not None and (block in queued) == (kind == HELD or count > 0)
        wrong = (wrong and kind != EVICTED) or (held and not count)
        tiles.append(
            Tile(
                block,
                kind,
                cast.label(owner),
                cast.style(owner),
                count,
                size,
                filled,
                awaiting,
                wrong,
            )
        )
    return tiles


def _fills(state: Snapshot) -> tuple[dict, dict[int, tuple[int | None, int]]]:
    """The first holder of each held block, and which of its slots are filled or awaited."""
    holders: dict = {}
    fills: dict[int, tuple[int | None, int]] = {}
    size = state.block_size
    for view in state.requests:
        # Who waits or idles has no blocks; its table only says which could be found.
        if view.state in ABSENT:
            continue
        awaited: Counter[int] = Counter()
        for position in view.missing:
            awaited[position // size] |= 1 << position % size
        for logical, block in enumerate(view.blocks):
            if block is None or block in holders:
                continue
            holders[block] = view.request
            if view.num_tokens is None or size is None:
                fills[block] = None, 0
            else:
                used = (1 << max(0, min(size, view.num_tokens - logical * size))) - 1
                fills[block] = used & ~awaited[logical], awaited[logical]
    return holders, fills


def draw_tile(tile: Tile, shape: Geometry = LARGE) -> str:
    """The tile with its upper left corner at 0, 0."""
    return draw_face(tile, shape) + numbers(shape, [(0, 0, tile.block)])


def numbers(shape: Geometry, places: Iterable[tuple[float, float, int]]) -> str:
    """The numbers of tiles at (x, y), with their font given once for all of them."""
    if not shape.id_size:
        return ""
    right, down = shape.number
    written = "".join(
        f'<text x="{x + right:g}" y="{y + down:g}">{block}</text>' for x, y, block in places
    )
    return f'<g font-size="{shape.id_size:g}" font-weight="600" fill="{INK}">{written}</g>'


def draw_face(tile: Tile, shape: Geometry = LARGE) -> str:
    """The tile without its number."""
    label = tile.label if shape.id_size else tile.label[:2]
    size = shape.letter_size if len(label) < 3 else shape.letter_size * 0.78
    anchor = "end" if shape.id_size else "middle"
    letter = text(*shape.letter, label, size, tile.style.ink, anchor, 700) if label else ""
    if not shape.id_size:
        return _body(tile, shape) + letter
    return _body(tile, shape) + _marks(tile, shape) + letter + _badges(tile, shape)


def _body(tile: Tile, shape: Geometry) -> str:
    radius = min(8, shape.height / 6 + 2)
    box = 0, 0, shape.width, shape.height, radius
    strong = 2.2 if shape.roomy else 1.8
    if tile.state == HELD:
        return rect(*box, tile.style.tint, tile.style.solid, strong)
    if tile.state == CACHED:
        return rect(*box, PALE, tile.style.solid, 1.4, "5 4" if shape.id_size else "3 2")
    if tile.state == EVICTED:
        return rect(*box, "none", MUTED, 1.8, "1.5 3.5")
    return rect(*box, GROUND, FAINT, 1.2)


def _marks(tile: Tile, shape: Geometry) -> str:
    """The token slots, or a bar where they are too many or unknown."""
    if tile.state == EVICTED or (tile.state == FREE and tile.size is None):
        return ""
    style, (x, y, width, height) = tile.style, shape.slots
    edge = FAINT if tile.state == FREE else style.solid
    if tile.size is None or (tile.filled is None and tile.state == HELD):
        ground = style.solid if tile.state == HELD else style.pattern
        return rect(x, y + height / 2, width, height / 2, 2, ground, edge)
    outlines, inked, dots = _slots(width, height, tile.size, tile.filled or 0, tile.awaiting)
    line = 1 if shape.width > 50 else 0.7
    shapes = path(outlines, "none", edge, line) if outlines else ""
    if inked:
        shapes += path(inked, style.pattern if tile.state == CACHED else style.solid, edge, line)
    if dots:
        shapes += path(dots, style.ink)
    return moved(x, y, shapes)


def slot_boxes(width: float, height: float, size: int) -> list[tuple] | None:
    """(x, y, width, height) of each slot in a box of this size; None where they are too many."""
    columns = size if size <= 8 else 8 if size <= 16 else 16
    rows = -(-size // columns)
    if size > 32 or width / columns < 2.8 or (rows > 1 and height < 12):
        return None
    gap = 2.4 if columns <= 5 else 1.4 if columns <= 8 else 0.8
    wide = (width - gap * (columns - 1)) / columns
    high = min(13.0, (height - gap * (rows - 1)) / rows)
    first = height - rows * high - (rows - 1) * gap
    places = (divmod(slot, columns) for slot in range(size))
    return [(c * (wide + gap), first + r * (high + gap), wide, high) for r, c in places]


@lru_cache(maxsize=4096)
def _slots(width: float, height: float, size: int, filled: int, awaiting: int):
    """Path data of all outlines, the filled slots, and the dots of the awaited ones."""
    boxes = slot_boxes(width, height, size)
    if boxes is None:
        return _bar(width, height, size, filled, awaiting)
    outlines, inked, dots = [], [], []
    for slot, (x, y, wide, high) in enumerate(boxes):
        box = f"M{x:.1f} {y:.1f}h{wide:.1f}v{high:.1f}h-{wide:.1f}z"
        (inked if filled >> slot & 1 else outlines).append(box)
        if awaiting >> slot & 1:
            dot = min(wide, high) * 0.4
            at = f"M{x + (wide - dot) / 2:.1f} {y + (high - dot) / 2:.1f}"
            dots.append(f"{at}h{dot:.1f}v{dot:.1f}h-{dot:.1f}z")
    return "".join(outlines), "".join(inked), "".join(dots)


def _bar(width: float, height: float, size: int, filled: int, awaiting: int):
    """A bar as long as the share of filled slots; a thin line goes on over awaited ones."""
    high, unit = min(height, 9), width / size
    top = height - high
    length = filled.bit_count() * unit
    reach = awaiting.bit_count() * unit
    inked = f"M0 {top:g}h{length:.1f}v{high:g}h-{length:.1f}z" if filled else ""
    dots = f"M{length:.1f} {top + high / 2 - 1:g}h{reach:.1f}v2h-{reach:.1f}z" if awaiting else ""
    return f"M0 {top:g}h{width:g}v{high:g}h-{width:g}z", inked, dots


def _badges(tile: Tile, shape: Geometry) -> str:
    """Marks that overhang the upper right corner: ×2, ? and !"""
    marks = []
    if tile.wrong:
        marks.append(("!", ALARM))
    if tile.awaiting:
        marks.append(("?", INK))
    if tile.count > 1:
        marks.append((f"×{tile.count}", INK))
    high = 15 if shape.roomy else 11
    parts, right = [], shape.width + 5
    for mark, ground in marks:
        wide = high if len(mark) == 1 else high * 0.5 + len(mark) * high * 0.48
        parts.append(rect(right - wide, -high * 0.55, wide, high, high / 2, ground, GROUND, 1))
        at = right - wide / 2, high * 0.25
        parts.append(text(*at, mark, high * 0.75, GROUND, "middle", 700))
        right -= wide + 1
    return "".join(parts)


def ring(width: float, height: float, radius: float = 8, away: float = 5) -> str:
    """The golden frame around what just happened, at a distance from the thing itself."""
    line = 3 if away >= 4 else 2
    return rect(
        -away, -away, width + 2 * away, height + 2 * away, radius + away - 1, "none", GOLD, line
    )
