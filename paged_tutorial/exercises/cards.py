"""Cards: what the exercise machine shows, as HTML with its own colours and as plain text.

A card is a list of parts, each a pair of plain text and HTML, so that both say the same.
Ground and ink are explicit: the card is as readable in a dark theme as in a light one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

INK, SOFT, GROUND, LINE = "#1F2933", "#52606D", "#FFFFFF", "#CBD2D9"
EDGES = {"right": "#009E73", "wrong": "#D55E00", "quiet": "#0072B2"}
MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:13px"


@dataclass
class Card:
    """tone: "right", "wrong" or "quiet"; mark and head make the first line."""

    tone: str
    mark: str
    head: str
    parts: list[tuple[str, str]] = field(default_factory=list)

    def say(self, text: str, *, soft: bool = False) -> Card:
        """A sentence."""
        return self._add(text, f'<div style="margin:6px 0;color:{SOFT if soft else INK}">{mark_up(text)}</div>')

    def row(self, label: str, text: str) -> Card:
        """A label and what belongs to it."""
        head = f'<span style="display:inline-block;min-width:76px;color:{SOFT}">{escape(label)}</span>'
        body = f'<div style="margin:3px 0">{head}<code style="{_code()}">{escape(text)}</code></div>'
        return self._add(f"{label + ':':<12}{text}", body)

    def code(self, text: str) -> Card:
        """Lines of code."""
        return self._add(text, f'<pre style="{_code()};padding:8px 10px;margin:6px 0;overflow-x:auto;line-height:1.45">{escape(text)}</pre>')

    def folded(self, summary: str, text: str) -> Card:
        """Code behind a line to click on."""
        pre = f'<pre style="{_code()};padding:8px 10px;margin:6px 0;overflow-x:auto;line-height:1.45">{escape(text)}</pre>'
        body = f'<details style="margin:6px 0"><summary style="cursor:pointer">{escape(summary)}</summary>{pre}</details>'
        return self._add(text, body)

    def picture(self, svg: str, text: str) -> Card:
        """A picture; `text` says what it shows."""
        return self._add(text, f'<div style="margin:8px 0;overflow-x:auto">{svg}</div>')

    def table(self, head: list[str], rows: list[list[str]]) -> Card:
        """A table with a row of headings."""
        widths = [max(map(len, column)) for column in zip(head, *rows)]
        lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths)).rstrip() for row in [head, *rows]]
        cell = f"text-align:left;padding:3px 14px 3px 0;color:{INK};background:{GROUND}"
        top = "".join(f'<th scope="col" style="{cell};border-bottom:1px solid {LINE}">{escape(c)}</th>' for c in head)
        body = "".join(
            f'<tr style="background:{GROUND}">' + "".join(f'<td style="{cell}">{escape(c)}</td>' for c in row) + "</tr>"
            for row in rows
        )
        return self._add("\n".join(lines), f'<table style="border-collapse:collapse;margin:6px 0;font-size:14px"><thead><tr style="background:{GROUND}">{top}</tr></thead><tbody>{body}</tbody></table>')

    def _add(self, text: str, html: str) -> Card:
        self.parts.append((text, html))
        return self

    def __repr__(self) -> str:
        return "\n".join([f"{self.mark} {self.head}", *(text for text, _ in self.parts if text)])

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        edge = EDGES[self.tone]
        html = (
            f'<div role="group" aria-label="{escape(self.head)}" style="background:{GROUND};color:{INK};'
            f"border:1px solid {LINE};border-left:6px solid {edge};border-radius:8px;padding:10px 16px;"
            f'margin:4px 0;max-width:940px;font:15px/1.5 system-ui,sans-serif">'
            f'<div style="font-weight:600"><span aria-hidden="true" style="color:{edge}">{escape(self.mark)}</span> '
            f"{escape(self.head)}</div>{''.join(body for _, body in self.parts)}</div>"
        )
        return {"text/plain": repr(self), "text/html": html}


def mark_up(text: str) -> str:
    """Escape a sentence; what stands in backticks becomes code."""
    pieces = escape(text).split("`")
    return "".join(
        f'<code style="{_code()};padding:1px 4px">{piece}</code>' if index % 2 else piece
        for index, piece in enumerate(pieces)
    )


def _code() -> str:
    return f"{MONO};background:#F0F3F6;color:{INK};border-radius:4px;white-space:pre-wrap"


def show(card: Card) -> None:
    """Display a card: in a notebook as HTML, elsewhere as text."""
    from IPython.display import display

    display(card)
