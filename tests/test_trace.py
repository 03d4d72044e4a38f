"""Events and the observer that keeps them; a cache without an observer builds none."""

import pytest

from paged_tutorial import cache as cache_module
from paged_tutorial import pool as pool_module
from paged_tutorial.cache import PagedKVCache
from paged_tutorial.pool import BlockPool
from paged_tutorial.trace import SENTENCES, Event, Trace

from helpers import append, finish, make_cache, serve


def traced_cache(num_blocks):
    trace = Trace()
    pool = BlockPool(num_blocks, 4, observer=trace)
    return PagedKVCache(pool, observer=trace), trace


@pytest.mark.parametrize("kind", SENTENCES)
def test_every_kind_of_event_has_a_sentence_without_blanks_left(kind):
    sentence = Event(kind, request="r1", block=3, logical=0, tokens=7).sentence()
    assert sentence and "{" not in sentence and "None" not in sentence


def test_a_trace_keeps_events_in_order_counts_and_filters_them():
    trace = Trace()
    events = [Event("hit", "a", 1, 0), Event("free", block=1), Event("hit", "b", 2, 0)]
    for event in events:
        trace(event)
    assert len(trace) == 3
    assert list(trace) == events
    assert trace.counts() == {"hit": 2, "free": 1}
    assert trace.of("hit") == [events[0], events[2]]
    assert trace.of("free", "hit") == events


def test_an_event_cannot_be_changed():
    with pytest.raises(AttributeError):
        Event("hit").kind = "miss"


def test_a_first_request_misses_and_a_second_hits():
    cache, trace = traced_cache(4)
    finish(cache, "first", range(6))
    assert [event.kind for event in trace] == [
        *("miss", "allocate", "miss", "allocate", "admit", "register", "free", "free", "release")
    ]
    trace.events.clear()
    serve(cache, "second", range(6))
    assert [event.kind for event in trace] == ["touch", "hit", "miss", "allocate", "admit"]
    assert trace.of("admit")[0].tokens == 4


def test_an_evicted_block_is_reported_and_missed_as_a_fault():
    cache, trace = traced_cache(2)
    finish(cache, "first", range(5))
    finish(cache, "other", [9] * 8)
    assert trace.counts()["evict"] == 1
    trace.events.clear()
    serve(cache, "first", range(5))
    assert [(event.kind, event.logical) for event in trace.of("miss", "fault")] == [
        ("fault", 0),
        ("miss", 1),
    ]


def test_fork_and_copy_are_reported():
    cache, trace = traced_cache(4)
    serve(cache, "parent", range(6))
    cache.fork("parent", "child")
    assert [event.logical for event in trace.of("share")] == [0, 1]
    append(cache, "child", [7])
    (copied,) = trace.of("copy")
    assert (copied.request, copied.logical) == ("child", 1)
    assert copied.block == cache.holdings["child"].table[1]


def test_without_an_observer_no_event_is_built(monkeypatch):
    def build_nothing(*_, **__):
        raise AssertionError("an event was built")

    monkeypatch.setattr(cache_module, "Event", build_nothing)
    monkeypatch.setattr(pool_module, "Event", build_nothing)
    cache = make_cache(3)
    finish(cache, "a", range(6))
    serve(cache, "b", range(6))
    cache.fork("b", "c")
    append(cache, "c", [1, 2])
    cache.release("b")
    cache.release("c")
    cache.drop_all()
