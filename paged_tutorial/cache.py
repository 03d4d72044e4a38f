"""PagedKVCache: pool, free queue, page tables and block names put together.

In English: a request that arrives names its full blocks and looks each up. Those that are
resident are shared; the others get new blocks, and their positions are missing until the
model has computed them. A block that is full and computed is registered under its name, so
that the next request can find it. A request that leaves gives its blocks back tail first:
the tail of a text is worth least, since it is of use only to those who share all before it.

Every operation either succeeds or raises with everything as it was. With `holes=False` only
blocks before the first miss count as hits, and every decision equals that of vLLM 0.32
(vllm/v1/core/kv_cache_manager.py); with `holes=True` resident blocks after a miss are used
too, and the model fills just the holes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from .attention import paged_attention_gather
from .checks import check_integer, check_tokens
from .hashing import BlockIndex, BlockName, HashFunction, digest_16
from .page_table import PageTable, blocks_needed
from .paged_batch import PagedBatch
from .pool import BlockPool, OutOfBlocksError
from .trace import Event, Observer


@dataclass
class Match:
    """What a look-up found.

    blocks: logical block -> physical block, for the hits only
    names: the names of all full blocks, the last token's aside; root: where their chain starts
    """

    blocks: dict[int, int]
    names: list[BlockName]
    root: BlockName


@dataclass
class Holding:
    """What the cache knows of one admitted request."""

    tokens: list[int]
    table: PageTable
    root: BlockName
    names: list[BlockName]
    missing: dict[int, None]  # positions to compute, in ascending order, as an ordered set
    lost: set[int] = field(default_factory=set)  # logical blocks that had been evicted


class PagedKVCache:
    """The allocator. Give it a pool; it keeps tables and names and decides who gets what.

    holes: use resident blocks after a missing one too
    hash_function: bytes -> digest; exchange it to see that collisions are harmless
    attention: paged_attention_gather or another function with its signature
    """

    def __init__(
        self,
        pool: BlockPool,
        *,
        holes: bool = True,
        hash_function: HashFunction = digest_16,
        attention=paged_attention_gather,
        observer: Observer | None = None,
    ) -> None:
        self.pool = pool
        self.block_size = pool.block_size
        self.holes = holes
        self.attention = attention
        self.observer = observer
        self.index = BlockIndex(pool.num_blocks)
        self.holdings: dict[Hashable, Holding] = {}
        self.evictions = 0
        self._hash = hash_function

    # -- what decides ------------------------------------------------------------------

    def match(self, tokens: Sequence[int], salt: str = "", adapter: str = "") -> Match:
        """Which blocks of this text are resident. Changes nothing.

        The last token is never hit: its query must be computed for there to be an answer.
        """
        name = root = BlockName.root(salt, adapter, self._hash)
        blocks: dict[int, int] = {}
        names: list[BlockName] = []
        for logical in range((len(tokens) - 1) // self.block_size):
            start = logical * self.block_size
            name = name.child(tokens[start : start + self.block_size], self._hash)
            if self.holes or len(blocks) == logical:
                block_id = self.index.find(name)
                if block_id is not None:
                    blocks[logical] = block_id
                    name = self.index.name_of[block_id]
            names.append(name)
        return Match(blocks, names, root)

    def can_admit(self, tokens: Sequence[int], salt: str = "", adapter: str = "") -> bool:
        """Whether `admit` would succeed now. Changes nothing."""
        tokens = check_tokens("prompt", tokens)
        return self._needed(tokens, self.match(tokens, salt, adapter)) <= self.pool.num_free

    def _needed(self, tokens: Sequence[int], match: Match) -> int:
        """Free blocks an admission uses up: new ones, and hits that wait in the free queue."""
        counts = self.pool.reference_counts
        idle_hits = sum(counts[block_id] == 0 for block_id in match.blocks.values())
        return blocks_needed(len(tokens), self.block_size) - len(match.blocks) + idle_hits

    def admit(
        self, request_id: Hashable, tokens: Sequence[int], salt: str = "", adapter: str = ""
    ) -> np.ndarray:
        """Give a request blocks for all its tokens. Returns the cached positions, ascending.

        Raises OutOfBlocksError (nothing changes) if too few blocks are free, ValueError for
        an empty text, a bad token, or a request that is admitted already.
        """
        tokens = check_tokens("prompt", tokens)
        if request_id in self.holdings:
            raise ValueError(f"request {request_id!r} is admitted already")
        match = self.match(tokens, salt, adapter)
        needed = self._needed(tokens, match)
        if needed > self.pool.num_free:
            raise OutOfBlocksError(needed, self.pool.num_free)
        # Touch the hits before taking new blocks, or a new block might be one of the hits.
        for block_id in match.blocks.values():
            self.pool.share(block_id)
        lost = self._lost(match)
        table = PageTable(self.block_size)
        for logical in range(blocks_needed(len(tokens), self.block_size)):
            hit = match.blocks.get(logical)
            table.append(self._take() if hit is None else hit)
        size = self.block_size
        missing = {p: None for p in range(len(tokens)) if p // size not in match.blocks}
        self.holdings[request_id] = Holding(tokens, table, match.root, match.names, missing, lost)
        self._report_admission(request_id, match, lost, len(tokens) - len(missing))
        return np.array([p for p in range(len(tokens)) if p not in missing], np.int64)

    def extend(self, request_id: Hashable, tokens: Sequence[int]) -> None:
        """Append tokens to a request; their positions are missing until computed.

        New blocks are taken when the last one is full. A half-full last block that others
        hold too is copied first (copy-on-write). Raises OutOfBlocksError, nothing changed.
        """
        holding = self._holding(request_id)
        tokens = check_tokens("tokens to append", tokens)
        old, new = len(holding.tokens), len(holding.tokens) + len(tokens)
        needed = blocks_needed(new, self.block_size) - len(holding.table)
        tail, tail_block = len(holding.table) - 1, holding.table[-1]
        copy = old % self.block_size != 0 and self.pool.reference_counts[tail_block] > 1
        if needed + copy > self.pool.num_free:
            raise OutOfBlocksError(needed + copy, self.pool.num_free)
        if copy:
            block_id = self._take()
            self.pool.copy(tail_block, block_id)
            self.pool.release(tail_block, cached=False)
            holding.table.replace(tail, block_id)
            self._report("copy", request_id, block_id, tail)
        for _ in range(needed):
            holding.table.append(self._take())
            self._report("allocate", request_id, holding.table[-1], len(holding.table) - 1)
        holding.tokens.extend(tokens)
        holding.missing.update(dict.fromkeys(range(old, new)))

    def commit(self, request_id: Hashable, positions: Sequence[int]) -> None:
        """Record that the keys and values of these positions are now in the pool.

        Blocks that are full and complete thereby are registered under their names. Raises
        KeyError for an unknown request, ValueError for positions that could not be next.
        """
        positions = self._next_missing(request_id, positions)
        holding = self.holdings[request_id]
        for position in positions:
            del holding.missing[position]
        for logical in sorted({position // self.block_size for position in positions}):
            block = range(logical * self.block_size, (logical + 1) * self.block_size)
            if block.stop <= len(holding.tokens) and holding.missing.keys().isdisjoint(block):
                self.index.register(holding.table[logical], self._name(holding, logical))
                self._report("register", request_id, holding.table[logical], logical)

    def fork(self, parent_id: Hashable, child_id: Hashable) -> None:
        """Let a second request continue from the same blocks, the half-full one included.

        Raises ValueError if the child exists already or the parent has missing positions.
        """
        parent = self._holding(parent_id)
        if child_id in self.holdings:
            raise ValueError(f"request {child_id!r} is admitted already")
        if parent.missing:
            raise ValueError(
                f"request {parent_id!r} has {len(parent.missing)} positions to compute; "
                "fork it when all are computed"
            )
        for logical, block_id in enumerate(parent.table.block_ids):
            self.pool.share(block_id)
            self._report("share", child_id, block_id, logical)
        table = PageTable(self.block_size, parent.table.block_ids)
        self.holdings[child_id] = Holding(
            list(parent.tokens), table, parent.root, list(parent.names), {}
        )

    def release(self, request_id: Hashable) -> None:
        """Give back all blocks of a request, tail first. Raises KeyError if there is none."""
        table = self._holding(request_id).table
        del self.holdings[request_id]
        for block_id in reversed(table.block_ids):
            self.pool.release(block_id, cached=self.index.name_of[block_id] is not None)
        self._report("release", request_id)

    def _take(self) -> int:
        """A free block, stripped of the name of its former content."""
        block_id = self.pool.allocate()
        if self.index.forget(block_id):
            self.evictions += 1
            self._report("evict", None, block_id)
        return block_id

    def _name(self, holding: Holding, logical: int) -> BlockName:
        """The name of a full block of a request, made on first use."""
        while len(holding.names) <= logical:
            start = len(holding.names) * self.block_size
            parent = holding.names[-1] if holding.names else holding.root
            tokens = holding.tokens[start : start + self.block_size]
            holding.names.append(parent.child(tokens, self._hash))
        return holding.names[logical]

    def _lost(self, match: Match) -> set[int]:
        """Logical blocks that a look-up missed because they were evicted."""
        absent = (logical for logical in range(len(match.names)) if logical not in match.blocks)
        return {logical for logical in absent if self.index.was_evicted(match.names[logical])}

    # -- what the model and the curious use --------------------------------------------

    def missing(self, request_id: Hashable) -> list[int]:
        """Positions of a request whose keys and values must be computed, ascending."""
        return list(self._holding(request_id).missing)

    def lost_positions(self, request_id: Hashable) -> set[int]:
        """The missing positions that were in the pool once and were evicted."""
        holding = self._holding(request_id)
        return {p for p in holding.missing if p // self.block_size in holding.lost}

    def batch(self, plan: Sequence[tuple[Hashable, Sequence[int]]]) -> PagedBatch:
        """The keys and values of a step, for the model: [(request, positions to compute)].

        Raises KeyError for an unknown request, ValueError for positions that are not the
        first of the missing ones or for a request that comes twice.
        """
        for request_id, times in Counter(request_id for request_id, _ in plan).items():
            if times > 1:
                raise ValueError(f"request {request_id!r} comes twice in one batch")
        chosen = [self._next_missing(request_id, positions) for request_id, positions in plan]
        holdings = [self.holdings[request_id] for request_id, _ in plan]
        return PagedBatch(self.pool, list(zip(holdings, chosen, strict=True)), self.attention)

    def _next_missing(self, request_id: Hashable, positions: Sequence[int]) -> list[int]:
        """The positions, once it is sure that they are the next to compute, ascending.

        A slot that holds something, and may be shared, is never written. And a position rests
        on all before it: computed while one of those is missing, it would read what is not
        there, and its block would be found later under a name that it does not deserve.
        """
        missing = self._holding(request_id).missing
        expected = list(islice(missing, len(positions)))
        if list(positions) == expected:
            return expected
        for position in positions:
            if position not in missing:
                raise ValueError(f"position {position} of {request_id!r} is not missing")
        raise ValueError(
            f"positions {list(positions)} of {request_id!r} cannot be next: "
            f"the first {len(expected)} that are missing are {expected}"
        )

    def evict(self, block_id: int) -> None:
        """Forget a cached block on purpose; it becomes the next to be handed out.

        Raises ValueError if the block is held by a request or has no name.
        """
        block_id = check_integer("block id", block_id, 0, self.pool.num_blocks - 1)
        if self.pool.reference_counts[block_id]:
            raise ValueError(f"block {block_id} is held by a request and cannot be evicted")
        if not self.index.forget(block_id):
            raise ValueError(f"block {block_id} is not cached")
        self.pool.queue.remove(block_id)
        self.pool.queue.put(block_id, cached=False)
        self.evictions += 1
        self._report("evict", None, block_id)

    def drop_all(self) -> None:
        """Forget all cached blocks, as after a change of weights.

        Raises RuntimeError while requests hold blocks: what they go on to compute rests on
        the old content and must not be found later.
        """
        if self.holdings:
            names = ", ".join(repr(request_id) for request_id in self.holdings)
            raise RuntimeError(f"the cache cannot be dropped while requests hold blocks: {names}")
        self.index.clear()
        self._report("drop")

    @property
    def stats(self) -> dict[str, int]:
        """Blocks in all, free, cached; requests; evictions so far."""
        return {
            "num_blocks": self.pool.num_blocks,
            "free": self.pool.num_free,
            "cached": len(self.index),
            "requests": len(self.holdings),
            "evictions": self.evictions,
        }

    def _holding(self, request_id: Hashable) -> Holding:
        try:
            return self.holdings[request_id]
        except KeyError:
            raise KeyError(f"request {request_id!r} is not admitted") from None

    def _report(self, kind: str, request=None, block=None, logical=None, tokens=None) -> None:
        if self.observer is not None:
            self.observer(Event(kind, request, block, logical, tokens))

    def _report_admission(self, request_id, match: Match, lost: set[int], cached: int) -> None:
        if self.observer is None:
            return
        for logical, block_id in enumerate(self.holdings[request_id].table.block_ids):
            if logical in match.blocks:
                self._report("hit", request_id, block_id, logical)
                continue
            self._report("fault" if logical in lost else "miss", request_id, None, logical)
            self._report("allocate", request_id, block_id, logical)
        self._report("admit", request_id, tokens=cached)
