"""Pictures, widgets and source listings: what the reader sees.

All are made from the live object, your own class included. The package never imports this
part by itself, and charts and widgets are loaded when first asked for, so that a picture
needs neither matplotlib nor ipywidgets.
"""

from importlib import import_module

from .draw import draw, draw_pool, draw_queue, draw_store
from .page_table import draw_page_table
from .recording import Recording, record
from .snapshot import snapshot
from .source import source
from .svg import Picture
from .timeline import Span, draw_timeline

_LATER = {"show": "plots", "explore": "widgets", "what_if": "widgets"}

__all__ = [
    "Picture",
    "Recording",
    "Span",
    "draw",
    "draw_page_table",
    "draw_pool",
    "draw_queue",
    "draw_store",
    "draw_timeline",
    "explore",
    "record",
    "show",
    "snapshot",
    "source",
    "what_if",
]


def __getattr__(name: str):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value
