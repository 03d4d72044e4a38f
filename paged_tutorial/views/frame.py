"""What all pictures share: their width, the title above, the sentence below."""

from __future__ import annotations

from .palette import GOLD, INK
from .svg import rect, text, wrapped

WIDTH, MARGIN = 780, 24
INNER = WIDTH - 2 * MARGIN
TITLE_LINE, CAPTION_LINE = 24, 21


class Title:
    """The finding, in large letters at the top. `bottom` is where the rest may begin."""

    def __init__(self, title: str | None) -> None:
        self.lines = wrapped(title, INNER, 18, 700) if title else []
        self.bottom = MARGIN + TITLE_LINE * len(self.lines)

    def draw(self) -> str:
        return "".join(
            text(MARGIN, MARGIN + 14 + TITLE_LINE * row, line, 18, INK, weight=700)
            for row, line in enumerate(self.lines)
        )


class Caption:
    """What just happened, in one sentence behind a golden bar. The height includes a gap."""

    def __init__(self, caption: str | None) -> None:
        self.lines = wrapped(caption, INNER - 16, 14) if caption else []
        self.height = CAPTION_LINE * len(self.lines) + 14 if self.lines else 0

    def draw(self, y: float) -> str:
        if not self.lines:
            return ""
        bar = rect(MARGIN, y, 4, CAPTION_LINE * len(self.lines), 2, GOLD)
        return bar + "".join(
            text(MARGIN + 14, y + 15.5 + CAPTION_LINE * row, line, 14, INK, weight=500)
            for row, line in enumerate(self.lines)
        )
