"""What several test files need: small caches, snapshots, and a slow but plain attention."""

import math

import numpy as np
from hypothesis import settings

from paged_tutorial.cache import PagedKVCache
from paged_tutorial.invariants import check_invariants
from paged_tutorial.model import DenseKV
from paged_tutorial.pool import BlockPool

# A slow machine must not fail a test, so there are no deadlines anywhere.
quick = settings(max_examples=100, deadline=None)


def make_cache(num_blocks, block_size=4, **options):
    """A cache without a model behind it: its blocks hold one number a token."""
    return PagedKVCache(BlockPool(num_blocks, block_size), **options)


def nan_pool(model, num_blocks, block_size=4, **options):
    """A pool for a model, every slot NaN, so that reading what was never written shows."""
    config = model.config
    pool = BlockPool(
        num_blocks,
        block_size,
        num_layers=config.num_layers,
        num_kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        **options,
    )
    pool.keys[:] = np.nan
    pool.values[:] = np.nan
    return pool


def make_model_cache(model, num_blocks, block_size=4, **options):
    """A cache on such a pool."""
    return PagedKVCache(nan_pool(model, num_blocks, block_size), **options)


def serve(cache, request_id, tokens, salt="", adapter=""):
    """Admit a request and pretend to compute it. Returns how many tokens were cached."""
    cached = cache.admit(request_id, tokens, salt, adapter)
    cache.commit(request_id, cache.missing(request_id))
    check_invariants(cache)
    return len(cached)


def append(cache, request_id, tokens):
    """Extend a request and pretend to compute the new tokens."""
    cache.extend(request_id, tokens)
    cache.commit(request_id, cache.missing(request_id))
    check_invariants(cache)


def finish(cache, request_id, tokens, salt="", adapter=""):
    """Serve a request and let it go. Returns how many tokens were cached."""
    cached = serve(cache, request_id, tokens, salt, adapter)
    cache.release(request_id)
    check_invariants(cache)
    return cached


def compute(model, cache, request_id, chunk=None):
    """Run the model over all missing positions, `chunk` at a time. Returns the last logits."""
    logits = None
    while missing := cache.missing(request_id):
        positions = missing if chunk is None else missing[:chunk]
        batch = cache.batch([(request_id, positions)])
        logits = model.forward(batch.tokens, batch.positions, batch)[-1]
        cache.commit(request_id, positions)
        check_invariants(cache)
    return logits


def run_cold(model, tokens):
    """One pass over all tokens with the dense memory. Returns (logits of all rows, memory)."""
    memory = DenseKV(model.config, len(tokens))
    positions = np.arange(len(tokens))
    return model.forward(tokens, positions, memory.at(positions)), memory


def contents(cache, request_id):
    """Keys and values of all layers and positions of a request, as the pool holds them."""
    holding = cache.holdings[request_id]
    slots = holding.table.slot_mapping(range(len(holding.tokens)))
    pools = cache.pool.keys, cache.pool.values
    return [pool.reshape(len(pool), -1, *pool.shape[3:])[:, slots] for pool in pools]


def snapshot(cache):
    """A copy of everything a cache knows and holds, to compare with later."""
    holdings = [
        (key, list(held.tokens), held.table.block_ids[:], held.root, held.names[:])
        + (list(held.missing), set(held.lost))
        for key, held in cache.holdings.items()
    ]
    return {
        "queue": list(cache.pool.queue),
        "counts": list(cache.pool.reference_counts),
        "names": list(cache.index.name_of),
        "index": [(name, list(blocks)) for name, blocks in cache.index.items()],
        "ghosts": list(cache.index._ghosts),
        "holdings": holdings,
        "stats": cache.stats,
        "keys": cache.pool.keys.tobytes(),
        "values": cache.pool.values.tobytes(),
    }


def naive_attention(queries, keys, values, query_positions, key_positions=None):
    """Attention as the formula says it, one number after the other, in double precision."""
    num_tokens, num_heads, head_dim = queries.shape
    group = num_heads // keys.shape[1]
    if key_positions is None:
        key_positions = range(len(keys))
    output = np.zeros(queries.shape, np.float64)
    for token in range(num_tokens):
        seen = [s for s, at in enumerate(key_positions) if at <= query_positions[token]]
        for head in range(num_heads):
            kv_head = head // group
            query = queries[token, head].astype(np.float64)
            scores = [
                float(query @ keys[s, kv_head].astype(np.float64)) / math.sqrt(head_dim)
                for s in seen
            ]
            highest = max(scores, default=0.0)
            weights = [math.exp(score - highest) for score in scores]
            for s, weight in zip(seen, weights, strict=True):
                output[token, head] += weight / sum(weights) * values[s, kv_head].astype(np.float64)
    return output
