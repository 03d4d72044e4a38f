"""Cards: what the exercise machine shows, as HTML with its own colours and as plain text.

A card is a list of parts, each a pair of plain text and HTML, so that both say the same.
Ground and ink are explicit: the card is as readable in a dark theme as in a light one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

INK, SOFT, GROUND, LINE, PALE = "#1F2933", "#52606D", "#FFFFFF", "#CBD2D9", "#F0F3F6"
EDGES = {"right": "#007A59", "wrong": "#B34E00", "quiet": "#0072B2"}

CARD = (
    f"background:{GROUND};color:{INK};border:1px solid {LINE};border-radius:8px;"
    "padding:10px 16px;margin:4px 0;max-width:940px;font:15px/1.5 system-ui,sans-serif"
)
CODE = (
    f"background:{PALE};color:{INK};border:0;border-radius:4px;white-space:pre-wrap;"
    "font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
)
BLOCK = f"{CODE};padding:8px 10px;margin:6px 0;overflow-x:auto"
CELL = f"text-align:left;padding:3px 14px 3px 0;color:{INK};background:{GROUND}"


@dataclass
class Card:
    """tone: a key of EDGES; mark and head make the first line."""

    tone: str
    mark: str
    head: str
    parts: list[tuple[str, str]] = field(default_factory=list)

    def say(self, text: str, *, soft: bool = False) -> Card:
        """A sentence; what stands in backticks is code."""
        pieces = escape(text).split("`")
        pieces[1::2] = [
            f'<code style="{CODE};padding:1px 4px">{code}</code>' for code in pieces[1::2]
        ]
        colour = SOFT if soft else INK
        return self._add(text, f'<div style="margin:6px 0;color:{colour}">{"".join(pieces)}</div>')

    def row(self, label: str, text: str) -> Card:
        """A label and the value that belongs to it."""
        width = f"display:inline-block;min-width:82px;color:{SOFT}"
        head = f'<span style="{width}">{escape(label)}</span>'
        body = f'{head}<code style="{CODE};padding:1px 4px">{escape(text)}</code>'
        return self._add(f"{label + ':':<12}{text}", f'<div style="margin:3px 0">{body}</div>')

    def code(self, text: str) -> Card:
        """Lines of code."""
        return self._add(text, f'<pre style="{BLOCK}">{escape(text)}</pre>')

    def folded(self, summary: str, text: str) -> Card:
        """Lines of code behind a line to click on."""
        head = f'<summary style="cursor:pointer">{escape(summary)}</summary>'
        pre = f'<pre style="{BLOCK}">{escape(text)}</pre>'
        return self._add(text, f'<details style="margin:6px 0">{head}{pre}</details>')

    def picture(self, svg: str, text: str) -> Card:
        """A picture, and what it shows in words."""
        return self._add(text, f'<div style="margin:8px 0">{svg}</div>')

    def table(self, head: list[str], rows: list[list[str]]) -> Card:
        """A table with a row of headings."""
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (head, *rows)
        ]
        top = "".join(f'<th scope="col" style="{CELL}">{escape(name)}</th>' for name in head)
        body = "".join(
            f'<tr style="background:{GROUND}">'
            + "".join(
                f'<td style="{CELL};border-top:1px solid {LINE}">{escape(c)}</td>' for c in row
            )
            + "</tr>"
            for row in rows
        )
        style = "border-collapse:collapse;margin:6px 0;font-size:14px"
        return self._add(
            "\n".join(lines),
            f'<table style="{style}"><thead><tr style="background:{GROUND}">{top}</tr></thead>'
            f"<tbody>{body}</tbody></table>",
        )

    def _add(self, text: str, html: str) -> Card:
        self.parts.append((text, html))
        return self

    def __repr__(self) -> str:
        return "\n".join([f"{self.mark} {self.head}", *(text for text, _ in self.parts)])

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        edge = EDGES[self.tone]
        mark = f'<span aria-hidden="true" style="color:{edge}">{escape(self.mark)}</span>'
        html = (
            f'<div role="group" aria-label="{escape(self.head)}" '
            f'style="{CARD};border-left:6px solid {edge}">'
            f'<div style="font-weight:600">{mark} {escape(self.head)}</div>'
            f"{''.join(body for _, body in self.parts)}</div>"
        )
        return {"text/plain": repr(self), "text/html": html}


def show(card: Card) -> None:
    """Display a card: in a notebook as HTML, elsewhere as text."""
    from IPython.display import display

    display(card)
