"""The cost model against counting one operation at a time; the replay against plain loops."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial import LRUManager
from paged_tutorial.block_cache import replay
from paged_tutorial.block_traces import accesses, conversations, documents
from paged_tutorial.cost_replay import replay_cost
from paged_tutorial.policies import FIFO, Random
from paged_tutorial.restore_cost import (
    Machine,
    block_bytes,
    changes,
    recompute_flops,
    recompute_seconds,
    relative_cost,
    swap_seconds,
)
from paged_tutorial.shapes import SHAPES, ModelShape

from helpers import quick

TOY = ModelShape("toy", 3, 4, 2, 5, 1000, "float32", "made up")
MACHINE = Machine(1e6, 1e6, 1e5, 0.01)


def counted(shape, positions):
    """Operations, one query and one key at a time."""
    total = 0
    for position in positions:
        total += 2 * shape.parameters
        for _ in range(position + 1):
            total += shape.num_layers * shape.num_heads * (2 * shape.head_dim + 2 * shape.head_dim)
    return total


@quick
@given(st.sets(st.integers(0, 60), max_size=20))
def test_operations_are_counted_rightly(positions):
    positions = sorted(positions)
    assert recompute_flops(TOY, positions) == counted(TOY, positions)


def test_a_pass_takes_at_least_one_reading_of_the_weights():
    assert recompute_seconds(TOY, [], MACHINE) == 0
    slow_memory = replace(MACHINE, weight_bandwidth=1e3)
    assert recompute_seconds(TOY, [0], slow_memory) == 4.0
    assert recompute_seconds(TOY, range(100), MACHINE) == counted(TOY, range(100)) / 1e6


def test_swapping_moves_whole_blocks_and_pays_for_each_transfer():
    assert block_bytes(TOY, 4) == 2 * 3 * 2 * 5 * 4 * 4
    moved = 2 * block_bytes(TOY, 4) / 1e5
    assert swap_seconds(TOY, 5, 4, MACHINE) == pytest.approx(moved + 2 * 6 * 0.01)
    assert swap_seconds(TOY, 5, 4, MACHINE, pieces=1) == pytest.approx(moved + 2 * 0.01)


@quick
@given(st.sampled_from(SHAPES), st.integers(1, 3000), st.integers(1, 7))
def test_the_block_size_matters_to_swapping_alone(shape, num_tokens, power):
    small, large = 2 ** (power - 1), 2**power
    whole = num_tokens * large  # so that no block is half full
    machine = Machine(1e12, 1e12, 1e10, 1e-5)
    assert swap_seconds(shape, whole, small, machine) > swap_seconds(shape, whole, large, machine)


def test_later_blocks_cost_more_and_the_first_is_the_unit():
    for shape in SHAPES:
        costs = [relative_cost(shape, logical, 16) for logical in range(0, 600, 100)]
        assert costs[0] == 1.0 and costs == sorted(costs)


def test_changes_of_a_verdict():
    assert changes([True, True, False, False, True]) == [2, 4]
    assert changes([False]) == []


def test_a_machine_needs_positive_numbers():
    with pytest.raises(ValueError, match="flops"):
        Machine(0, 1, 1, 1)
    with pytest.raises(ValueError, match="transfer_seconds"):
        Machine(1, 1, 1, -1)


def test_a_block_of_nothing_is_named():
    machine = Machine(1, 1, 1, 1)
    for cost in (
        lambda: swap_seconds(SHAPES[0], 10, 0, machine),
        lambda: relative_cost(SHAPES[0], 1, 0),
    ):
        with pytest.raises(ValueError, match="block_size must be at least 1, got 0"):
            cost()


# ---- replay_cost ----


@pytest.mark.parametrize("kind", [LRUManager, FIFO, Random])
def test_at_a_price_of_one_it_counts_misses(kind):
    requests = documents(200, seed=3)
    trace = accesses(requests)
    misses = len(trace) - replay(trace, 150, kind)
    # A request may lose one of its own blocks before it has used it; the price is paid as the
    # request arrives, so the two counts are close and equal where that does not happen.
    roomy = replay_cost(requests, 10**4, lambda cost: kind())
    assert roomy == len(set(trace))
    assert replay_cost(requests, 150, lambda cost: kind()) <= misses


def test_from_the_first_hole_costs_at_least_as_much():
    requests = conversations(200, seed=1)
    price = [1 + logical / 50 for logical in range(1000)].__getitem__
    for kind in (LRUManager, Random):
        filled, prefix = (
            replay_cost(requests, 200, lambda cost, kind=kind: kind(), price=price, holes=holes)
            for holes in (True, False)
        )
        assert filled == prefix if kind is LRUManager else filled < prefix


def test_a_queue_is_told_the_price_of_what_a_block_holds():
    asked = []

    class Nosy(LRUManager):
        def __init__(self, cost):
            super().__init__()
            self.cost = cost

        def put(self, block_id, cached):
            super().put(block_id, cached)
            if len(self) == 2 and started:
                asked.append(self.cost(block_id))

    started = False
    made = []

    def make(cost):
        made.append(Nosy(cost))
        return made[0]

    requests = iter([["a", "b"], ["a", "b", "c"]])

    def begin():
        nonlocal started
        started = True
        yield from requests

    total = replay_cost(begin(), 2, make, price=lambda logical: 10.0 * (logical + 1))
    assert asked == [20.0, 10.0, 30.0, 20.0, 10.0]
    assert total == 10 + 20 + 30


def test_the_small_case_by_hand():
    # Two blocks; b goes first, since a text is released tail first.
    requests = [["a", "b"], ["x"], ["a", "b"]]
    assert replay_cost(requests, 2) == 4.0
    assert replay_cost(requests, 2, price=lambda logical: 5.0 if logical else 1.0) == 1 + 5 + 1 + 5
