"""The compiled kernels against products in double precision, and where they step aside.

The attention kernel is one of the three that tests/test_attention.py compares with dense
attention; here is what only the kernels promise.
"""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.attention import Batch, paged_attention_gather
from paged_tutorial.kernels import FEW, linear, paged_attention

from helpers import quick


@quick
@given(st.integers(1, FEW + 3), st.integers(1, 70), st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_linear_is_the_product(num_tokens, num_inputs, num_outputs, seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(num_tokens, num_inputs)).astype(np.float32)
    weight = random.normal(size=(num_outputs, num_inputs)).astype(np.float32)
    found = linear(x, weight)
    assert found.shape == (num_tokens, num_outputs) and found.dtype == np.float32
    expected = x.astype(np.float64) @ weight.astype(np.float64).T
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


@quick
@given(st.integers(2, FEW), st.data())
def test_a_token_gets_the_same_bits_in_any_batch(num_tokens, data):
    random = np.random.default_rng(num_tokens)
    x = random.normal(size=(num_tokens, 96)).astype(np.float32)
    weight = random.normal(size=(21, 96)).astype(np.float32)
    whole = linear(x, weight)
    chosen = data.draw(st.lists(st.integers(0, num_tokens - 1), min_size=2, max_size=FEW))
    np.testing.assert_array_equal(linear(x[chosen], weight), whole[chosen])


@pytest.mark.parametrize("num_tokens", [1, 5])
def test_infinity_and_nan_keep_their_meaning(num_tokens):
    x = np.ones((num_tokens, 8), np.float32)
    weight = np.ones((6, 8), np.float32)
    weight[1, 3], weight[2, 4], weight[3, :2] = np.inf, np.nan, (np.inf, -np.inf)
    found = linear(x, weight)
    assert (found[:, [0, 4, 5]] == 8).all() and (found[:, 1] == np.inf).all()
    assert np.isnan(found[:, 2:4]).all()


def test_weights_that_cannot_be_written_and_inputs_with_gaps_are_read():
    weight = np.arange(40, dtype=np.float32).reshape(8, 5)
    weight.flags.writeable = False
    x = np.ones((3, 10), np.float32)[:, ::2]
    np.testing.assert_array_equal(linear(x, weight), x @ weight.T)
    np.testing.assert_array_equal(linear(x[:1], weight), x[:1] @ weight.T)


def test_huge_scores_do_not_overflow():
    queries = np.full((1, 2, 4), 1e18, np.float32)
    keys = np.stack([np.full((4, 1, 4), sign, np.float32) for sign in (1e18, -1e18)])
    values = np.random.default_rng(0).normal(size=keys.shape).astype(np.float32)
    batch = Batch(np.array([6]), np.array([0, 1]), [np.array([1, 0])])
    found = paged_attention(queries, keys, values, batch)
    expected = paged_attention_gather(queries, keys, values, batch)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.isfinite(found).all()


def test_heads_that_do_not_divide_are_refused():
    batch = Batch(np.array([0]), np.array([0, 1]), [np.array([0])])
    blocks = np.zeros((1, 4, 2, 6), np.float32)
    with pytest.raises(ValueError, match="3 query heads are no multiple of 2 kv heads"):
        paged_attention(np.zeros((1, 3, 6), np.float32), blocks, blocks, batch)


def test_numba_is_loaded_only_when_an_engine_or_the_model_needs_it():
    code = "import sys, paged_tutorial; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
