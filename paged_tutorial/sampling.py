"""From logits to the next token: greedy, or drawn with temperature and top-p.

A draw depends on the request's seed and on the token's position alone, so that the same
request gives the same text whatever else runs beside it, preempted or not.
"""

from __future__ import annotations

import numpy as np


def sample(logits: np.ndarray, temperature: float, top_p: float, seed: int, position: int) -> int:
    """The next token, given logits (vocabulary_size,) at `position`.

    Temperature 0 takes the most likely token. Otherwise the smallest set of tokens whose
    probabilities reach `top_p` is kept (Holtzman et al., 2020) and one of them is drawn.
    """
    if temperature == 0:
        return int(logits.argmax())
    below = logits.astype(np.float64) - logits.max()
    with np.errstate(over="ignore"):  # a tiny temperature makes it -infinity, and exp of that is 0
        probabilities = np.exp(below / temperature)
    probabilities /= probabilities.sum()
    order = np.argsort(-probabilities, kind="stable")
    cumulative = np.cumsum(probabilities[order])
    kept = int(np.searchsorted(cumulative, top_p * cumulative[-1])) + 1
    draw = np.random.default_rng([seed, position]).random() * cumulative[kept - 1 : kept].sum()
    return int(order[np.searchsorted(cumulative[:kept], draw, side="right").clip(max=kept - 1)])
