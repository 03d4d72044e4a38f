"""Argument checks: each bad value gets one clear exception that names value and limit."""

import math

import numpy as np
import pytest

from paged_tutorial.checks import check_integer, check_number, check_tokens


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_an_integer_comes_back_as_a_plain_int(value):
    found = check_integer("size", value, 1)
    assert found == 3 and type(found) is int


def test_both_limits_of_an_integer_belong_to_the_range():
    assert check_integer("size", 1, 1, 5) == 1
    assert check_integer("size", 5, 1, 5) == 5


@pytest.mark.parametrize("value", [True, 3.0, "3", None, [3], math.nan])
def test_what_is_no_integer_is_a_type_error_that_shows_it(value):
    with pytest.raises(TypeError, match="size must be an integer") as caught:
        check_integer("size", value, 1)
    assert repr(value) in str(caught.value)


def test_an_integer_outside_the_limits_names_value_and_limit():
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        check_integer("size", 0, 1)
    with pytest.raises(ValueError, match="size must be at most 5, got 6"):
        check_integer("size", 6, 1, 5)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5)])
def test_a_number_comes_back_as_a_float(value):
    found = check_number("temperature", value, 0, 1)
    assert found == value and type(found) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 10**400])
def test_a_number_must_be_finite_and_large_enough(value):
    with pytest.raises(ValueError, match="temperature must be a finite number, at least 0"):
        check_number("temperature", value, 0)


def test_a_number_above_the_limit_names_both_limits():
    with pytest.raises(ValueError, match="top_p must be a finite number, 0 to 1, got 1.5"):
        check_number("top_p", 1.5, 0, 1)


@pytest.mark.parametrize("value", ["0.5", b"1", bytearray(b"1"), None, True, np.True_, [1.0], 1j])
def test_what_is_no_number_is_a_type_error(value):
    with pytest.raises(TypeError, match="temperature must be a number"):
        check_number("temperature", value, 0)


@pytest.mark.parametrize("tokens", [[1, 2], (1, 2), np.array([1, 2]), iter([1, 2]), range(1, 3)])
def test_tokens_come_back_as_a_new_list_of_plain_ints(tokens):
    found = check_tokens("prompt", tokens)
    assert found == [1, 2] and all(type(token) is int for token in found)
    assert found is not tokens


@pytest.mark.parametrize("tokens", ["hello", b"hello"])
def test_text_in_place_of_tokens_is_refused(tokens):
    with pytest.raises(TypeError, match="prompt must be token ids, not text: .*hello"):
        check_tokens("prompt", tokens)


@pytest.mark.parametrize("tokens", [5, None, 1.5])
def test_what_is_no_sequence_is_refused(tokens):
    with pytest.raises(TypeError, match="prompt must be a sequence of token ids"):
        check_tokens("prompt", tokens)


@pytest.mark.parametrize("tokens", [[], (), np.array([], int)])
def test_no_tokens_is_an_error(tokens):
    with pytest.raises(ValueError, match="prompt is empty; at least 1 token is needed"):
        check_tokens("prompt", tokens)


def test_a_token_outside_the_vocabulary_is_named_with_its_limit():
    with pytest.raises(ValueError, match="token id in prompt must be at least 0, got -1"):
        check_tokens("prompt", [1, -1])
    with pytest.raises(ValueError, match="token id in prompt must be at most 99, got 100"):
        check_tokens("prompt", [1, 100], vocabulary_size=100)


def test_a_token_too_large_for_64_bits_is_refused_at_once():
    # Names of blocks are hashed from 64-bit integers; later would be too late to refuse.
    assert check_tokens("prompt", [2**63 - 1]) == [2**63 - 1]
    with pytest.raises(ValueError, match="token id in prompt must be at most"):
        check_tokens("prompt", [2**63])


@pytest.mark.parametrize("entry", [1.0, "1", None, True, [1], np.float64(1)])
def test_a_token_that_is_no_integer_is_a_type_error(entry):
    with pytest.raises(TypeError, match="token id in prompt must be an integer"):
        check_tokens("prompt", [1, entry])
