"""One style for all charts, and `show`, which puts a chart on the page together with its words.

JupyterLab 4 gives an image no alternative text, so the words stand in front of it, seen by
screen readers only; viewers that know the metadata `alt`, such as nbconvert, use that.
"""

from __future__ import annotations

import base64
import io
from html import escape

import matplotlib
from matplotlib.figure import Figure

from .palette import COLOURS as _TRIPLES
from .palette import FAINT, GROUND, INK, MUTED, RULE
from .svg import apart

COLOURS = tuple(solid for solid, _, _ in _TRIPLES)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
DPI = 100

STYLE = {
    "figure.facecolor": GROUND,
    "axes.facecolor": GROUND,
    "savefig.facecolor": GROUND,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.12,
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 10.5,
    "text.color": INK,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 12,
    "axes.titlecolor": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": RULE,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "lines.linewidth": 2.2,
    "lines.markersize": 6,
    # Lines and markers change with the colour: nothing is told by colour alone.
    "axes.prop_cycle": matplotlib.cycler(
        color=COLOURS, marker=MARKERS, linestyle=DASHES[: len(COLOURS)]
    ),
}


def axes(title: str, x: str, y: str, size: tuple[float, float] = (7.8, 3.6), **options):
    """A figure and its axis in the style of the course. Say the finding in the title, and
    name and unit of each axis. Options go to `Figure.subplots`; with several axes, the
    title stands over all of them.
    """
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, dpi=DPI, layout="constrained")
        axis = figure.subplots(**options)
        several = not hasattr(axis, "set_xlabel")
        if several:
            figure.suptitle(title, fontsize=13, fontweight="bold", color=INK, x=0.01, ha="left")
        else:
            axis.set_title(title)
        for one in axis.flat if several else (axis,):
            one.set_xlabel(x)
            one.set_ylabel(y)
    return figure, axis


def line_labels(axis, gap: float = 14) -> None:
    """Write each line's label at its right end, instead of a legend.

    gap: points between labels at least; those too close are moved apart
    """
    lines = [line for line in axis.get_lines() if not line.get_label().startswith("_")]
    ends = [(line, line.get_xdata()[-1], line.get_ydata()[-1]) for line in lines]
    axis.figure.draw_without_rendering()  # only now are the limits final
    to_points = 72 / axis.figure.dpi
    heights = [axis.transData.transform((x, y))[1] * to_points for _, x, y in ends]
    for (line, x, y), height, placed in zip(ends, heights, apart(heights, gap), strict=True):
        axis.annotate(
            line.get_label(),
            (x, y),
            xytext=(8, placed - height),
            textcoords="offset points",
            va="center",
            color=INK,
            fontweight="bold",
            annotation_clip=False,
        )


def png(figure) -> bytes:
    """The figure as PNG, at twice the resolution at which it is shown."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=2 * DPI, metadata={"Software": None})
    return stream.getvalue()


def show(figure, alt: str) -> None:
    """Show a chart, with the words for those who do not see it, and close it."""
    from IPython.display import display

    if not isinstance(alt, str) or not alt.strip():
        raise ValueError("alt must say in words what the chart shows")
    width, height = (round(inches * DPI) for inches in figure.get_size_inches())
    hidden = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)"
    words = f'<p style="{hidden}">Chart: {escape(alt)}</p>'
    display({"text/html": words, "text/plain": f"Chart: {alt}"}, raw=True)
    display(
        {"image/png": base64.b64encode(png(figure)).decode(), "text/plain": f"Chart: {alt}"},
        metadata={"image/png": {"alt": alt, "width": width, "height": height}},
        raw=True,
    )
    _close(figure)


def figure_html(figure, alt: str | None = None) -> str:
    """A chart as an HTML image; without `alt`, its titles are the words. Closes the figure."""
    if alt is None:
        titles = [figure.get_suptitle(), *(axis.get_title("left") for axis in figure.axes)]
        titles += [axis.get_title() for axis in figure.axes]
        alt = ". ".join(title for title in titles if title) or "Chart"
    width = round(figure.get_size_inches()[0] * DPI)
    data = base64.b64encode(png(figure)).decode()
    _close(figure)
    style = "display:block;max-width:100%;height:auto"
    return (
        f'<img alt="{escape(alt)}" width="{width}" style="{style}" '
        f'src="data:image/png;base64,{data}">'
    )


def _close(figure) -> None:
    """Let pyplot forget the figure, if it knows it."""
    from matplotlib import pyplot

    pyplot.close(figure)
