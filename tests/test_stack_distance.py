"""Stack distances against a real stack and against simulation."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.block_cache import replay
from paged_tutorial.stack_distance import lru_hits, stack_distances

from helpers import quick


@quick
@given(st.lists(st.integers(0, 9), max_size=80))
def test_distances_are_depths_in_a_stack(trace):
    stack, expected = [], []
    for key in trace:
        expected.append(stack.index(key) + 1 if key in stack else 0)
        if key in stack:
            stack.remove(key)
        stack.insert(0, key)
    distances = stack_distances(trace)
    assert distances.dtype == np.int64 and distances.shape == (len(trace),)
    assert distances.tolist() == expected


@pytest.mark.parametrize("seed", range(50))
def test_one_pass_gives_what_simulation_gives_at_every_capacity(seed):
    generator = random.Random(seed)
    keys = generator.choice((3, 10, 40))
    # Some keys are popular, others are not.
    weights = [1 / (key + 1) ** generator.choice((0, 1)) for key in range(keys)]
    trace = generator.choices(range(keys), weights, k=generator.randrange(1, 400))
    distinct = len(set(trace))
    simulated = [0, *(replay(trace, capacity) for capacity in range(1, distinct + 1))]
    assert lru_hits(trace).tolist() == simulated
    assert simulated[-1] == len(trace) - distinct


def test_nothing_asked_for():
    assert stack_distances([]).tolist() == []
    assert lru_hits([]).tolist() == [0]


def test_any_hashable_is_a_key():
    assert stack_distances(["x", (1, 2), "x", "x"]).tolist() == [0, 0, 2, 1]
