"""Draw a pool, its page tables, its free queue and its store, from the live object."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .legend import Legend, shown_states
from .palette import GOLD, INK, MUTED, RULE, Cast
from .panels import PoolPanel, QueuePanel, StorePanel, count_of
from .snapshot import Snapshot, snapshot
from .svg import Faces, Picture, moved, path, rect, text, wrapped
from .tables import TablesPanel, describe
from .tiles import CACHED, tiles_of

WIDTH, MARGIN = 780, 24
INNER = WIDTH - 2 * MARGIN
LEFT = 308  # where the second column begins
PARTS = ("tables", "pool", "queue", "store")


class Layout:
    """Where everything stands. Made first, so that pictures can be measured and aligned."""

    def __init__(self, state: Snapshot, title, caption, highlight, parts, cast=None) -> None:
        self.state, self.title, self.caption = state, title, caption
        self.cast = cast or Cast(request_order(state))
        blocks = {item for item in highlight if not isinstance(item, tuple)}
        entries = {item for item in highlight if isinstance(item, tuple)}
        self.tiles = tiles_of(state, self.cast)
        self.title_lines = wrapped(title, INNER, 18, 700) if title else []
        self.top = MARGIN + 24 * len(self.title_lines) + (34 if "pool" in parts else 8)
        beside = bool(state.requests) and "tables" in parts and "pool" in parts
        beside = beside and state.num_blocks <= 64
        side = INNER - LEFT if beside else INNER
        panels = []
        if state.requests and "tables" in parts:
            width = LEFT - 18 if beside else INNER
            panels.append(TablesPanel(state, self.cast, width, entries))
        right = []
        if "pool" in parts and state.num_blocks:
            right.append(PoolPanel(self.tiles, side, blocks))
        if "queue" in parts and state.queue is not None:
            right.append(QueuePanel(state, self.tiles, side, blocks))
        if "store" in parts and state.store:
            (panels if beside else right).append(StorePanel(state.store, self.cast, side))
        columns = [(0, panels), (LEFT, right)] if beside else [(0, panels + right)]
        self.places, bottom = [], float(self.top)
        for x, column in columns:
            y = float(self.top)
            for panel in column:
                self.places.append((MARGIN + x, y, panel))
                y += panel.height + 14
            bottom = max(bottom, y)
        self.bottom = bottom
        self.caption_lines = wrapped(caption, INNER - 16, 14) if caption else []
        self.legend = shown_states(state, self.tiles, highlight)

    def height(self, legend: Iterable[str] | None = None) -> float:
        """The height of the picture, with the legend given or its own."""
        footer = Legend(self.legend if legend is None else legend, INNER).height
        return (
            self.bottom
            + 21 * len(self.caption_lines)
            + (14 if self.caption_lines else 0)
            + (footer + 22 if footer else 8)
        )


def request_order(state: Snapshot) -> tuple:
    """All requests that a picture may name, those seen longest first."""
    return tuple(
        dict.fromkeys((*state.order, *(v.request for v in state.requests), *state.owners.values()))
    )


def draw(
    thing,
    title: str | None = None,
    caption: str | None = None,
    highlight: Collection = (),
    *,
    idle=None,
    owners=None,
    store=None,
    parts: Collection[str] = PARTS,
    height: float | None = None,
    legend: Iterable[str] | None = None,
) -> Picture:
    """Pool, page tables, free queue and store of a cache, engine, pool or your own class.

    title: the finding, above; caption: what just happened, one sentence below
    highlight: blocks, and (request, logical block) entries of page tables, to mark in gold
    idle: {request: token ids} of chats that hold nothing now; see `snapshot` for the others
    height, legend: fixed values, so that successive pictures do not jump
    """
    state = snapshot(thing, idle=idle, owners=owners, store=store)
    plan = Layout(state, title, caption, highlight, parts)
    return paint(plan, height, legend)


def paint(plan: Layout, height: float | None = None, legend=None) -> Picture:
    """The picture of a layout."""
    shown = Legend(plan.legend if legend is None else legend, INNER)
    height = plan.height(legend) if height is None else height
    body = [
        text(MARGIN, MARGIN + 14 + 24 * row, line, 18, INK, weight=700)
        for row, line in enumerate(plan.title_lines)
    ]
    if plan.top - MARGIN - 24 * len(plan.title_lines) > 20:
        y = MARGIN + 24 * len(plan.title_lines) + 10
        body.append(text(MARGIN, y, summary(plan.state, plan.tiles), 13, MUTED))
    faces = Faces()
    body += [moved(x, y, panel.draw(faces)) for x, y, panel in plan.places]
    y = height - (shown.height + 22 if shown.height else 8)
    if plan.caption_lines:
        y -= 21 * len(plan.caption_lines) + 14
        body.append(rect(MARGIN, y, 4, 21 * len(plan.caption_lines), 2, GOLD))
        for row, line in enumerate(plan.caption_lines):
            body.append(text(MARGIN + 14, y + 15.5 + 21 * row, line, 14, INK, weight=500))
        y += 21 * len(plan.caption_lines) + 14
    if shown.height:
        body.append(path(f"M{MARGIN} {y:g}H{WIDTH - MARGIN}", "none", RULE, 1))
        body.append(moved(MARGIN, y + 12, shown.draw()))
    styles = [plan.cast.style(request) for request in request_order(plan.state)]
    styles.append(plan.cast.style(None))
    title = plan.title or ("Block pool" if plan.state.num_blocks else "Page tables")
    said = " ".join(part for part in (plan.caption, in_words(plan.state, plan.tiles)) if part)
    return Picture("".join(body), WIDTH, height, title, said, styles, faces)


def summary(state: Snapshot, tiles) -> str:
    """The pool in one line of numbers."""
    size = f" of {count_of(state.block_size, 'token')}" if state.block_size else ""
    used = sum(tile.state == "held" for tile in tiles)
    kept = sum(tile.state == CACHED for tile in tiles)
    line = f"{count_of(state.num_blocks, 'block')}{size}: {used} in use"
    if state.num_blocks > used:
        line += f", {state.num_blocks - used} free"
    return line + (f", {kept} of them kept for a hit" if kept else "")


def in_words(state: Snapshot, tiles) -> str:
    """The picture for those who do not see it."""
    words = [summary(state, tiles) + "."]
    for view in state.requests[:12]:
        places = ", ".join("missing" if block is None else str(block) for block in view.blocks)
        name = f"Request {view.request}: " if view.request != "" else ""
        said = describe(view, str(view.request))
        words.append(f"{name}{said}; blocks {places or 'none'}.")
    shared = [f"{tile.block} by {tile.count}" for tile in tiles if tile.count > 1]
    if shared:
        words.append(f"Shared blocks: {', '.join(shared)}.")
    wrong = [str(tile.block) for tile in tiles if tile.wrong]
    if wrong:
        words.append(f"In contradiction with itself: block {', '.join(wrong)}.")
    if state.queue is not None:
        first = ", ".join(map(str, state.queue[:12])) or "empty"
        more = f" and {len(state.queue) - 12} more" if len(state.queue) > 12 else ""
        name = "Free queue, next first" if state.ordered else "Free blocks"
        words.append(f"{name}: {first}{more}.")
    return " ".join(words)


def draw_pool(thing, title=None, caption=None, highlight: Collection = (), **options) -> Picture:
    """The blocks alone. Options are those of `draw`."""
    return draw(thing, title, caption, highlight, parts=("pool",), **options)


def draw_queue(thing, title=None, caption=None, highlight: Collection = (), **options) -> Picture:
    """The free queue alone, of a pool, a cache, an LRUManager or another policy."""
    return draw(thing, title, caption, highlight, parts=("queue",), **options)


def draw_store(thing, title=None, caption=None, highlight: Collection = (), **options) -> Picture:
    """The store's shelf alone. `store` may be given as a list of (request, logical block)."""
    return draw(thing, title, caption, highlight, parts=("store",), **options)
