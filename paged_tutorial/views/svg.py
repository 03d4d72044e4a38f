"""SVG as plain strings, and `Picture`, which a notebook shows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from html import escape

from .palette import GROUND, INK, Style

FONT = "system-ui, Segoe UI, Roboto, Helvetica, Arial, sans-serif"
# Width of a character by font size. Wide on purpose: text must fit in every font. Long
# lines come closer to the average than short ones.
REGULAR, BOLD, IN_LINES = 0.58, 0.66, 0.9


# XML has no way to write these, and a decoded token may well contain them.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def written(words) -> str:
    """Any words, fit to stand in XML."""
    return escape(_UNWRITABLE.sub("\N{REPLACEMENT CHARACTER}", str(words)))


def text(x, y, content, size=12, fill=INK, anchor="start", weight=400) -> str:
    """One line of text; y is its baseline."""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}" '
        f'text-anchor="{anchor}" font-weight="{weight}">{written(content)}</text>'
    )


def rect(x, y, width, height, radius=0, fill="none", stroke="none", line=1.0, dash="") -> str:
    """A rectangle with round corners."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    edge = f' stroke="{stroke}" stroke-width="{line:g}"{dashes}' if stroke != "none" else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
        f'rx="{radius:g}" fill="{fill}"{edge}/>'
    )


def path(d, fill="none", stroke="none", line=1.0, dash="") -> str:
    """A path."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    edge = f' stroke="{stroke}" stroke-width="{line:g}"{dashes}' if stroke != "none" else ""
    return f'<path d="{d}" fill="{fill}"{edge}/>'


def moved(x, y, content: str) -> str:
    """The same content, shifted."""
    return f'<g transform="translate({x:g} {y:g})">{content}</g>'


def text_width(content: str, size: float, weight: int = 400) -> float:
    """An upper estimate of the width of a line, in pixels."""
    return len(content) * size * (BOLD if weight >= 600 else REGULAR)


def wrapped(content: str, width: float, size: float, weight: int = 400) -> list[str]:
    """The lines of a paragraph that is to fit into a width."""
    character = text_width("x", size, weight) * IN_LINES
    return textwrap.wrap(content, max(8, int(width / character)))


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """The heights of lines of text, the larger ones raised so that none comes nearer than `gap`."""
    placed, last = list(heights), float("-inf")
    for index in sorted(range(len(heights)), key=heights.__getitem__):
        last = placed[index] = max(heights[index], last + gap)
    return placed


class Faces:
    """Shapes that occur often in a picture: drawn once, and then referred to."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._drawn: list[str] = []

    def use(self, key, make: Callable[[], str], x: float, y: float) -> str:
        """The shape of this name at a place; `make` draws it when it is first asked for."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._drawn)
            self._drawn.append(make())
        return f'<use href="#@f{number}" x="{x:g}" y="{y:g}"/>'

    def definitions(self) -> str:
        """The shapes, for the picture's definitions."""
        return "".join(f'<g id="@f{n}">{drawn}</g>' for n, drawn in enumerate(self._drawn))


class Picture:
    """A finished drawing. A notebook shows it; `svg` is its source, `alt` says it in words.

    title, description: what a screen reader says; body: SVG elements, in which #@ and id="@
    stand for a prefix of all ids; styles, faces: the patterns and shapes that the body uses
    """

    def __init__(
        self,
        body: str,
        width: float,
        height: float,
        title: str,
        description: str,
        styles: Iterable[Style] = (),
        faces: Faces | None = None,
    ) -> None:
        self.width, self.height = width, height
        self.title, self.description = title, description
        definitions = "".join(style.definition() for style in dict.fromkeys(styles))
        if faces is not None:
            definitions += faces.definitions()
        content = (
            f'<title id="@t">{written(title)}</title><desc id="@d">{written(description)}</desc>'
            f"<defs>{definitions}</defs>{rect(0, 0, width, height, 10, GROUND)}{body}"
        )
        # Ids must not clash with those of other pictures on the page, and must be the same
        # each time the picture is drawn. So they are made from what is in it.
        self._prefix = "p" + blake2b(content.encode(), digest_size=5).hexdigest() + "-"
        content = content.replace('id="@', f'id="{self._prefix}')
        self._content = content.replace("#@", f"#{self._prefix}")
        self.svg = self._svg(width, height, "max-width:100%;height:auto", self._content)

    def _svg(self, width: float, height: float, style: str, content: str) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" style="{style}" role="img" '
            f'aria-labelledby="{self._prefix}t {self._prefix}d" font-family="{FONT}">'
            f"{content}</svg>"
        )

    def framed(self, width: float, height: float) -> str:
        """The SVG on a ground of this size, whatever its own; one that is larger is shrunk."""
        wide, high = max(width, self.width), max(height, self.height)
        shape = f"display:block;width:{width:g}px;max-width:100%;height:auto"
        shape += f";aspect-ratio:{width:g}/{height:g}"
        ground = rect(0, 0, wide, high, 10, GROUND)
        return self._svg(wide, high, shape, ground + self._content)

    @property
    def alt(self) -> str:
        """The picture in words."""
        return " ".join(part for part in (_ended(self.title), self.description) if part)

    def html(self, **data) -> str:
        """The picture as HTML. `step=3` becomes the attribute data-step="3"."""
        attributes = "".join(f' data-{key}="{written(value)}"' for key, value in data.items())
        return f'<div class="paged-picture" style="max-width:100%"{attributes}>{self.svg}</div>'

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        # HTML for JupyterLab, where the words inside reach screen readers; SVG for viewers
        # that strip drawings from HTML, as GitHub does.
        return {"text/html": self.html(), "image/svg+xml": self.svg, "text/plain": self.alt}

    def __repr__(self) -> str:
        return f"<Picture: {self.alt}>"


def _ended(sentence: str) -> str:
    return sentence if not sentence or sentence[-1] in ".!?:" else sentence + "."
