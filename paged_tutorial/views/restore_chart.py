"""Charts of the cost model of `restore_cost`: swap or recompute?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..restore_cost import Machine, changes, recompute_seconds, swap_seconds
from ..shapes import ModelShape
from .log_chart import draw_lines
from .svg import Picture

LONGEST = 131_072


def _times(shape: ModelShape, lengths, block_size: int, machine: Machine):
    """Milliseconds to bring back the first n tokens of a text, for each n: (swap, recompute)."""
    swap = [swap_seconds(shape, n, block_size, machine) for n in lengths]
    again = [recompute_seconds(shape, np.arange(n), machine) for n in lengths]
    return 1e3 * np.array(swap), 1e3 * np.array(again)


def finding(lengths: Sequence[int], swap: np.ndarray, again: np.ndarray) -> str:
    """Which way is faster, and where that changes, in a few words."""
    faster = again < swap
    first = "recompute" if faster[0] else "swap"
    turns = changes(faster)
    if not turns:
        return f"{first} is faster at every length"
    other = "swap" if first == "recompute" else "recompute"
    said = f"{first} is faster up to {lengths[turns[0] - 1]:,} tokens"
    for number, turn in enumerate(turns[1:]):
        said += f", {(other, first)[number % 2]} up to {lengths[turn - 1]:,}"
    return f"{said}, then {(other, first)[(len(turns) - 1) % 2]}"


def _with_turns(shape: ModelShape, lengths: list[int], block_size: int, machine: Machine):
    """The lengths, and where the verdict changes the last one before and the first one after."""
    swap, again = _times(shape, lengths, block_size, machine)
    faster = again < swap
    exact = set(lengths)
    for turn in changes(faster):
        low, high = lengths[turn - 1] // block_size, lengths[turn] // block_size
        while high - low > 1:
            middle = (low + high) // 2
            (swap,), (again,) = _times(shape, [middle * block_size], block_size, machine)
            low, high = (low, middle) if (again < swap) == faster[turn] else (middle, high)
        exact |= {low * block_size, high * block_size}
    return sorted(exact)


def chart_by_length(shape: ModelShape, block_size: int, machine: Machine) -> Picture:
    """Time against the number of tokens that are gone, both axes logarithmic."""
    lengths = [round(2 ** (k / 4)) for k in range(16, 4 * 17 + 1)]
    lengths = sorted({-(-n // block_size) * block_size for n in lengths})
    lengths = [n for n in lengths if n <= LONGEST]
    lengths = _with_turns(shape, lengths, block_size, machine)
    swap, again = _times(shape, lengths, block_size, machine)
    return draw_lines(
        {"swap in": swap, "recompute": again},
        lengths,
        f"{shape.name}: {finding(lengths, swap, again)}",
        "tokens to bring back",
        "milliseconds (model)",
        ticks=[tick for tick in (16, 128, 1024, 8192, 65_536) if tick >= lengths[0]],
        dotted=[lengths[turn] for turn in changes(again < swap)],
    )


def chart_by_block_size(
    shape: ModelShape, num_tokens: int, machine: Machine, sizes: Sequence[int], title: str
) -> Picture:
    """Time against block size for one text; swapping goes out and in again."""
    once = 1e3 * np.array([swap_seconds(shape, num_tokens, size, machine) for size in sizes])
    again = 1e3 * recompute_seconds(shape, range(num_tokens), machine)
    return draw_lines(
        {"swap in": once, "recompute": np.full(len(sizes), again), "swap out and in": 2 * once},
        sizes,
        title,
        "block size, tokens",
        "milliseconds (model)",
        ticks=sizes,
    )
