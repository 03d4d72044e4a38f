"""What the slots of a memory are good for, as bars: one bar for each way to reserve."""

from __future__ import annotations

from collections.abc import Mapping

from .frame import INNER, MARGIN, WIDTH, Caption, Title
from .palette import FAINT, GROUND, INK, MUTED, Cast
from .svg import Picture, rect, text, text_width

BAR, STEP, NAMES, RIGHT = 34, 48, 132, 106
KINDS = (
    ("tokens", "hold tokens"),
    ("later", "set aside for later"),
    ("never", "set aside for nothing"),
    ("free", "free"),
)


def draw_usage(
    usages: Mapping[str, object], title: str | None = None, caption: str | None = None
) -> Picture:
    """A bar of 100 % for each name, cut into shares, with the requests that run at once.

    usages: name to an object with the shares tokens, later, never, free (0 to 1 each) and
    `running`, such as `simulation.Usage`
    """
    if not usages:
        raise ValueError("there is nothing to draw: no usage was given")
    head, foot = Title(title), Caption(caption)
    styles = {"later": Cast().style("A"), "never": Cast().style("B")}
    paints = {
        "tokens": (styles["later"].solid, styles["later"].solid),
        "later": (styles["later"].pattern, styles["later"].solid),
        "never": (styles["never"].pattern, styles["never"].solid),
        "free": (GROUND, FAINT),
    }
    y = head.bottom + 14
    body = [head.draw(), _legend(paints, y)]
    y += 24
    body.append(text(WIDTH - MARGIN, y + 8, "requests at once", 12, MUTED, "end"))
    y += 18
    for name, usage in usages.items():
        body.append(text(MARGIN, y + BAR / 2 + 5, name, 14, INK, weight=600))
        body.append(_bar(usage, paints, y))
        number = f"{usage.running:.1f}"
        body.append(text(WIDTH - MARGIN, y + BAR / 2 + 6, number, 17, INK, "end", 700))
        y += STEP
    body.append(foot.draw(y + 2))
    said = [caption] if caption else []
    for name, usage in usages.items():
        shares = ", ".join(f"{getattr(usage, kind):.1%} {words}" for kind, words in KINDS)
        said.append(f"{name}: {shares}; {usage.running:.1f} requests at once.")
    title = title or "What the slots are good for"
    return Picture("".join(body), WIDTH, y + foot.height + 8, title, " ".join(said),
                   styles.values())  # fmt: skip


def _legend(paints, y: float) -> str:
    parts, x = [], float(MARGIN)
    for kind, words in KINDS:
        fill, edge = paints[kind]
        parts.append(rect(x, y - 10, 20, 13, 3, fill, edge, 1.2))
        parts.append(text(x + 27, y + 1, words, 12.5, INK))
        x += 27 + text_width(words, 12.5) + 16
    return "".join(parts)


def _bar(usage, paints, y: float) -> str:
    parts, x, width = [], float(MARGIN + NAMES), INNER - NAMES - RIGHT
    for kind, _ in KINDS:
        share = getattr(usage, kind)
        wide = share * width
        if wide < 0.5:
            continue
        fill, edge = paints[kind]
        parts.append(rect(round(x, 1), y, round(wide, 1), BAR, 2, fill, edge, 1.2))
        label = f"{share:.1%}" if wide > 60 else f"{share:.0%}"
        if wide > text_width(label, 12.5, 600) + 8:
            parts.append(_label(label, x + wide / 2, y + BAR / 2, kind == "tokens"))
        x += wide
    return "".join(parts)


def _label(words: str, x: float, y: float, on_colour: bool) -> str:
    """The share, on a plate of its own where the ground has a pattern."""
    wide = text_width(words, 12.5, 600) + 2
    plate = "" if on_colour else rect(round(x - wide / 2, 1), y - 9, round(wide, 1), 18, 4, GROUND)
    ink = GROUND if on_colour else INK
    return plate + text(round(x, 1), y + 4.5, words, 12.5, ink, "middle", 600)
