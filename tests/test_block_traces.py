"""Made block traces: what was published of Mooncake's comes out, within limits."""

import numpy as np
import pytest

from paged_tutorial.block_traces import (
    SYSTEM,
    accesses,
    chats,
    conversations,
    loop,
    uniform,
    used_once,
)
from paged_tutorial.stack_distance import lru_hits

ONCE, UNLIMITED = 0.758, 0.366  # Mooncake's conversation trace
MEDIAN, P90, MEAN = 6909 / 512, 27367 / 512, 12035 / 512  # its inputs, in blocks


def test_conversations_resemble_the_published_trace():
    requests = conversations(12_000, seed=1)
    trace = accesses(requests)
    lengths = [len(request) for request in requests]
    assert len(requests) == 12_000
    assert used_once(trace) == pytest.approx(ONCE, abs=0.02)
    assert 1 - len(set(trace)) / len(trace) == pytest.approx(UNLIMITED, abs=0.02)
    assert np.median(lengths) == pytest.approx(MEDIAN, rel=0.15)
    assert np.percentile(lengths, 90) == pytest.approx(P90, rel=0.15)
    assert np.mean(lengths) == pytest.approx(MEAN, rel=0.1)


def test_lru_on_them_does_about_as_well_as_on_the_published_trace():
    trace = accesses(conversations(12_000, seed=1))
    hits = lru_hits(trace) / len(trace)
    distinct = len(set(trace))
    for capacity, published in ((1_000, 0.045), (10_000, 0.212), (50_000, 0.355)):
        assert hits[round(capacity / 182_790 * distinct)] == pytest.approx(published, abs=0.04)


@pytest.mark.parametrize("make", (conversations, chats))
def test_same_seed_same_trace(make):
    assert make(seed=3) == make(seed=3)
    assert make(seed=3) != make(seed=4)


@pytest.mark.parametrize("requests", (conversations(300), chats()), ids=("conversations", "chats"))
def test_a_turn_asks_for_all_before_it_and_for_something_new(requests):
    seen = set()
    for request in requests:
        assert request[0] == SYSTEM
        assert len(set(request)) == len(request)
        old = [key in seen for key in request]
        assert old == sorted(old, reverse=True), "old blocks come first"
        assert not all(old)
        seen.update(request)


def test_chats_have_the_turns_asked_for():
    requests = chats(num_chats=3, turns=4, blocks_a_turn=2)
    owners = [request[1] for request in requests]
    assert len(requests) == 12
    assert sorted(map(owners.count, set(owners))) == [4, 4, 4]


def test_simple_ones():
    assert loop(3, 2) == [[0, 1, 2], [0, 1, 2]]
    assert accesses(loop(3, 2)) == [2, 1, 0, 2, 1, 0]
    assert sorted(set(accesses(uniform(5, 100)))) == [0, 1, 2, 3, 4]
    assert used_once([1, 2, 2, 3]) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="no blocks"):
        used_once([])


@pytest.mark.parametrize("number", (0, -3, 1.5))
def test_bad_numbers(number):
    with pytest.raises((TypeError, ValueError)):
        conversations(number)
    with pytest.raises((TypeError, ValueError)):
        chats(num_chats=number)
