"""PagedBatch: where the model writes new keys and values in a step, and what it attends to.

In English: each layer first puts the new keys and values of every token of the step into
their slots; only then does any query attend. So the tokens of a step may be any positions
of any requests, in one batch: a whole prompt, one new token, or the holes of an old chat.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .attention import Batch
from .page_table import ragged_batch
from .pool import BlockPool


class PagedBatch:
    """The `kv` that the model sees when keys and values live in a block pool.

    plan: for each request an object with `tokens` and `table`, and the positions to compute
    attention: paged_attention_gather or another function with its signature
    tokens, positions, slot_mapping: flat arrays over all requests, (num_tokens,) int64
    """

    def __init__(self, pool: BlockPool, plan: Sequence[tuple], attention) -> None:
        self._pool = pool
        self._attention = attention
        ragged = ragged_batch([(holding.table, positions) for holding, positions in plan])
        self.tokens = np.array([held.tokens[p] for held, chosen in plan for p in chosen], np.int64)
        self.positions = ragged.positions
        self.slot_mapping = ragged.slot_mapping
        tables = [np.asarray(holding.table.block_ids, np.int64) for holding, _ in plan]
        self.batch = Batch(ragged.positions, ragged.query_start, tables)

    def write(self, layer: int, keys: np.ndarray, values: np.ndarray) -> None:
        """Put new keys and values, (num_tokens, num_kv_heads, head_dim), into their slots."""
        for blocks, new in ((self._pool.keys[layer], keys), (self._pool.values[layer], values)):
            blocks.reshape(-1, *blocks.shape[2:])[self.slot_mapping] = new

    def attend(self, layer: int, queries: np.ndarray) -> np.ndarray:
        """Attention of the queries, (num_tokens, num_heads, head_dim), by their positions."""
        keys, values = self._pool.keys[layer], self._pool.values[layer]
        mixed = self._attention(queries, keys, values, self.batch)
        return mixed.astype(queries.dtype, copy=False)  # however finely it was summed
