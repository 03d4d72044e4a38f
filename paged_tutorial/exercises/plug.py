"""Run the real model on a pool that is nothing but bookkeeping, such as the reader's own.

In English: the reader's pool says which block is whose. Here it gets the two arrays that
hold the keys and values, and the few names that PagedKVCache asks for.
"""

from __future__ import annotations

import numpy as np


class PluggedPool:
    """A pool for PagedEngine(model, pool=…) made of a simple pool and two arrays.

    simple: an object with num_blocks, block_size, num_free, reference_counts, allocate(),
    share(block) and release(block); share must be able to bring back a free block
    config: the ModelConfig of the model that is to run on it
    """

    def __init__(self, simple, config) -> None:
        self.simple = simple
        shape = (
            config.num_layers,
            simple.num_blocks,
            simple.block_size,
            config.num_kv_heads,
            config.head_dim,
        )
        self.keys = np.zeros(shape, np.float32)
        self.values = np.zeros(shape, np.float32)

    def __getattr__(self, name: str):
        # Everything that is bookkeeping is the reader's: num_free, allocate, share, …
        return getattr(self.simple, name)

    def release(self, block: int, cached: bool = False) -> None:
        """Remove a holder. The simple pool makes no difference between cached and not."""
        self.simple.release(block)

    def copy(self, source: int, target: int) -> None:
        """Copy the keys and values of one block, all layers, to another."""
        self.keys[:, target] = self.keys[:, source]
        self.values[:, target] = self.values[:, source]
