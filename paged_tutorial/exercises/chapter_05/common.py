"""What exercises of chapter 5 share."""

from __future__ import annotations

import math

import numpy as np

from ..play import NO_ACCIDENT, Broken, Outcome
from ..telling import advice_on

EXACT = 1e-4  # for numbers of size 1; the mistakes to be found are far larger


def numbers(
    outcome: Outcome, shape: tuple[int, ...], rule: str, expected: str, form: str = ""
) -> np.ndarray:
    """The value as float64 numbers of this shape. Raises Broken for anything else.

    rule: broken by an exception of arithmetic; form: broken by another shape, if not the same
    """
    arithmetic = isinstance(outcome.error, ArithmeticError)
    value = outcome.returned(expected, rule if arithmetic else NO_ACCIDENT)
    try:
        found = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        found = None
    wanted = f"an array of shape {shape}: {expected}" if shape else f"a number: {expected}"
    if found is None or found.shape != shape:
        # None and single numbers have a shape too, (), which says less than they do.
        plain = found is None or not found.shape
        came = outcome.came() if plain else f"shape {found.shape}"
        raise Broken(form or rule, wanted, came, advice_on(value))
    return found


def close(found, truth) -> bool:
    """Equal but for rounding, infinities included."""
    return bool(np.allclose(found, truth, rtol=EXACT, atol=EXACT))


def told(array) -> str:
    """Few numbers, rounded."""
    array = np.asarray(array, np.float64)
    if array.ndim == 0:
        return f"{array:.4g}"
    return f"[{', '.join(told(entry) for entry in array)}]"


def softmax_mean(scores, values) -> np.ndarray:
    """The truth, in float64: the mean of the values, weighted by exp(score)."""
    weights = [math.exp(score - max(scores)) for score in scores]
    return np.array(weights) @ np.asarray(values, np.float64) / sum(weights)
