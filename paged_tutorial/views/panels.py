"""The parts of a picture: pool, free queue, store. Each knows its height.

A panel is made for a width, so that it can be measured before it is drawn; `draw` gives
the SVG with the panel's upper left corner at 0, 0.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from .palette import FAINT, GROUND, INK, MUTED, Cast, Style
from .snapshot import Snapshot
from .svg import Faces, moved, path, rect, text, text_width
from .tiles import CACHED, LARGE, MEDIUM, SMALL, TINY, Tile, draw_face, numbers, ring

HEADING = 22  # height of the line above each panel
MOST_TILES = 1200


def heading(name: str, remark: str = "") -> str:
    """The line above a panel."""
    after = text(text_width(name, 12, 600) + 10, 10, remark, 12, MUTED) if remark else ""
    return text(0, 10, name, 12, MUTED, weight=600) + after


def count_of(number: int, noun: str) -> str:
    """Number and noun: "1 block", "2 blocks"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class PoolPanel:
    """The blocks as tiles in rows; the more there are, the smaller."""

    def __init__(self, tiles: list[Tile], width: float, highlight: Collection[int] = ()) -> None:
        self.highlight = frozenset(highlight)
        self.hidden = max(0, len(tiles) - MOST_TILES)
        self.tiles = tiles[:MOST_TILES]
        many = len(tiles)
        self.shape = (
            LARGE if many <= 24 else MEDIUM if many <= 64 else SMALL if many <= 256 else TINY
        )
        # Tiles without a number need the number of the first in the row beside them.
        self.margin = 0 if self.shape.id_size else 40
        self.step = self.shape.width + self.shape.gap
        self.columns = max(1, int((width - self.margin + self.shape.gap) // self.step))
        if self.margin:
            self.columns = max(8, self.columns // 8 * 8)
        rows = -(-len(self.tiles) // self.columns)
        self.row_step = self.shape.height + self.shape.gap
        self.height = HEADING + 8 + rows * self.row_step + (18 if self.hidden else 0)

    def draw(self, faces: Faces) -> str:
        shape, parts, places = self.shape, [heading("block pool")], []
        away = 4 if shape.roomy else 2.5
        for index, tile in enumerate(self.tiles):
            row, column = divmod(index, self.columns)
            x, y = self.margin + column * self.step, HEADING + 8 + row * self.row_step
            if tile.block in self.highlight:
                parts.append(moved(x, y, ring(shape.width, shape.height, away=away)))
            parts.append(faces.use(tile.face_key, lambda tile=tile: draw_face(tile, shape), x, y))
            places.append((x, y, tile.block))
            if self.margin and column == 0:
                parts.append(text(30, y + 12, tile.block, 10.5, MUTED, "end"))
        parts.append(numbers(shape, places))
        if self.hidden:
            parts.append(text(0, self.height - 8, f"and {self.hidden} more blocks", 12, MUTED))
        return "".join(parts)


class QueuePanel:
    """The free queue as a strip, from the block handed out next to the last."""

    STEP, LINE, PILL, MOST_LINES = 53, 36, 44, 3

    def __init__(
        self, state: Snapshot, tiles: list[Tile], width: float, highlight: Collection[int] = ()
    ) -> None:
        self.queue, self.ordered = state.queue or (), state.ordered
        self.tiles = {tile.block: tile for tile in tiles}
        self.highlight = frozenset(highlight)
        self.columns = max(1, int((width + 9) // self.STEP))
        room = self.columns * self.MOST_LINES
        self.shown: list[int | None] = list(range(len(self.queue)))
        if len(self.queue) > room:
            self.shown = [*range(room - 3), None, len(self.queue) - 2, len(self.queue) - 1]
        lines = max(1, -(-len(self.shown) // self.columns))
        self.height = HEADING + lines * self.LINE + 4

    def draw(self, faces: Faces) -> str:
        many = count_of(len(self.queue), "block")
        if not self.ordered:
            parts = [heading("free blocks", many)]
        elif self.queue:
            parts = [heading("free queue", f"{many}; handed out next →")]
        else:
            parts = [heading("free queue", "empty: no block can be handed out")]
        written = []
        for place, index in enumerate(self.shown):
            row, column = divmod(place, self.columns)
            x, y = column * self.STEP, HEADING + row * self.LINE
            if index is None:
                gap = len(self.queue) - len(self.shown) + 1
                parts.append(text(x + self.PILL / 2, y + 17, f"… {gap} …", 11, MUTED, "middle"))
                continue
            block = self.queue[index]
            if block in self.highlight:
                parts.append(moved(x, y, ring(self.PILL, 26, 13, 3)))
            parts.append(self._pill(faces, block, x, y))
            written.append(f'<text x="{x + self.PILL / 2:g}" y="{y + 17.5:g}">{block}</text>')
        style = f'font-size="12.5" font-weight="600" fill="{INK}" text-anchor="middle"'
        return "".join(parts) + f"<g {style}>{''.join(written)}</g>"

    def _pill(self, faces: Faces, block: int, x: float, y: float) -> str:
        tile = self.tiles.get(block)
        if tile is None or tile.state != CACHED:
            return faces.use(
                "pill", lambda: rect(0, 0, self.PILL, 26, 13, GROUND, FAINT, 1.2), x, y
            )
        style, wide = tile.style, 12 + 7 * len(str(block))
        return faces.use(
            ("pill", style.key, wide),
            lambda: (
                rect(0, 0, self.PILL, 26, 13, style.pattern, style.solid, 1.2, "5 4")
                + rect((self.PILL - wide) / 2, 4, wide, 18, 9, GROUND)
            ),
            x,
            y,
        )


class StorePanel:
    """Blocks that are kept outside the pool, on a shelf."""

    STEP, LINE, MOST = 70, 64, 60

    def __init__(self, store: tuple, cast: Cast, width: float) -> None:
        self.many, self.store, self.cast = len(store), store[: self.MOST], cast
        self.columns = max(1, int(width // self.STEP))
        self.width = min(self.columns, max(4, len(self.store))) * self.STEP
        self.lines = max(1, -(-len(self.store) // self.columns))
        self.height = HEADING + self.lines * self.LINE

    def draw(self, faces: Faces) -> str:
        shown = f", the first {self.MOST} shown" if self.many > self.MOST else ""
        parts = [heading("store", count_of(self.many, "block") + shown)]
        for index, item in enumerate(self.store):
            row, column = divmod(index, self.columns)
            style, label = self._face(item)
            x, y = 8 + column * self.STEP, HEADING + row * self.LINE
            parts.append(rect(x, y, 58, 43, 6, style.pattern, style.solid, 1.2))
            wide = min(54, 8 + text_width(label, 12, 600))
            parts.append(rect(x + 29 - wide / 2, y + 12, wide, 19, 4, GROUND))
            parts.append(text(x + 29, y + 26, label, 12, INK, "middle", 600))
        for row in range(self.lines):
            y = HEADING + row * self.LINE + 44
            parts.append(path(f"M0 {y}h{self.width}", "none", INK, 2))
        return "".join(parts)

    def _face(self, item) -> tuple[Style, str]:
        """Colour and label of a (request, logical block), or of any other name."""
        if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Hashable):
            return self.cast.style(item[0]), f"{self.cast.label(item[0])}·{item[1]}"
        digest = getattr(item, "digest", None)
        return self.cast.style(None), digest.hex()[:6] if digest else str(item)[:6]
