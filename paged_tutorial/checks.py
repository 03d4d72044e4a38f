"""Argument checks whose messages name the value and the limit."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable

import numpy as np


def check_integer(name: str, value, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int in `minimum..maximum`.

    Raises TypeError for anything that is not an integer (booleans included) and
    ValueError outside the limits.
    """
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}")
    if maximum is not None and number > maximum:
        raise ValueError(f"{name} must be at most {maximum}, got {number}")
    return number


def check_number(name: str, value, minimum: float, maximum: float = math.inf) -> float:
    """Return `value` as a finite float in `minimum..maximum`.

    Raises TypeError for anything that is no number (booleans included) and ValueError for
    NaN, infinity or a value outside the limits.
    """
    if isinstance(value, (bool, np.bool_, str, bytes, bytearray)):
        raise TypeError(f"{name} must be a number, not {value!r}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}") from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or not minimum <= number <= maximum:
        limit = f"at least {minimum}" if maximum == math.inf else f"{minimum} to {maximum}"
        raise ValueError(f"{name} must be a finite number, {limit}, got {number}")
    return number


def check_tokens(name: str, tokens: Iterable[int], vocabulary_size: int | None = None) -> list[int]:
    """Return `tokens` as a new list of ints, each in `0..vocabulary_size - 1`.

    Raises TypeError for text or for entries that are no integers, ValueError for an
    empty sequence or an id outside the vocabulary.
    """
    if isinstance(tokens, (str, bytes)):
        raise TypeError(f"{name} must be token ids, not text: {tokens[:20]!r}")
    try:
        entries = list(tokens)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of token ids, not {tokens!r}") from None
    if not entries:
        raise ValueError(f"{name} is empty; at least 1 token is needed")
    # Block names are hashed from 64-bit integers.
    highest = 2**63 - 1 if vocabulary_size is None else vocabulary_size - 1
    return [check_integer(f"token id in {name}", entry, 0, highest) for entry in entries]
