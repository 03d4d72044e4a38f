"""The model against a plain reimplementation in double precision, and against itself, paged."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.model import DenseKV, ModelConfig, Transformer, random_model

from helpers import compute, make_model_cache, naive_attention, quick, run_cold

SHAPES = [(8, 2), (6, 2), (9, 3), (4, 4)]
TOKENS = [5, 17, 3, 99, 42, 0, 8, 64, 5, 5]


def plain_forward(model, tokens):
    """The Llama architecture, written again, token by token. Returns all logits."""
    config = model.config
    weights = {name: array.astype(np.float64) for name, array in model.weights.items()}

    def normalise(vector, weight):
        return vector / math.sqrt((vector**2).mean() + config.norm_epsilon) * weight

    def turn(heads, position):
        turned = heads.copy()
        for pair in range(config.head_dim // 2):
            angle = position * config.rope_base ** (-2 * pair / config.head_dim)
            first, second = heads[:, 2 * pair], heads[:, 2 * pair + 1]
            turned[:, 2 * pair] = first * math.cos(angle) - second * math.sin(angle)
            turned[:, 2 * pair + 1] = first * math.sin(angle) + second * math.cos(angle)
        return turned

    num_heads, num_kv_heads, head_dim = config.num_heads, config.num_kv_heads, config.head_dim
    stream = [weights["embedding"][token] for token in tokens]
    for layer in range(config.num_layers):
        queries, keys, values = [], [], []
        for position, vector in enumerate(stream):
            normed = normalise(vector, weights[f"{layer}.attention_norm"])
            heads = (weights[f"{layer}.qkv"] @ normed).reshape(-1, head_dim)
            queries.append(turn(heads[:num_heads], position))
            keys.append(turn(heads[num_heads : num_heads + num_kv_heads], position))
            values.append(heads[num_heads + num_kv_heads :])
        mixed = naive_attention(
            np.array(queries), np.array(keys), np.array(values), range(len(tokens))
        )
        for position in range(len(tokens)):
            vector = stream[position] + weights[f"{layer}.output"] @ mixed[position].ravel()
            normed = normalise(vector, weights[f"{layer}.feed_forward_norm"])
            both = weights[f"{layer}.gate_up"] @ normed
            gate, up = both[: config.feed_forward_size], both[config.feed_forward_size :]
            silu = gate / (1 + np.exp(-gate))
            stream[position] = vector + weights[f"{layer}.down"] @ (silu * up)
    return np.array(
        [weights["embedding"] @ normalise(vector, weights["final_norm"]) for vector in stream]
    )


@pytest.fixture(scope="module")
def model():
    return random_model()


@pytest.mark.parametrize(("num_heads", "num_kv_heads"), SHAPES)
def test_dense_and_paged_equal_the_plain_model(num_heads, num_kv_heads):
    model = random_model(num_heads=num_heads, num_kv_heads=num_kv_heads, seed=num_heads)
    expected = plain_forward(model, TOKENS)
    dense, _ = run_cold(model, TOKENS)
    assert dense.dtype == np.float32 and dense.shape == (len(TOKENS), 101)
    np.testing.assert_allclose(dense, expected, rtol=1e-4, atol=1e-4)
    cache = make_model_cache(model, 4)
    cache.admit("r", TOKENS)
    batch = cache.batch([("r", cache.missing("r"))])
    paged = model.forward(batch.tokens, batch.positions, batch)
    np.testing.assert_allclose(paged, expected, rtol=1e-4, atol=1e-4)


def test_norms_that_are_not_one_are_used_too():
    model = random_model(seed=3)
    random = np.random.default_rng(0)
    for name, array in model.weights.items():
        if array.ndim == 1:
            model.weights[name] = random.uniform(0.5, 2, array.shape).astype(np.float32)
    expected = plain_forward(model, TOKENS)
    np.testing.assert_allclose(run_cold(model, TOKENS)[0], expected, rtol=1e-4, atol=2e-4)


@quick
@given(st.lists(st.integers(0, 100), min_size=1, max_size=20), st.integers(1, 8), st.data())
def test_any_text_any_block_size_any_chunk(tokens, block_size, data):
    model = random_model()
    cache = make_model_cache(model, 20, block_size)
    cache.admit("r", tokens)
    logits = compute(model, cache, "r", data.draw(st.integers(1, len(tokens))))
    np.testing.assert_allclose(logits, run_cold(model, tokens)[0][-1], rtol=1e-4, atol=1e-4)


def test_token_by_token_equals_one_pass(model):
    expected, _ = run_cold(model, TOKENS)
    memory = DenseKV(model.config, len(TOKENS))
    for position, token in enumerate(TOKENS):
        logits = model.forward([token], [position], memory.at([position]))
        np.testing.assert_allclose(logits[0], expected[position], rtol=1e-4, atol=1e-4)


def test_rotary_embedding_turns_adjacent_pairs(model):
    vectors = np.zeros((2, 1, 6), np.float32)
    vectors[:, 0, 0] = 1
    vectors[:, 0, 4] = 1
    turned = model.rotate(vectors, np.array([0, 3]))
    np.testing.assert_allclose(turned[0], vectors[0], atol=1e-7)
    slow = 3 * 10_000.0 ** (-4 / 6)
    expected = [math.cos(3), math.sin(3), 0, 0, math.cos(slow), math.sin(slow)]
    np.testing.assert_allclose(turned[1, 0], expected, atol=1e-6)


def test_rotary_embedding_leaves_only_the_distance_in_a_score(model):
    random = np.random.default_rng(0)
    query, key = random.normal(size=(2, 1, 1, 6)).astype(np.float32)

    def score(query_position, key_position):
        turned = model.rotate(query, np.array([query_position]))
        return float((turned * model.rotate(key, np.array([key_position]))).sum())

    assert score(9, 4) == pytest.approx(score(105, 100), abs=1e-4)
    assert score(9, 4) != pytest.approx(score(9, 5), abs=1e-2)


def test_only_the_asked_rows_get_logits(model):
    positions = np.arange(len(TOKENS))
    every, _ = run_cold(model, TOKENS)
    for rows in ([9], [0, 9], [7, 2], [-1], np.array([3])):
        memory = DenseKV(model.config, len(TOKENS))
        found = model.forward(TOKENS, positions, memory.at(positions), rows=rows)
        np.testing.assert_allclose(found, every[rows], rtol=1e-4, atol=1e-4)


def test_no_rows_still_write_keys_and_values(model):
    positions = np.arange(len(TOKENS))
    _, expected = run_cold(model, TOKENS)
    memory = DenseKV(model.config, len(TOKENS))
    assert model.forward(TOKENS, positions, memory.at(positions), rows=[]).shape == (0, 101)
    np.testing.assert_array_equal(memory.keys, expected.keys)


def test_equal_seeds_give_equal_models_and_others_do_not():
    one, same, other = random_model(seed=1), random_model(seed=1), random_model(seed=2)
    np.testing.assert_array_equal(one.weights["0.qkv"], same.weights["0.qkv"])
    assert (one.weights["0.qkv"] != other.weights["0.qkv"]).any()


@pytest.mark.parametrize(
    ("tokens", "positions", "message"),
    [
        ([], [], "tokens is empty"),
        ([-1], [0], "token id in tokens must be at least 0, got -1"),
        ([101], [0], "token id in tokens must be at most 100, got 101"),
        ([1, 2], [0], "2 tokens need as many positions"),
        ([1], [-1], "positions must lie in 0 to 511, got -1"),
        ([1], [512], "positions must lie in 0 to 511, got 512"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(model, tokens, positions, message):
    memory = DenseKV(model.config, 600)
    with pytest.raises(ValueError, match=message):
        model.forward(tokens, positions, memory.at(positions))
    assert np.isnan(memory.keys).all()


def test_text_in_place_of_tokens_is_refused(model):
    with pytest.raises(TypeError, match="tokens must be token ids, not text"):
        model.forward("hi", [0, 1], DenseKV(model.config, 2).at([0, 1]))


def test_weights_of_the_wrong_shape_or_absent_are_named(model):
    wrong = dict(model.weights, **{"1.down": np.zeros((2, 2), np.float32)})
    with pytest.raises(ValueError, match=r"weights\['1.down'\] must have shape \(40, 64\)"):
        Transformer(model.config, wrong)
    wrong.pop("1.down")
    with pytest.raises(ValueError, match=r"weights\['1.down'\] .* found nothing"):
        Transformer(model.config, wrong)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"num_heads": 7}, "num_heads 7 is no multiple of num_kv_heads 2"),
        ({"head_dim": 5}, "head_dim must be even for rotary embedding, got 5"),
        ({"num_kv_heads": 0}, "num_kv_heads must be at least 1, got 0"),
        ({"num_layers": -1}, "num_layers must be at least 1, got -1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        random_model(**changed)


def test_bytes_per_token_of_smollm2():
    config = ModelConfig(30, 576, 9, 3, 64, 1536, 49_152, 8_192)
    assert config.kv_bytes_per_token == 46_080
