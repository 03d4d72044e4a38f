"""Made traces of blocks: which blocks a serving engine is asked for, one after the other.

In English: people come with a prompt. Some ask once and leave. Others come back after a
pause, with all they had so far plus a new message, so that every turn asks for the old
blocks again. All prompts begin with the same system prompt, one block.

These are simulations. `conversations` is made to resemble the trace that Mooncake published
(Qin et al., 2024, github.com/kvcache-ai/Mooncake, conversation trace: 12,031 requests in 59
minutes, blocks of 512 tokens): lengths in blocks, share of blocks used once, the hits of an
unlimited cache, and pauses of minutes. It is that trace thinned out: a tenth of the requests
meets the same share of a cache that is a tenth as large.

A trace is a list of requests; a request is the list of its blocks in the order of its text.
`accesses` makes one flat list of keys of it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable

import numpy as np

from .checks import check_integer

DURATION = 3540.0  # seconds, 59 minutes
# Fitted by hand to the published figures; see the tests for what comes out.
CHAT_SHARE = 0.155  # of the people who come stay for more than one turn
MORE_TURNS = 2.2  # that those take on average (geometric)
PAUSE, PAUSE_SPREAD = 140.0, 1.0  # seconds between two turns: median, and sd of the logarithm
NEW_BLOCKS, BLOCKS_SPREAD = 7.7, 1.1  # what a turn adds, the same (both log-normal)

SYSTEM = 0  # the key of the block that all prompts begin with


def conversations(num_requests: int = 1200, seed: int = 0) -> list[list[int]]:
    """Requests like those of Mooncake's conversation trace: most blocks are used once.

    So many people come that num_requests are expected; there may be fewer, never more.
    Raises TypeError or ValueError unless num_requests is a whole number of at least 1.
    """
    check_integer("num_requests", num_requests, 1)
    generator = np.random.default_rng(seed)
    people = max(1, round(num_requests / (1 + CHAT_SHARE * MORE_TURNS)))
    pending = [
        (start, person, 1 + _more_turns(generator), (SYSTEM,))
        for person, start in enumerate(generator.uniform(0, DURATION, people).tolist())
    ]
    return _serve(pending, generator, num_requests)


def _more_turns(generator: np.random.Generator) -> int:
    """Turns after the first: none for most, then a geometric number."""
    return int(generator.geometric(1 / MORE_TURNS)) if generator.random() < CHAT_SHARE else 0


def _serve(pending, generator, num_requests) -> list[list[int]]:
    """People in order of time, each turn with everything before it and new blocks."""
    heapq.heapify(pending)
    names = itertools.count(SYSTEM + 1)
    requests: list[list[int]] = []
    while pending and len(requests) < num_requests:
        now, person, turns, so_far = heapq.heappop(pending)
        added = 1 + int(generator.lognormal(np.log(NEW_BLOCKS), BLOCKS_SPREAD))
        text = (*so_far, *itertools.islice(names, added))
        requests.append(list(text))
        if turns > 1:
            later = now + generator.lognormal(np.log(PAUSE), PAUSE_SPREAD)
            heapq.heappush(pending, (later, person, turns - 1, text))
    return requests


def chats(
    num_chats: int = 20, turns: int = 10, blocks_a_turn: int = 4, seed: int = 0
) -> list[list[int]]:
    """Only chats, all open at once, each with the same number of turns, in mixed order.

    Every turn asks for the system prompt, for all earlier blocks of its chat, and for
    1 to 2 × blocks_a_turn − 1 new ones. Who speaks next is drawn among all who are not done.
    """
    for name, value in (("num_chats", num_chats), ("turns", turns)):
        check_integer(name, value, 1)
    check_integer("blocks_a_turn", blocks_a_turn, 1)
    generator = np.random.default_rng(seed)
    order = generator.permutation(np.repeat(np.arange(num_chats), turns))
    names = itertools.count(SYSTEM + 1)
    texts: list[list[int]] = [[SYSTEM] for _ in range(num_chats)]
    requests = []
    for chat in order.tolist():
        texts[chat].extend(itertools.islice(names, int(generator.integers(1, 2 * blocks_a_turn))))
        requests.append(list(texts[chat]))
    return requests


def documents(
    num_requests: int = 1500, num_documents: int = 150, skew: float = 0.8, seed: int = 0
) -> list[list[int]]:
    """Questions about documents: the system prompt, a document, and a question used once.

    A document has 2 to 13 blocks, a question 1 to 7. The k-th document is asked about with
    a weight of 1 / k ** skew (Zipf), at any time: popularity does not change.
    """
    for name, value in (("num_requests", num_requests), ("num_documents", num_documents)):
        check_integer(name, value, 1)
    generator = np.random.default_rng(seed)
    names = itertools.count(SYSTEM + 1)
    texts = [
        list(itertools.islice(names, int(length)))
        for length in generator.integers(2, 14, num_documents)
    ]
    weights = 1.0 / np.arange(1, num_documents + 1) ** skew
    chosen = generator.choice(num_documents, num_requests, p=weights / weights.sum())
    questions = generator.integers(1, 8, num_requests)
    return [
        [SYSTEM, *texts[document], *itertools.islice(names, question)]
        for document, question in zip(chosen.tolist(), questions.tolist(), strict=True)
    ]


def loop(num_blocks: int, rounds: int) -> list[list[int]]:
    """The same blocks in the same order, again and again: one request a round."""
    return [list(range(num_blocks)) for _ in range(rounds)]


def uniform(num_blocks: int, num_requests: int, seed: int = 0) -> list[list[int]]:
    """Requests of one block each, any of them with the same chance: the past tells nothing."""
    generator = np.random.default_rng(seed)
    return [[key] for key in generator.integers(0, num_blocks, num_requests).tolist()]


def accesses(requests: Iterable[list[int]]) -> list[int]:
    """All blocks of all requests, in the order in which their content is last used.

    A request releases its blocks tail first, so the tail comes first and the head last.
    """
    return [key for request in requests for key in reversed(request)]


def used_once(trace: Iterable[int]) -> float:
    """The share of distinct blocks that a trace asks for only once. ValueError for no blocks."""
    counts = np.unique(np.asarray(list(trace)), return_counts=True)[1]
    if not len(counts):
        raise ValueError("the share of blocks used once is not defined for no blocks at all")
    return float(np.mean(counts == 1))
