"""Show the real source of a class, method or function, so that text and code never drift."""

from __future__ import annotations

import inspect
import textwrap
from html import escape

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from pygments.style import Style
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from .palette import INK, MUTED, PALE


class _Colours(Style):
    """Few colours, each with a contrast above 4.5 on the pale ground."""

    background_color = PALE
    styles = {
        Comment: "italic #52606D",
        Keyword: "bold #00598C",
        Operator.Word: "bold #00598C",
        Name.Function: "bold #1F2933",
        Name.Class: "bold #1F2933",
        Name.Decorator: "#8A3A67",
        Name.Builtin: "#155F8A",
        Name.Exception: "#9C4500",
        Number: "#9C4500",
        String: "#00694D",
        String.Doc: "italic #00694D",
    }


class Listing:
    """Source code that a notebook shows in colour. `code` is the text, `name` what it is."""

    def __init__(self, name: str, code: str) -> None:
        self.name, self.code = name, code

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": f"# {self.name}\n{self.code}"}

    def html(self) -> str:
        """The code with its colours written into it: no style sheet is needed."""
        formatter = HtmlFormatter(style=_Colours, noclasses=True, nowrap=True)
        code = highlight(self.code, PythonLexer(), formatter).rstrip("\n")
        # A page's own style for `pre` is overruled, so that dark themes do not hide the ink.
        return (
            f'<div style="background:{PALE};color:{INK};border:1px solid #D5DAE0;'
            f'border-radius:8px;padding:10px 14px;max-width:100%;overflow-x:auto">'
            f'<div style="color:{MUTED};font:12px system-ui,sans-serif;margin-bottom:6px">'
            f"{escape(self.name)}</div>"
            f'<pre style="background:{PALE};color:{INK};margin:0;padding:0;border:0;'
            f"font-size:12.5px;line-height:1.5;white-space:pre-wrap;word-break:normal;"
            f'overflow-wrap:anywhere">{code}</pre></div>'
        )

    def __repr__(self) -> str:
        return f"# {self.name}\n{self.code}"


def source(thing) -> Listing:
    """The source of a class, method, property or function, as it stands in its file.

    Raises ValueError if there is none to read.
    """
    plain = thing.fget if isinstance(thing, property) else inspect.unwrap(thing)
    try:
        code = textwrap.dedent(inspect.getsource(plain)).rstrip()
    except (OSError, TypeError):
        raise ValueError(f"{thing!r} has no source that can be read") from None
    module = inspect.getmodule(plain)
    prefix = "" if module is None or module.__name__ == "__main__" else f"{module.__name__}."
    return Listing(prefix + getattr(plain, "__qualname__", plain.__name__), code)
