"""The LRU manager: the free queue of a block pool, one OrderedDict, every operation O(1).

In English: the queue holds the blocks that no request uses, in the order in which they
will be handed out. A block whose content nobody can find again goes to the front, since
losing it costs nothing. A block that can still be hit goes to the back, so that the one
unused for longest comes up first. A hit takes its block out of the middle.

An OrderedDict is a hash table threaded by a doubly linked list, so that taking a key out
of the middle is O(1), where `deque.remove` searches. vLLM builds the same list by hand
(vllm/v1/core/kv_cache_utils.py, FreeKVCacheBlockQueue).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator


class LRUManager:
    """Unreferenced blocks, the next to be handed out first."""

    def __init__(self, block_ids: Iterable[int] = ()) -> None:
        self._order: OrderedDict[int, None] = OrderedDict.fromkeys(block_ids)

    def put(self, block_id: int, cached: bool) -> None:
        """Take in a block that nobody references: to the back if `cached`, else to the front.

        Raises ValueError if the block is in the queue already.
        """
        if block_id in self._order:
            raise ValueError(f"block {block_id} is in the free queue already")
        self._order[block_id] = None
        if not cached:
            self._order.move_to_end(block_id, last=False)

    def remove(self, block_id: int) -> None:
        """Take a block out because a request uses it again. Raises KeyError if it is not here."""
        del self._order[block_id]

    def pop(self) -> int:
        """Hand out the block at the front. Raises KeyError if the queue is empty."""
        return self._order.popitem(False)[0]  # last=False

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, block_id: int) -> bool:
        return block_id in self._order

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)
