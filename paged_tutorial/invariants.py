"""What must hold in a PagedKVCache after every operation.

In English:

- Every block is either in the free queue, once, or held by a request. Its reference count
  is the number of page tables that hold it; count 0 and being in the queue are the same.
- The index and the names agree: a block carries a name if and only if the index lists the
  block under that name. A name belongs to a full block.
- A request has just enough blocks for its tokens. Where a block of the request carries a
  name, the name says exactly the request's tokens up to there, and all of them are computed.
- A position that is still missing will be written. So its block belongs to this request
  alone and carries no name: nobody else can be reading it.

Tests call `check_invariants` after each step; call it on your own cache whenever in doubt.
"""

from __future__ import annotations

from collections import Counter

from .page_table import blocks_needed


class InvariantError(AssertionError):
    """A rule that must always hold is broken. The message says which, and where."""


def check_invariants(cache) -> None:
    """Raise InvariantError if a PagedKVCache breaks a rule. Its queue must be iterable."""
    _check_blocks(cache)
    _check_names(cache)
    for request_id, holding in cache.holdings.items():
        _check_request(cache, request_id, holding)


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise InvariantError(sentence)


def _check_blocks(cache) -> None:
    """The free queue and the reference counts against the page tables."""
    counts, num_blocks = cache.pool.reference_counts, cache.pool.num_blocks
    holders: Counter[int] = Counter()
    for request_id, holding in cache.holdings.items():
        for block, times in Counter(holding.table.block_ids).items():
            _require(block in range(num_blocks), f"{request_id!r} holds {block}, which is no block")
            _require(times == 1, f"request {request_id!r} holds block {block} {times} times")
            holders[block] += 1
    waiting = Counter(cache.pool.queue)
    for block in waiting:
        _require(block in range(num_blocks), f"the free queue holds {block}, which is no block")
    for block in range(num_blocks):
        count, times = counts[block], waiting[block]
        _require(times <= 1, f"block {block} is in the free queue {times} times")
        _require(
            count == holders[block],
            f"block {block} has reference count {count}, but {holders[block]} page tables hold it",
        )
        _require(count == 0 or not times, f"block {block} is in use and in the free queue too")
        _require(count > 0 or times == 1, f"block {block} is lost: not held, not in the free queue")


def _check_names(cache) -> None:
    """The index, from names to blocks, against the names of the blocks."""
    listed: Counter[int] = Counter()
    for name, blocks in cache.index.items():
        _require(len(blocks) > 0, f"the index lists {name} with no block")
        for block in blocks:
            listed[block] += 1
            carried = cache.index.name_of[block]
            _require(carried == name, f"the index lists block {block} as {name}, it is {carried}")
    for block, name in enumerate(cache.index.name_of):
        if name is None:
            continue
        _require(listed[block] == 1, f"block {block} carries {name}, but the index has it not")
        full = len(name.content) == cache.block_size
        _require(full, f"block {block} carries {name}, the name of a block that is not full")


def _check_request(cache, request_id, holding) -> None:
    """One request: its table, what its named blocks say, what is missing."""
    size, tokens, table = cache.block_size, holding.tokens, holding.table
    who = f"request {request_id!r}"
    fitting = blocks_needed(len(tokens), size)
    _require(
        len(table) == fitting,
        f"{who} has {len(table)} blocks for {len(tokens)} tokens; it needs {fitting}",
    )
    missing = list(holding.missing)
    _require(missing == sorted(set(missing)), f"the missing positions of {who} are not ascending")
    for position in missing:
        _require(0 <= position < len(tokens), f"{who} misses position {position}, beyond its text")
        block = table[position // size]
        unwritten = f"position {position} of {who} is missing, but its block {block}"
        _require(cache.pool.reference_counts[block] == 1, f"{unwritten} is shared")
        _require(cache.index.name_of[block] is None, f"{unwritten} carries a name")
    confirmed: dict[int, object] = {}
    for logical, block in enumerate(table.block_ids):
        level, name = logical, cache.index.name_of[block]
        if name is None:
            continue
        # Walk towards the root, as far as the block before has been walked already.
        while level >= 0 and name is not confirmed.get(level):
            held = tokens[level * size : (level + 1) * size]
            _require(
                list(name.content) == held,
                f"block {block}, logical block {logical} of {who}, is named as if logical block "
                f"{level} read {list(name.content)}, but it reads {held}",
            )
            confirmed[level] = name
            level, name = level - 1, name.parent
        at_root = level >= 0 or (name.parent is None and name.content == holding.root.content)
        _require(at_root, f"block {block} of {who} is named for another salt, adapter or depth")
