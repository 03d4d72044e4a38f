"""Replay a trace of requests and add up what its misses cost, with holes filled or not.

In English: as in `block_cache`, every block of a request is used, and those that are not
there must be computed. Here a miss has a price that depends on where in its text the block
stands. With `holes=False` everything after the first missing block is computed too, though
some of it is still there: engines that find texts by their beginning do that.

A queue sees block ids, never content. One that is to weigh costs is made with a function
that tells it the price of what a block holds now.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from .block_cache import BlockCache
from .lru import LRUManager


def replay_cost(
    requests: Iterable[Sequence[Hashable]],
    capacity: int,
    make_queue: Callable | None = None,
    *,
    price: Callable[[int], float] = lambda logical: 1.0,
    holes: bool = True,
) -> float:
    """The sum of the prices of all blocks that had to be computed.

    requests: lists of keys, equal keys meaning equal content (and equal place in the text)
    make_queue: called with cost, a function from block id to the price of its content; makes
    an empty queue. LRU if None
    price: logical block number -> what it costs to compute such a block
    """
    place: dict[Hashable, int] = {}

    def cost(block_id: int) -> float:
        return price(place[cache.key_of[block_id]])

    cache = BlockCache(capacity, LRUManager() if make_queue is None else make_queue(cost))
    total = 0.0
    for request in requests:
        place.update((key, logical) for logical, key in enumerate(request))
        missing = [logical for logical, key in enumerate(request) if key not in cache]
        if missing and not holes:
            missing = range(missing[0], len(request))
        total += sum(map(price, missing))
        for key in reversed(request):  # released tail first
            cache.access(key)
    return total
