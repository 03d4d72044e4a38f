"""One page table at full length: logical rows on the left, lines to the blocks on the right."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from .frame import MARGIN, WIDTH, Caption, Title
from .palette import FAINT, GOLD, GROUND, INK, MUTED, Cast
from .panels import count_of, heading
from .snapshot import ABSENT, RequestView, Snapshot, snapshot
from .svg import Picture, moved, path, rect, text
from .tables import describe
from .tiles import STRIP, Tile, draw_tile, ring, slot_boxes, tiles_of

ROW, BOX = 40, 32
LEFT_WIDTH, RIGHT, RIGHT_WIDTH = 320, 506, 250
MOST_ROWS, ALL_BLOCKS = 24, 16


def draw_page_table(
    thing,
    request: Hashable = None,
    title: str | None = None,
    caption: str | None = None,
    *,
    position: int | None = None,
    highlight: Collection[int] = (),
    **options,
) -> Picture:
    """The page table of one request, the first if none is named.

    position: show how this position is translated, down to its slot
    highlight: logical blocks to mark in gold; options as those of `snapshot`

    Raises ValueError for a request or a position that the table does not have.
    """
    state = snapshot(thing, **options)
    view = _view(state, request)
    cast = Cast((*state.order, *(one.request for one in state.requests)))
    marked = set(highlight)
    if position is not None:
        caption = caption or _translation(state, view, position)
        marked.add(position // state.block_size)
    return _paint(state, view, cast, title, caption, marked, position)


def _view(state: Snapshot, request: Hashable) -> RequestView:
    for view in state.requests:
        if request is None or view.request == request:
            return view
    known = ", ".join(repr(view.request) for view in state.requests) or "none"
    raise ValueError(f"there is no page table of {request!r}; requests with one: {known}")


def _translation(state: Snapshot, view: RequestView, position: int) -> str:
    size = state.block_size
    if size is None or not 0 <= position < len(view.blocks) * size:
        raise ValueError(f"position {position} is not covered by the page table")
    logical, offset = divmod(position, size)
    block = view.blocks[logical]
    found = f"Position {position} is in logical block {position} // {size} = {logical}, "
    found += f"at offset {position} % {size} = {offset}. "
    if block is None:
        return found + "That block is missing."
    slot = block * size + offset
    return (
        f"{found}The table says block {block}, so its slot is {block} × {size} + {offset} = {slot}."
    )


def _rows(view: RequestView, marked: set[int]) -> list[int | None]:
    """Logical blocks to show, None for a gap: all, or the first, the last, and the marked."""
    length = len(view.blocks)
    if length <= MOST_ROWS:
        return list(range(length))
    kept = sorted({*range(MOST_ROWS - 6), *range(length - 4, length), *marked} & {*range(length)})
    return _gapped(kept)


def _gapped(numbers: list[int]) -> list[int | None]:
    """The numbers, with None wherever some are left out between two."""
    rows: list[int | None] = []
    for number in numbers:
        if rows and number != rows[-1] + 1:
            rows.append(None)
        rows.append(number)
    return rows


def _places(rows: list[int | None]) -> tuple[dict[int, float], list[float], float]:
    """The y of each number, of each gap, and the height of all."""
    y, places, gaps = 0.0, {}, []
    for number in rows:
        if number is None:
            gaps.append(y)
            y += 18
        else:
            places[number] = y
            y += ROW
    return places, gaps, y


def _paint(state, view, cast, title, caption, marked, position) -> Picture:
    label = cast.label(view.request)
    above, below = Title(title), Caption(caption)
    top = above.bottom + 10
    known = state.reference_counts is not None or state.queue is not None
    name = f"page table of {label}" if label else "page table"
    remark = count_of(state.num_blocks, "block") if known else ""
    rows = _rows(view, marked)
    columns, height = _columns(state, view, cast, rows, marked, known, position)
    y = top + 34 + height
    body = [
        above.draw(),
        moved(MARGIN, top, heading(name, describe(view, label))),
        moved(RIGHT, top, heading("block pool", remark)),
        moved(0, top + 24, columns),
        below.draw(y),
    ]
    said = "; ".join(
        f"logical {row} is {_named(view.blocks[row])}" for row in rows if row is not None
    )
    words = f"{caption or ''} {describe(view, label)}: {said}.".strip()
    known_to_cast = [*(one.request for one in state.requests), *state.owners.values(), None]
    styles = map(cast.style, known_to_cast)
    height = y + below.height + 8
    return Picture("".join(body), WIDTH, height, title or name.capitalize(), words, styles)


def _columns(state, view, cast, rows, marked, everything, position) -> tuple[str, float]:
    """Logical rows, blocks and the lines between them, and the height of all."""
    used = {view.blocks[row] for row in rows if row is not None} - {None}
    shown = {block for block in used if 0 <= block < state.num_blocks}
    if everything and state.num_blocks <= ALL_BLOCKS:
        shown = set(range(state.num_blocks))
    left, left_gaps, left_height = _places(rows)
    right, right_gaps, right_height = _places(_gapped(sorted(shown)))
    style, golden = cast.style(view.request), {view.blocks[row] for row in marked & {*left}}
    tiles = tiles_of(state, cast)
    parts = [
        moved(MARGIN, y, _logical(state, view, row, style, row in marked))
        for row, y in left.items()
    ]
    parts += [moved(RIGHT, y, _strip(tiles[block], block in golden)) for block, y in right.items()]
    # Golden lines last, so that they lie on top.
    for row in sorted(left, key=lambda row: row in marked):
        if view.blocks[row] in right:
            ends = left[row] + BOX / 2, right[view.blocks[row]] + BOX / 2
            parts.append(_line(*ends, style, row in marked))
    if position is not None:
        logical, offset = divmod(position, state.block_size)
        if view.blocks[logical] in right:
            place = moved(RIGHT, right[view.blocks[logical]], _slot(state.block_size, offset))
            parts.append(place)
    for x, gaps in ((MARGIN + LEFT_WIDTH / 2, left_gaps), (RIGHT + RIGHT_WIDTH / 2, right_gaps)):
        parts += [text(x, y + 8, "…", 14, MUTED, "middle", 700) for y in gaps]
    return "".join(parts), max(left_height, right_height)


def _named(block: int | None) -> str:
    return "missing" if block is None else f"block {block}"


def _logical(state, view, row, style, golden) -> str:
    """One row of the table: logical block, its positions or its text, the block it points to."""
    block, size = view.blocks[row], state.block_size
    dash = "3 3" if block is None else "5 4" if view.state in ABSENT else ""
    fill = GROUND if block is None else style.tint
    parts = [ring(LEFT_WIDTH, BOX, 6, 4)] if golden else []
    parts.append(rect(0, 0, LEFT_WIDTH, BOX, 6, fill, style.solid, 1.4, dash))
    parts.append(text(12, 21, row, 13, INK, weight=600))
    if size is not None:
        end = (row + 1) * size
        if view.num_tokens is not None:
            end = max(row * size + 1, min(end, view.num_tokens))
        span = f"{row * size}" if end == row * size + 1 else f"{row * size} to {end - 1}"
        parts.append(
            text(52, 21, _words(state, view, row * size, end) or f"positions {span}", 12, MUTED)
        )
    name = "?" if block is None else block
    parts.append(text(LEFT_WIDTH - 12, 21.5, name, 15, style.ink, "end", 700))
    parts.append(path(f"M{LEFT_WIDTH - 56} 16h9m-4-4l4 4l-4 4", "none", FAINT, 1.3))
    return "".join(parts)


def _words(state: Snapshot, view: RequestView, start: int, end: int) -> str:
    """The text of these tokens, if there is a tokenizer, as far as it fits."""
    if state.decode is None or not view.tokens:
        return ""
    said = state.decode(list(view.tokens[start:end])).replace("\n", "↵")
    return f"“{said}”" if len(said) <= 30 else f"“{said[:29]}…”"


def _line(start: float, end: float, style, golden: bool) -> str:
    x0, x1 = MARGIN + LEFT_WIDTH + (5 if golden else 1), RIGHT - (6 if golden else 2)
    middle = (x0 + x1) / 2
    d = f"M{x0} {start:g}C{middle:g} {start:g} {middle:g} {end:g} {x1} {end:g}"
    if golden:
        return path(d, "none", GOLD, 3)
    return path(d, "none", style.solid, 1.6)


def _strip(tile: Tile, golden: bool) -> str:
    """A block as a row of memory."""
    return (ring(RIGHT_WIDTH, BOX, 8, 4) if golden else "") + draw_tile(tile, STRIP)


def _slot(size: int, offset: int) -> str:
    """A golden frame around one slot of a block, where the slots are drawn one by one."""
    x, y, width, height = STRIP.slots
    boxes = slot_boxes(width, height, size)
    if boxes is None:
        return ""
    left, top, wide, high = boxes[offset]
    return rect(x + left - 1, y + top - 1, wide + 2, high + 2, 2, "none", GOLD, 3)
