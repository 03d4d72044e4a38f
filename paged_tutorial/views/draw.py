"""Draw a pool, its page tables, its free queue and its store, from the live object."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .frame import INNER, MARGIN, WIDTH, Caption, Title
from .legend import Legend, shown_states
from .palette import MUTED, RULE, Cast
from .panels import PoolPanel, QueuePanel, StorePanel, count_of
from .snapshot import Snapshot, snapshot
from .svg import Faces, Picture, moved, path, text
from .tables import TablesPanel, describe
from .tiles import CACHED, tiles_of

LEFT = 308  # where the second column begins
PARTS = ("tables", "pool", "queue", "store")


class Layout:
    """Where everything stands. Made first, so that pictures can be measured and aligned."""

    def __init__(self, state: Snapshot, title, caption, highlight, parts, cast=None) -> None:
        self.state, self.words = state, (title, caption)
        self.title, self.caption = Title(title), Caption(caption)
        self.cast = cast or Cast(request_order(state))
        blocks = {item for item in highlight if not isinstance(item, tuple)}
        entries = {item for item in highlight if isinstance(item, tuple)}
        self.tiles = tiles_of(state, self.cast)
        self.summed = "pool" in parts
        self.top = self.title.bottom + (34 if self.summed else 8)
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
        self.legend = shown_states(state, self.tiles, highlight)

    def height(self, legend: Iterable[str] | None = None) -> float:
        """The height of the picture, with the legend given or its own."""
        footer = Legend(self.legend if legend is None else legend, INNER).height
        return self.bottom + self.caption.height + (footer + 22 if footer else 8)


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
    body = [plan.title.draw()]
    if plan.summed:
        y = plan.title.bottom + 10
        body.append(text(MARGIN, y, summary(plan.state, plan.tiles), 13, MUTED))
    faces = Faces()
    body += [moved(x, y, panel.draw(faces)) for x, y, panel in plan.places]
    y = height - (shown.height + 22 if shown.height else 8)
    body.append(plan.caption.draw(y - plan.caption.height))
    if shown.height:
        body.append(path(f"M{MARGIN} {y:g}H{WIDTH - MARGIN}", "none", RULE, 1))
        body.append(moved(MARGIN, y + 12, shown.draw()))
    styles = [plan.cast.style(request) for request in request_order(plan.state)]
    styles.append(plan.cast.style(None))
    title, caption = plan.words
    title = title or ("Block pool" if plan.state.num_blocks else "Page tables")
    said = " ".join(part for part in (caption, in_words(plan.state, plan.tiles)) if part)
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
