"""Policies as free queues: against slow oracles, in the real cache, and below the optimum."""

from collections import Counter
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial import BlockPool, LRUManager, PagedKVCache
from paged_tutorial.block_cache import BlockCache, replay
from paged_tutorial.invariants import check_invariants
from paged_tutorial.optimum import Belady, next_uses
from paged_tutorial.policies import FIFO, LFU, LIFO, Random, Sieve, TwoQueue
from paged_tutorial.policy import Policy, Ranked

from helpers import finish, quick, serve

POLICIES = (FIFO, LIFO, LFU, Random, Sieve, TwoQueue)
traces = st.lists(st.integers(0, 8), max_size=60)
capacities = st.integers(1, 7)


# ---- oracles: each policy once more, as slowly and plainly as can be ----


def slow(choose):
    """Replays a trace with a list of (arrived, used, uses, key); `choose` names the victim."""

    def hits_of(trace, capacity):
        held, hits = [], []
        for now, key in enumerate(trace):
            entry = next((entry for entry in held if entry[3] == key), None)
            hits.append(entry is not None)
            if entry is not None:
                entry[1], entry[2] = now, entry[2] + 1
                continue
            if len(held) == capacity:
                held.remove(choose(held))
            held.append([now, now, 1, key])
        return hits

    return hits_of


def slow_sieve(trace, capacity):
    """As in the paper: newest first, a visited bit, a hand that moves towards the newest."""
    queue, visited, hand, hits = [], {}, None, []
    for key in trace:
        hits.append(key in visited)
        if key in visited:
            visited[key] = True
            continue
        if len(queue) == capacity:
            place = len(queue) - 1 if hand is None else queue.index(hand)
            while visited[queue[place]]:
                visited[queue[place]] = False
                place = place - 1 if place else len(queue) - 1
            hand = queue[place - 1] if place else None
            del visited[queue.pop(place)]
        queue.insert(0, key)
        visited[key] = False
    return hits


def slow_two_queues(trace, capacity):
    trial, main, hits = [], [], []
    for key in trace:
        hits.append(key in trial + main)
        if key in trial + main:
            (trial if key in trial else main).remove(key)
            main.append(key)
            continue
        if len(trial) + len(main) == capacity:
            (trial if len(trial) > capacity / 2 or not main else main).pop(0)
        trial.append(key)
    return hits


ORACLES = {
    LRUManager: slow(lambda held: min(held, key=lambda entry: entry[1])),
    FIFO: slow(lambda held: min(held, key=lambda entry: entry[0])),
    LIFO: slow(lambda held: max(held, key=lambda entry: entry[0])),
    LFU: slow(lambda held: min(held, key=lambda entry: (entry[2], entry[1]))),
    Sieve: slow_sieve,
    TwoQueue: slow_two_queues,
}


@pytest.mark.parametrize("policy", ORACLES, ids=lambda policy: policy.__name__)
@quick
@given(traces, capacities)
def test_every_hit_and_miss_is_that_of_the_oracle(policy, trace, capacity):
    cache = BlockCache(capacity, policy())
    assert [cache.access(key) for key in trace] == ORACLES[policy](trace, capacity)
    assert cache.hits + cache.misses == len(trace)
    assert set(cache.key_of.values()) == {key for key in trace if key in cache}


# ---- the optimum ----


def best_possible(trace, capacity):
    """The most hits that any choice of victims can reach: all choices are tried."""

    @cache
    def best(index, held):
        if index == len(trace):
            return 0
        key = trace[index]
        if key in held:
            return 1 + best(index + 1, held)
        if len(held) < capacity:
            return best(index + 1, held | {key})
        return max(best(index + 1, held - {victim} | {key}) for victim in held)

    return best(0, frozenset())


def belady_hits(trace, capacity):
    return replay(trace, capacity, lambda: Belady(trace))


@quick
@given(st.lists(st.integers(0, 5), max_size=16), st.integers(1, 4))
def test_belady_reaches_what_is_possible(trace, capacity):
    assert belady_hits(trace, capacity) == best_possible(tuple(trace), capacity)


@pytest.mark.parametrize("policy", (LRUManager, *POLICIES), ids=lambda policy: policy.__name__)
@quick
@given(traces, capacities)
def test_belady_is_never_below_any_policy(policy, trace, capacity):
    assert belady_hits(trace, capacity) >= replay(trace, capacity, policy)


@quick
@given(traces, capacities, st.integers())
def test_belady_is_never_below_any_random_choice(trace, capacity, seed):
    assert belady_hits(trace, capacity) >= replay(trace, capacity, lambda: Random(seed))


@given(traces)
def test_next_uses_by_search(trace):
    rest = [trace[index + 1 :] for index in range(len(trace))]
    expected = [
        index + 1 + later.index(key) if key in later else len(trace)
        for index, (key, later) in enumerate(zip(trace, rest, strict=True))
    ]
    assert next_uses(trace) == expected


# ---- a policy is a free queue ----

operations = st.lists(
    st.tuples(st.sampled_from(("put", "drop", "remove", "pop")), st.integers(0, 5)), max_size=80
)


@pytest.mark.parametrize("policy", (LRUManager, *POLICIES), ids=lambda policy: policy.__name__)
@quick
@given(operations)
def test_a_queue_holds_what_was_put_and_gives_the_worthless_first(policy, steps):
    queue, model = policy(), {}  # block -> whether it is kept
    seen = set()
    for block in range(6):
        queue.put(block, cached=True)
        model[block] = False
    for kind, block in steps:
        if kind in ("put", "drop") and block in model:
            with pytest.raises(ValueError, match=f"block {block} is in the free queue already"):
                queue.put(block, kind == "put")
        elif kind in ("put", "drop"):
            queue.put(block, kind == "put")
            model[block] = kind == "put"
        elif kind == "remove" and block not in model:
            with pytest.raises(KeyError):
                queue.remove(block)
        elif kind == "remove":
            queue.remove(block)
            del model[block]
        elif not model:
            with pytest.raises(KeyError):
                queue.pop()
        else:
            popped = queue.pop()
            seen.add(popped)
            assert not model.pop(popped) or not any(not kept for kept in model.values())
        assert len(queue) == len(model)
        assert Counter(queue) == Counter(model.keys())
        assert [block in queue for block in range(6)] == [block in model for block in range(6)]


class Oldest(Ranked):
    """LRU once more, as a rank."""

    def rank(self, history):
        return history.used


@quick
@given(operations)
def test_the_lru_manager_is_the_policy_that_ranks_by_last_use(steps):
    manager, ranked = LRUManager(), Oldest()
    for block in range(6):
        manager.put(block, True)
        ranked.put(block, True)
    for kind, block in steps:
        if kind == "pop" and len(manager):
            assert manager.pop() == ranked.pop()
        elif kind == "remove" and block in manager:
            manager.remove(block)
            ranked.remove(block)
        elif kind in ("put", "drop") and block not in manager:
            manager.put(block, kind == "put")
            ranked.put(block, kind == "put")


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.__name__)
@quick
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 14)), max_size=25), st.booleans())
def test_the_real_cache_runs_on_any_policy(policy, requests, holes):
    cache = PagedKVCache(BlockPool(6, 4, queue=policy()), holes=holes)
    running = []
    for number, (text, length) in enumerate(requests):
        tokens = [text] * 5 + list(range(length))
        while running and (not cache.can_admit(tokens) or len(running) == 2):
            cache.release(running.pop(0))
            check_invariants(cache)
        serve(cache, number, tokens)
        running.append(number)


@pytest.mark.parametrize("trial", [-0.1, 1.5, float("nan")])
def test_a_share_on_trial_that_is_none(trial):
    with pytest.raises(ValueError, match="trial must be a finite number, 0 to 1"):
        TwoQueue(trial)


def test_blocks_in_use_keep_their_place_in_sieve():
    queue = Sieve()
    for block in range(3):
        queue.put(block, True)
    for block in (queue.pop(), queue.pop(), queue.pop()):
        queue.put(block, True)
    queue.remove(0)  # in use when somebody has to go
    assert queue.pop() == 1
    queue.put(0, True)
    assert queue.pop() == 2  # 0 is marked: it was used again


def test_a_heap_does_not_grow_with_the_hits():
    queue = FIFO()
    cache = BlockCache(4, queue)
    for _ in range(1000):
        for key in range(4):
            cache.access(key)
    assert cache.hits == 3996
    assert len(queue._heap) <= 2 * 4 + 17


def test_a_new_policy_need_only_say_what_it_adds():
    for method, arguments in (("keep", (0,)), ("take", (0,)), ("choose", ())):
        with pytest.raises(NotImplementedError):
            getattr(Policy(), method)(*arguments)
    with pytest.raises(NotImplementedError):
        Ranked().rank(None)


@pytest.mark.parametrize("capacity", (0, -1, 1.5, True, "3"))
def test_a_capacity_that_is_none(capacity):
    with pytest.raises((TypeError, ValueError), match="capacity"):
        BlockCache(capacity)


# ---- fault cases ----


def test_fault_18_a_hit_makes_a_block_recent():
    held = {}
    for policy in (LRUManager, FIFO):
        cache = BlockCache(2, policy())
        for key in "PQPR":
            cache.access(key)
        held[policy] = sorted(key for key in "PQR" if key in cache)
    assert held == {LRUManager: ["P", "R"], FIFO: ["Q", "R"]}


@pytest.mark.parametrize("holes", (False, True))
def test_fault_17_the_deepest_block_goes_first(holes):
    cache = PagedKVCache(BlockPool(3, 4), holes=holes)
    finish(cache, "A", list(range(12)))
    finish(cache, "B", [99])
    assert len(cache.match([*range(12), 0]).blocks) == 2
