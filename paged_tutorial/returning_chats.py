"""Returning chats: a made workload, served by an engine or only counted.

In English: several people chat, one turn at a time, in mixed order. A turn is a new message
at the end of all that was said before, and a few tokens of answer. Between two turns a chat
holds nothing: its blocks wait in the free queue, and others may take them. So each return
asks: what is left, and how much must be computed?

Messages are random tokens, so that no two chats begin alike. `serve` runs a model;
`count` moves the same blocks without one, which is exact, since what is hit and evicted
depends on the lengths and not on what the model answers.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from .cache import PagedKVCache
from .checks import check_integer
from .engine import PagedEngine
from .page_table import blocks_needed


@dataclass(frozen=True)
class Turn:
    """One message of one chat, as token ids."""

    chat: int
    message: tuple[int, ...]


@dataclass
class Served:
    """What all turns cost.

    computed_tokens: positions that the model ran on; recomputed_tokens: those of them that
    had been computed in an earlier turn; returns: turns after the first of a chat; holes:
    returns that found a block behind a missing one; seconds: None where no model ran
    """

    computed_tokens: int = 0
    recomputed_tokens: int = 0
    returns: int = 0
    holes: int = 0
    seconds: float | None = None
    answers: list[list[int]] = field(default_factory=list)


def returning_chats(
    num_chats: int = 6,
    turns: int = 4,
    shortest: int = 8,
    longest: int = 48,
    *,
    vocabulary_size: int = 101,
    seed: int = 0,
) -> list[Turn]:
    """Seeded turns in mixed order; a message has `shortest` to `longest` tokens.

    Raises TypeError or ValueError for a number that is no integer or too small.
    """
    check_integer("num_chats", num_chats, 1)
    check_integer("turns", turns, 1)
    check_integer("shortest", shortest, 1)
    check_integer("longest", longest, shortest)
    generator = np.random.default_rng(check_integer("seed", seed, 0))
    order = generator.permutation(np.repeat(np.arange(num_chats), turns))
    lengths = generator.integers(shortest, longest + 1, len(order))
    return [
        Turn(chat, tuple(generator.integers(0, vocabulary_size, length).tolist()))
        for chat, length in zip(order.tolist(), lengths.tolist(), strict=True)
    ]


def blocks_for_all(turns: Sequence[Turn], answer_tokens: int, block_size: int) -> int:
    """Blocks in which all chats fit together at their end: from there on nothing is lost."""
    lengths: dict[int, int] = {}
    for turn in turns:
        lengths[turn.chat] = lengths.get(turn.chat, 0) + len(turn.message) + answer_tokens
    return sum(blocks_needed(length, block_size) for length in lengths.values())


def serve(
    make_engine: Callable[[], PagedEngine],
    turns: Sequence[Turn],
    answer_tokens: int = 4,
    *,
    cold: bool = False,
) -> Served:
    """Run all turns, one after the other, on one engine; with `cold`, on a new one each.

    Raises ValueError for a chat that does not fit into the engine's pool.
    """
    served, texts, engine = Served(seconds=0.0), {}, None
    for turn in turns:
        engine = make_engine() if cold or engine is None else engine
        text = texts.setdefault(turn.chat, [])
        before = max(0, len(text) - 1)  # the last token of an answer was not computed
        text.extend(turn.message)
        _note_return(served, engine.cache, text, before)
        start = time.perf_counter()
        [done] = engine.generate([text], max_new_tokens=answer_tokens, stop_tokens=())
        served.seconds += time.perf_counter() - start
        served.computed_tokens += done.computed_tokens
        served.recomputed_tokens += before - min(before, done.cached_tokens)
        served.answers.append(done.tokens)
        text.extend(done.tokens)
    return served


def count(cache: PagedKVCache, turns: Sequence[Turn], answer_tokens: int = 4) -> Served:
    """The same turns on a cache alone. Answers are tokens that occur nowhere else."""
    check_integer("answer_tokens", answer_tokens, 1)
    served, texts, fresh = Served(), {}, itertools.count(2**40)
    for turn in turns:
        text = texts.setdefault(turn.chat, [])
        before = max(0, len(text) - 1)
        text.extend(turn.message)
        _note_return(served, cache, text, before)
        cached = cache.admit(turn.chat, text)
        served.recomputed_tokens += before - min(before, len(cached))
        served.computed_tokens += _commit_all(cache, turn.chat)
        for _ in range(answer_tokens - 1):
            text.append(next(fresh))
            cache.extend(turn.chat, text[-1:])
            served.computed_tokens += _commit_all(cache, turn.chat)
        text.append(next(fresh))  # returned and never looked at: it needs no slot yet
        cache.release(turn.chat)
    return served


def _commit_all(cache: PagedKVCache, request_id) -> int:
    missing = cache.missing(request_id)
    cache.commit(request_id, missing)
    return len(missing)


def _note_return(served: Served, cache: PagedKVCache, text: list[int], before: int) -> None:
    """Whether a chat that comes back finds a block behind one that it has lost."""
    if not before:
        return
    served.returns += 1
    found = [cache.index.find(name) is not None for name in cache.match(text).names]
    served.holes += any(not first and then for first, then in itertools.pairwise(found))
