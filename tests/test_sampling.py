"""Greedy and seeded sampling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.sampling import sample

LOGITS = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))


def test_temperature_zero_is_greedy():
    assert sample(LOGITS[::-1], 0, 1.0, seed=1, position=5) == 3


def test_frequencies_follow_the_probabilities():
    draws = [sample(LOGITS, 1.0, 1.0, seed=7, position=p) for p in range(4000)]
    shares = np.bincount(draws, minlength=4) / len(draws)
    np.testing.assert_allclose(shares, np.exp(LOGITS), atol=0.03)


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.0, {0}), (0.4, {0}), (0.7, {0, 1}), (0.9, {0, 1, 2})]
)
def test_top_p_keeps_the_smallest_set_that_reaches_it(top_p, kept):
    draws = {sample(LOGITS, 1.0, top_p, seed=3, position=p) for p in range(300)}
    assert draws == kept


@given(seed=st.integers(0, 2**40), position=st.integers(0, 10_000), top_p=st.floats(0, 1))
def test_same_seed_and_position_give_the_same_token(seed, position, top_p):
    first = sample(LOGITS, 0.8, top_p, seed, position)
    assert 0 <= first < 4
    assert sample(LOGITS, 0.8, top_p, seed, position) == first


def test_extreme_logits_stay_finite():
    logits = np.array([-60_000.0, 60_000.0, 0.0], np.float32)
    assert sample(logits, 0.01, 0.9, seed=0, position=0) == 1
    assert sample(logits, 1e-300, 0.9, seed=0, position=0) == 1


@pytest.mark.parametrize("temperature", [1e-308, 5e-324])
def test_the_smallest_temperatures_are_greedy_without_a_warning(temperature, recwarn):
    assert sample(LOGITS[::-1], temperature, 1.0, seed=1, position=5) == 3
    assert not recwarn.list
