"""Recompute: which positions are missing, and one forward pass that fills them.

In English: the keys and values of a position depend on the tokens up to it and on nothing
else, so whatever is lost can be computed again from the token list. The model takes any set
of positions: it runs over the missing ones alone and reads the rest from the pool.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from .cache import PagedKVCache
from .model import Transformer


def compute_batch(
    model: Transformer,
    cache: PagedKVCache,
    plan: Sequence[tuple[Hashable, Sequence[int]]],
    wanted: Sequence[int],
) -> np.ndarray:
    """The one operation: make the keys and values of these positions present, then attend.

    plan: [(request, missing positions, ascending)]; wanted: indices of the plan's entries
    Returns the logits at the last position of each wanted entry, (len(wanted),
    vocabulary_size) float32. Raises KeyError for an unknown request and ValueError for
    positions that are not the first missing ones, or for a wanted entry without positions.
    """
    for request_id, positions in (plan[index] for index in wanted):
        if not len(positions):
            raise ValueError(f"request {request_id!r} computes no position and has no logits")
    batch = cache.batch(plan)
    last_rows = batch.batch.query_start[1:] - 1
    rows = last_rows[np.asarray(wanted, np.int64)]
    logits = model.forward(batch.tokens, batch.positions, batch, rows=rows)
    for request_id, positions in plan:
        cache.commit(request_id, positions)
    return logits


def compute(
    model: Transformer, cache: PagedKVCache, request_id: Hashable, positions: Sequence[int]
) -> np.ndarray:
    """Compute the keys and values of the given missing positions of a request, in one pass.

    Returns the logits at the last of them, (vocabulary_size,) float32. Positions must be
    ascending, and everything before each must be present or among them. Raises KeyError for
    an unknown request and ValueError for a position that is not missing.
    """
    return compute_batch(model, cache, [(request_id, positions)], wanted=[0])[0]


def fill(model: Transformer, cache: PagedKVCache, request_id: Hashable) -> np.ndarray:
    """Compute all missing positions of a request. Returns the logits at its last token.

    Raises ValueError if nothing is missing, since then there is no query to compute.
    """
    missing = cache.missing(request_id)
    if not missing:
        raise ValueError(f"request {request_id!r} has no missing position")
    return compute(model, cache, request_id, missing)
