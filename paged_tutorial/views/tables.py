"""The panel of page tables: what each request is, and where its logical blocks lie."""

from __future__ import annotations

from collections.abc import Collection

from .palette import FAINT, GROUND, INK, MUTED, Cast, Style
from .panels import HEADING, count_of, heading
from .snapshot import ABSENT, RequestView, Snapshot
from .svg import Faces, moved, path, rect, text, text_width
from .tiles import ring


class TablesPanel:
    """For each request a line of what it is, and its logical blocks with their places."""

    CHIP, STEP, LINE, INDENT = 60, 67, 35, 20
    MOST_REQUESTS, WIDE = 12, 600

    def __init__(
        self, state: Snapshot, cast: Cast, width: float, highlight: Collection = ()
    ) -> None:
        self.cast = cast
        self.highlight = frozenset(highlight)
        self.hidden = max(0, len(state.requests) - self.MOST_REQUESTS)
        views = state.requests[: self.MOST_REQUESTS]
        # On the whole width, several requests stand in two columns.
        across = 2 if width > self.WIDE and len(views) > 1 else 1
        self.step = width / across
        self.columns = max(1, int((width / across - self.INDENT) // self.STEP))
        self.most_lines = 3 if len(views) <= 6 else 2
        self.rows: list[tuple[RequestView, list[int | None], float, float]] = []
        y = HEADING + 4.0
        for first in range(0, len(views), across):
            tallest = 0.0
            for column, view in enumerate(views[first : first + across]):
                chips = self._chosen(len(view.blocks))
                self.rows.append((view, chips, column * self.step, y))
                lines = -(-len(chips) // self.columns)
                tallest = max(tallest, 24 + lines * self.LINE + 8)
            y += tallest
        self.height = y + (18 if self.hidden else 0)

    def _chosen(self, length: int) -> list[int | None]:
        """The logical blocks to show: all, or the first and the last few around a gap."""
        room = self.columns * self.most_lines
        if length <= room:
            return list(range(length))
        last = min(self.columns, room - 2)
        return [*range(room - 1 - last), None, *range(length - last, length)]

    def draw(self, faces: Faces) -> str:
        parts = [heading("page tables", "logical → physical block")]
        for view, chips, x, y in self.rows:
            parts.append(moved(x, y, self._request(faces, view, chips)))
        if self.hidden:
            parts.append(text(0, self.height - 8, f"and {self.hidden} more requests", 12, MUTED))
        return "".join(parts)

    def _request(self, faces: Faces, view: RequestView, chips: list[int | None]) -> str:
        label, style = self.cast.label(view.request), self.cast.style(view.request)
        indent = max(self.INDENT, text_width(label, 15, 700) + 6) if label else 0
        parts = [text(0, 15, label, 15, style.ink, weight=700)] if label else []
        parts.append(text(indent, 15, describe(view, label), 12, MUTED))
        logicals, blocks = [], []
        for place, logical in enumerate(chips):
            row, column = divmod(place, self.columns)
            x, y = self.INDENT + column * self.STEP, 24 + row * self.LINE
            if logical is None:
                gap = len(view.blocks) - len(chips) + 1
                parts.append(text(x + self.CHIP / 2, y + 18, f"… {gap} …", 11, MUTED, "middle"))
                continue
            block = view.blocks[logical]
            if (view.request, logical) in self.highlight:
                parts.append(moved(x, y, ring(self.CHIP, 28, 5, 3.5)))
            parts.append(self._chip(faces, view, logical, style, x, y))
            logicals.append(f'<text x="{x + 7}" y="{y + 18.5:g}">{logical}</text>')
            if block is None:
                parts.append(text(x + self.CHIP - 8, y + 19, "?", 14, INK, "end", 700))
            else:
                blocks.append(f'<text x="{x + self.CHIP - 7}" y="{y + 19:g}">{block}</text>')
        small = f'font-size="11" fill="{MUTED}"'
        strong = f'fill="{style.ink}" text-anchor="end" font-weight="700"'
        size = 14 if all(block is None or block < 100 for block in view.blocks) else 12
        return (
            "".join(parts)
            + f"<g {small}>{''.join(logicals)}</g>"
            + f'<g font-size="{size}" {strong}>{"".join(blocks)}</g>'
        )

    def _chip(self, faces: Faces, view, logical: int, style: Style, x, y) -> str:
        block = view.blocks[logical]
        # A missing block and one that is merely found are dashed: nobody holds them.
        dash = "3 3" if block is None else "5 4" if view.state in ABSENT else ""
        arrow = len(f"{logical}{'?' if block is None else block}") <= 3

        def make() -> str:
            fill = GROUND if block is None else style.tint
            drawn = rect(0, 0, self.CHIP, 28, 5, fill, style.solid, 1.3, dash)
            start = 20 if logical < 10 else 24
            return drawn + (
                path(f"M{start} 14.5h7m-3-3l3 3l-3 3", "none", FAINT, 1.2) if arrow else ""
            )

        return faces.use(("chip", style.key, dash, arrow, logical < 10), make, x, y)


def describe(view: RequestView, label: str = "") -> str:
    """What a request is, in a few words."""
    name = str(view.request)
    words = [] if name in ("", label, label[1:]) else [f"{name[:16]}:"]
    if view.num_tokens is not None:
        words.append(count_of(view.num_tokens, "token"))
    else:
        words.append(count_of(len(view.blocks), "block"))
    said = " ".join(words)
    if view.state:
        said += f", {view.state}"
    lost = sum(block is None for block in view.blocks)
    if lost:
        said += f", {count_of(lost, 'block')} missing"
    elif view.missing:
        said += f", {len(view.missing)} to compute"
    return said
