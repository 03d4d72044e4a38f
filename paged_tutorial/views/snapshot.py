"""Snapshot: all that a picture needs to know of a cache, engine, pool or table, frozen.

In English: a snapshot copies what is there and changes nothing. It can be taken of your
own class as well. These attributes are looked at, and each may be missing:

- `num_blocks`, `block_size`: numbers
- `reference_counts` or `ref_counts`: a list, or a dictionary by block
- `queue`, `free`, `free_list` or `free_blocks`: the free blocks, in any collection
- `tables` or `page_tables`: a dictionary from request to its block ids, or to a page table
- `lengths` or `num_tokens`: a dictionary from request to its number of tokens
- `cached`: the blocks that can be found by their content
- `store`: (request, logical block) of what is kept outside the pool
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral

COUNTS = ("reference_counts", "ref_counts")
QUEUES = ("queue", "free", "free_list", "free_blocks")
TABLES = ("tables", "page_tables")
LENGTHS = ("lengths", "num_tokens")
MOST = 2**20  # a larger number of blocks or slots is a mistake of the reader's, and no pool
ABSENT = ("waiting", "idle")  # such a request holds nothing; its table is what would be found


@dataclass(frozen=True)
class RequestView:
    """One request: its page table, and which of its positions are still to be computed.

    blocks: logical -> physical block, None where it is missing; num_tokens: None if unknown
    state: "running", "waiting", "idle", or "" if unknown
    """

    request: Hashable
    blocks: tuple[int | None, ...]
    num_tokens: int | None = None
    missing: frozenset[int] = frozenset()
    state: str = ""
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """The state at one moment. What is unknown is None.

    cached: blocks that can be found by their content; store: (request, logical) outside
    ordered: whether the first block of the queue is known to be handed out next
    owners: whose content unheld blocks keep; evicted: blocks that just lost their content
    order: all requests seen so far, for stable colours; decode: token ids -> text
    """

    num_blocks: int = 0
    block_size: int | None = None
    reference_counts: tuple[int, ...] | None = None
    queue: tuple[int, ...] | None = None
    cached: frozenset[int] = frozenset()
    requests: tuple[RequestView, ...] = ()
    store: tuple = ()
    ordered: bool = True
    owners: Mapping[int, Hashable] = field(default_factory=dict, compare=False)
    evicted: frozenset[int] = field(default=frozenset(), compare=False)
    order: tuple[Hashable, ...] = field(default=(), compare=False)
    decode: object = field(default=None, compare=False, repr=False)

    def count(self, block_id: int) -> int:
        """Holders of a block: its reference count, or how many tables list it."""
        if self.reference_counts is not None:
            return self.reference_counts[block_id]
        return sum(view.blocks.count(block_id) for view in self.requests)


def snapshot(
    thing,
    *,
    idle: Mapping[Hashable, Sequence[int]] | None = None,
    owners: Mapping[int, Hashable] | None = None,
    store: Iterable[tuple[Hashable, int]] | None = None,
) -> Snapshot:
    """The state of a PagedKVCache, PagedEngine, BlockPool, PageTable, LRUManager or your own.

    idle: texts of requests that are not admitted, as token ids; their resident blocks are
    looked up. owners: whose content a block keeps; store: what is kept outside the pool
    """
    if isinstance(thing, Snapshot):
        state = thing
    elif hasattr(thing, "scheduler") and hasattr(thing, "cache"):
        state = _of_engine(thing, idle)
    elif hasattr(thing, "holdings") and hasattr(thing, "pool"):
        state = _of_cache(thing, idle)
    elif hasattr(thing, "block_ids"):
        state = _of_table(thing)
    else:
        state = _of_anything(thing)
    changes = {}
    if owners is not None:
        changes["owners"] = dict(owners)
    if store is not None:
        changes["store"] = tuple(store)
    return with_changes(state, **changes) if changes else state


def with_changes(state: Snapshot, **changes) -> Snapshot:
    """A copy with some fields exchanged; faster than dataclasses.replace."""
    copy = object.__new__(Snapshot)
    copy.__dict__.update(state.__dict__, **changes)
    return copy


def _of_engine(engine, idle) -> Snapshot:
    running = {request.request_id for request in engine.scheduler.running}
    state = _of_cache(engine.cache, idle, running)
    waiting = tuple(
        _absent(engine.cache, request.request_id, request.tokens, "waiting", request)
        for request in engine.scheduler.waiting
        # In the middle of an admission it is still in line, but holds its blocks already.
        if request.request_id not in engine.cache.holdings
    )
    decode = engine.tokenizer.decode if getattr(engine, "tokenizer", None) else None
    return with_changes(state, requests=state.requests + waiting, decode=decode)


def _of_cache(cache, idle, running=frozenset()) -> Snapshot:
    views = [
        RequestView(
            request,
            tuple(holding.table.block_ids),
            len(holding.tokens),
            frozenset(holding.missing),
            "running" if request in running else "",
            tuple(holding.tokens),
        )
        for request, holding in cache.holdings.items()
    ]
    for request, tokens in (idle or {}).items():
        if request not in cache.holdings:
            views.append(_absent(cache, request, tokens, "idle"))
    names = cache.index.name_of
    return with_changes(
        _of_anything(cache.pool),
        cached=frozenset(block for block, name in enumerate(names) if name is not None),
        requests=tuple(views),
        store=_store(cache),
    )


def _absent(cache, request_id, tokens, state, request=None) -> RequestView:
    """A request that holds nothing: which blocks of its text would be found?"""
    tokens = list(tokens)
    salt = getattr(request, "salt", ""), getattr(request, "adapter", "")
    # A look-up never hits the last token. One more token at the end, and it sees them all.
    found = cache.match([*tokens, 0], *salt).blocks if tokens else {}
    blocks = tuple(found.get(k) for k in range(-(-len(tokens) // cache.block_size)))
    size = cache.block_size
    missing = frozenset(p for p in range(len(tokens)) if blocks[p // size] is None)
    return RequestView(request_id, blocks, len(tokens), missing, state, tuple(tokens))


def _of_table(table) -> Snapshot:
    blocks = _integers(table.block_ids)
    view = RequestView("", blocks)
    return Snapshot(
        _reach(blocks),
        _number(_value(table, "block_size")) or None,
        None,
        None,
        requests=(view,),
    )


def _of_anything(thing) -> Snapshot:
    """Whatever the object has of the attributes named at the top of this module."""
    size = _number(_value(thing, "block_size")) or None
    queue, ordered = _queue(thing)
    requests = _tables(thing)
    counts = _value(thing, *COUNTS)
    known = [*(queue or ()), *(b for view in requests for b in view.blocks if b is not None)]
    num_blocks = _number(_value(thing, "num_blocks"))
    if num_blocks is None:
        num_blocks = len(counts) if isinstance(counts, Sequence) else _reach(known)
    if isinstance(counts, Mapping):
        counts = [counts.get(block, 0) for block in range(num_blocks)]
    if counts is not None:
        counts = _integers(counts)[:num_blocks]
        counts += (0,) * (num_blocks - len(counts))
    cached = _value(thing, "cached")
    return Snapshot(
        num_blocks,
        size,
        counts,
        queue,
        frozenset(_integers(cached)) if _collection(cached) else frozenset(),
        requests,
        _store(thing),
        ordered,
    )


def _queue(thing) -> tuple[tuple[int, ...] | None, bool]:
    """The free blocks, and whether the first of them is the next to be handed out."""
    for name in QUEUES:
        queue = _value(thing, name)
        if _collection(queue):
            return _integers(sorted(queue) if isinstance(queue, set) else queue), name == "queue"
    # An LRUManager or another policy is itself a collection of the free blocks.
    if hasattr(thing, "put") and hasattr(thing, "pop") and _collection(thing):
        return _integers(thing), True
    return None, True


def _tables(thing) -> tuple[RequestView, ...]:
    tables, lengths = _value(thing, *TABLES), _value(thing, *LENGTHS)
    if not isinstance(tables, Mapping):
        return ()
    lengths = lengths if isinstance(lengths, Mapping) else {}
    views = []
    for request, table in tables.items():
        blocks = getattr(table, "block_ids", table)
        if _collection(blocks):
            found = tuple(int(b) if isinstance(b, Integral) else None for b in blocks)
            views.append(RequestView(request, found, _number(lengths.get(request))))
    return tuple(views)


def _store(thing) -> tuple:
    store = _value(thing, "store")
    return tuple(store) if _collection(store) else ()


def _value(thing, *names):
    """The first of these attributes that is there. A reader's property may raise."""
    for name in names:
        try:
            value = getattr(thing, name, None)
        except Exception:
            continue
        if value is not None and not callable(value):
            return value
    return None


def _collection(value) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _number(value) -> int | None:
    return int(value) if isinstance(value, Integral) and 0 <= value <= MOST else None


def _reach(block_ids: Iterable[int]) -> int:
    """Blocks that a pool has at least, if it has these; an id that no pool has is left out."""
    return 1 + max((block for block in block_ids if block < MOST), default=-1)


def _integers(values) -> tuple[int, ...]:
    return tuple(int(value) for value in values if isinstance(value, Integral))
