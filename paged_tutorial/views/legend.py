"""The legend: small examples of the states that a picture shows, and no others."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .palette import GROUND, INK, NEUTRAL
from .snapshot import Snapshot
from .svg import moved, rect, text, text_width
from .tiles import CACHED, EVICTED, FREE, HELD, Tile, draw_face, ring

_EXAMPLE = Tile(0, HELD, "", NEUTRAL, 1, 4, 0b11)
_KEPT = _EXAMPLE._replace(state=CACHED, count=0, filled=0b1111)
ENTRIES = {
    "free": ("free", _EXAMPLE._replace(state=FREE, count=0, filled=0)),
    "held": ("holds tokens", _EXAMPLE),
    "in use": ("in use", _EXAMPLE._replace(filled=None)),
    "shared": ("shared by two", _EXAMPLE._replace(count=2, filled=0b1111)),
    "awaiting": ("to be computed", _EXAMPLE._replace(filled=0b1, awaiting=0b110)),
    "cached": ("kept for a hit, may go", _KEPT),
    "evicted": ("evicted", _EXAMPLE._replace(state=EVICTED, count=0)),
    "missing": ("missing", None),
    "wrong": ("contradicts itself", _EXAMPLE._replace(filled=None, wrong=True)),
    "now": ("just happened", None),
}
SCALE, SIZE, LINE = 0.55, 12.5, 45


class Legend:
    """Example tiles with their meaning, in rows."""

    def __init__(self, keys: Iterable[str], width: float) -> None:
        self.places: list[tuple[str, float, int]] = []
        x, row = 0.0, 0
        for key in keys:
            wide = 34 + 9 + text_width(ENTRIES[key][0], SIZE) + 18
            if x and x + wide > width:
                x, row = 0.0, row + 1
            self.places.append((key, x, row))
            x += wide
        self.height = LINE * (row + 1) if self.places else 0

    def draw(self) -> str:
        parts = []
        for key, x, row in self.places:
            y = row * LINE
            meaning, tile = ENTRIES[key]
            parts.append(moved(x, y, self._example(key, tile)))
            parts.append(text(x + 44, y + 25, meaning, SIZE, INK))
        return "".join(parts)

    @staticmethod
    def _example(key: str, tile: Tile | None) -> str:
        if tile is not None:
            return f'<g transform="translate(2 4) scale({SCALE})">{draw_face(tile)}</g>'
        if key == "now":
            return moved(8, 9, ring(20, 18, 5, 4))
        chip = rect(0, 8, 32, 20, 5, GROUND, NEUTRAL.solid, 1.3, "3 3")
        return chip + text(16, 23, "?", 14, INK, "middle", 700)


def shown_states(state: Snapshot, tiles: list[Tile], highlight: Collection) -> list[str]:
    """The keys of the entries that a picture needs, in order."""
    kinds = {tile.state for tile in tiles}
    found = ["free"] if FREE in kinds else []
    if HELD in kinds:
        known = any(tile.state == HELD and tile.filled is not None for tile in tiles)
        found.append("held" if known else "in use")
    if any(tile.count > 1 for tile in tiles):
        found.append("shared")
    if any(tile.awaiting for tile in tiles):
        found.append("awaiting")
    found += [kind for kind in (CACHED, EVICTED) if kind in kinds]
    if any(None in view.blocks for view in state.requests):
        found.append("missing")
    if any(tile.wrong for tile in tiles):
        found.append("wrong")
    return [*found, "now"] if highlight else found
