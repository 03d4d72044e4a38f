"""Colours, patterns and short names of requests: who is who in every picture.

In English: request "A" is blue, "B" vermilion, and so on, in all pictures of the course.
The colours are those of Okabe and Ito, told apart by nearly everybody; whoever cannot, or
prints in grey, has the letter on the tile, and the pattern in the slots of kept blocks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

GROUND = "#FFFFFF"
PALE = "#F7F9FB"
INK = "#1F2933"
MUTED = "#52606D"
FAINT = "#9AA5B1"
RULE = "#E4E7EB"
GOLD = "#E0A800"
ALARM = "#B42318"

# solid for slots and edges, ink for letters (contrast above 4.5 on the tint), tint for tiles
COLOURS = (
    ("#0072B2", "#00598C", "#CFE6F5"),
    ("#D55E00", "#9C4500", "#FBE0CC"),
    ("#009E73", "#00694D", "#CDEEE3"),
    ("#CC79A7", "#8A3A67", "#F6E0EC"),
    ("#E69F00", "#7D5600", "#FCEBC5"),
    ("#56B4E9", "#155F8A", "#E1F2FC"),
    ("#B8AD00", "#625C00", "#FAF6C8"),
)
NOBODY = ("#616E7C", "#3E4C59", "#E4E7EB")

PATTERNS = (
    '<path d="M0 6L6 0" stroke="{0}" stroke-width="1.4"/>',
    '<circle cx="3" cy="3" r="1.3" fill="{0}"/>',
    '<path d="M0 3H6" stroke="{0}" stroke-width="1.4"/>',
    '<path d="M3 0V6" stroke="{0}" stroke-width="1.4"/>',
    '<path d="M0 0L6 6" stroke="{0}" stroke-width="1.4"/>',
    '<path d="M3 0V6M0 3H6" stroke="{0}" stroke-width="1"/>',
    '<path d="M0 5L3 1L6 5" fill="none" stroke="{0}" stroke-width="1.2"/>',
)
PLAIN = '<path d="M0 0L6 6M6 0L0 6" stroke="{0}" stroke-width=".7"/>'


@dataclass(frozen=True)
class Style:
    """How one request looks. `key` names its pattern within a picture."""

    key: str
    solid: str
    ink: str
    tint: str
    strokes: str

    @property
    def pattern(self) -> str:
        """The fill that shows the pattern; the picture replaces @ by its own prefix."""
        return f"url(#@{self.key})"

    def definition(self) -> str:
        """The SVG element that defines the pattern."""
        return (
            f'<pattern id="@{self.key}" width="6" height="6" patternUnits="userSpaceOnUse">'
            f'<rect width="6" height="6" fill="{self.tint}"/>'
            f"{self.strokes.format(self.solid)}</pattern>"
        )


def _style(index: int) -> Style:
    """The look of the index-th request: 7 colours, and 7 patterns that shift each round."""
    turn = index // len(COLOURS)
    colours = COLOURS[index % len(COLOURS)]
    return Style(f"q{index % 49}", *colours, PATTERNS[(index + turn) % len(PATTERNS)])


NEUTRAL = Style("none", *NOBODY, PLAIN)


class Cast:
    """Labels and styles of the requests in a picture.

    A single capital letter and a number have a fixed look, whatever else is in the picture;
    other names are numbered in the order in which they appear.
    """

    def __init__(self, requests: Iterable[Hashable] = ()) -> None:
        self._labels: dict[Hashable, str] = {None: ""}
        self._styles: dict[Hashable, Style] = {None: NEUTRAL}
        self._named = 0
        for request in requests:
            self.label(request)

    def label(self, request: Hashable) -> str:
        """At most four characters: the name itself, R7 for number 7, or initial and digits."""
        if request not in self._labels:
            self._introduce(request)
        return self._labels[request]

    def request_of(self, label: str) -> Hashable:
        """The request that has this label; None for the empty one."""
        return next(request for request, known in self._labels.items() if known == label)

    def style(self, request: Hashable) -> Style:
        """The look of a request; None, the unknown, is grey."""
        if request not in self._styles:
            self._introduce(request)
        return self._styles[request]

    def _introduce(self, request: Hashable) -> None:
        name = str(request)
        if not name:
            label, index = "", 0
        elif isinstance(request, int):
            label, index = f"R{name}", abs(request)
        elif re.fullmatch("[A-Z]", name):
            label, index = name, ord(name) - ord("A")
        else:
            index = self._named
            self._named += 1
            label = name if len(name) <= 3 else _short(name)
        numbered = (f"{label[:1]}{number}" for number in itertools.count(index))
        while label and label in self._labels.values():
            label = next(numbered)
        self._labels[request] = label
        self._styles[request] = _style(index)


def _short(name: str) -> str:
    """Initial and last digits: "chat-1" -> "C1", "alice" -> "A"."""
    digits = re.search(r"(\d{1,2})\D*$", name)
    return name[:1].upper() + (digits[1] if digits else "")
