"""The engine: every request gets the answer it would get alone on a cold engine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paged_tutorial import PagedEngine, Trace, check_invariants, random_model

from helpers import nan_pool

MODEL = random_model()
VOCABULARY = MODEL.config.vocabulary_size


def alone(prompt, model=MODEL, **options):
    """Tokens of the request on a fresh engine with room to spare."""
    engine = PagedEngine(model, pool=nan_pool(model, 40, 16))
    return engine.generate([prompt], **options)[0].tokens


def prompts(count, seed, low=1, high=30):
    generator = np.random.default_rng(seed)
    return [
        generator.integers(0, VOCABULARY, generator.integers(low, high)).tolist()
        for _ in range(count)
    ]


def test_sixteen_mixed_requests_on_a_pool_that_forces_preemption():
    mixed = prompts(16, seed=1)
    engine = PagedEngine(MODEL, pool=nan_pool(MODEL, 26, 4))
    completions = engine.generate(mixed, max_new_tokens=20)
    assert engine.metrics["preemptions"] > 0
    assert engine.metrics["recomputed_tokens"] > 0
    for prompt, completion in zip(mixed, completions, strict=True):
        assert completion.tokens == alone(prompt, max_new_tokens=20)
    check_invariants(engine.cache)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    block_size=st.integers(1, 9),
    spare=st.integers(0, 12),
    chunk=st.one_of(st.none(), st.integers(1, 20)),
    holes=st.booleans(),
    data=st.data(),
)
def test_any_schedule_gives_the_cold_answers(seed, block_size, spare, chunk, holes, data):
    """Requests arrive and are aborted at any moment; invariants hold after every step."""
    texts = prompts(6, seed, high=20)
    texts += [texts[0] + texts[1], texts[0] + texts[2]]  # some share a prefix
    largest = max(-(-(len(text) + 9) // block_size) for text in texts)
    engine = PagedEngine(
        MODEL,
        pool=nan_pool(MODEL, largest + spare, block_size),
        max_step_tokens=chunk,
        max_batch_size=4,
        holes=holes,
    )
    waiting = list(enumerate(texts))
    aborted = set()
    while waiting or engine.busy:
        if waiting and (not engine.busy or data.draw(st.booleans(), "a request arrives")):
            number, text = waiting.pop(0)
            engine.add(text, request_id=number, max_new_tokens=10)
        engine.step()
        check_invariants(engine.cache)
        if engine.requests and data.draw(st.integers(0, 15), "abort at 15") == 15:
            victim = data.draw(st.sampled_from(sorted(engine.requests)))
            engine.abort(victim)
            aborted.add(victim)
            check_invariants(engine.cache)
    assert engine.cache.pool.num_free == engine.cache.pool.num_blocks
    for number, text in enumerate(texts):
        tokens = engine.completions[number].tokens
        expected = alone(text, max_new_tokens=10)
        assert tokens == (expected[: len(tokens)] if number in aborted else expected)


def test_seeded_sampling_does_not_depend_on_the_batch():
    options = dict(temperature=0.9, top_p=0.8, max_new_tokens=15)
    mixed = prompts(8, seed=3)
    engine = PagedEngine(MODEL, 24, 4)
    numbers = [engine.add(prompt, seed=index, **options) for index, prompt in enumerate(mixed)]
    while engine.busy:
        engine.step()
    assert engine.metrics["preemptions"] > 0
    for index, (number, prompt) in enumerate(zip(numbers, mixed, strict=True)):
        assert engine.completions[number].tokens == alone(prompt, seed=index, **options)


def test_a_chat_that_returns_computes_only_what_is_missing():
    engine = PagedEngine(MODEL, 12, 4)
    chat = prompts(1, seed=5, low=20, high=21)[0]
    first = engine.generate([chat], max_new_tokens=5)[0]
    longer = chat + first.tokens + [1, 2, 3]
    for block_id in engine.cache.match(longer).blocks.values():
        if block_id % 2:
            engine.cache.evict(block_id)
    cached = 4 * len(engine.cache.match(longer).blocks)
    again = engine.generate([longer], max_new_tokens=5)[0]
    assert again.tokens == alone(longer, max_new_tokens=5)
    assert again.cached_tokens == cached > 0
    assert again.computed_tokens == len(longer) - cached + 4
    assert again.recomputed_tokens == 4 * 3


def test_generated_tokens_are_recomputed_and_not_sampled_again():
    trace = Trace()
    engine = PagedEngine(MODEL, 9, 4, observer=trace)
    completions = engine.generate(prompts(3, seed=8, low=8, high=9), max_new_tokens=14)
    assert engine.metrics["preemptions"] > 0
    assert len(trace.of("token")) == sum(len(c.tokens) for c in completions) == 42


def test_metrics_add_up():
    trace = Trace()
    engine = PagedEngine(MODEL, 26, 4, observer=trace)
    completions = engine.generate(prompts(16, seed=1), max_new_tokens=20)
    metrics = engine.metrics
    for name in ("cached_tokens", "computed_tokens", "recomputed_tokens"):
        assert metrics[name] == sum(getattr(c, name) for c in completions)
    counts = trace.counts()
    assert counts["evict"] == metrics["evictions"] > 0
    assert counts["preempt"] == metrics["preemptions"] == sum(c.preemptions for c in completions)
    computed = sum(event.tokens for event in trace.of("compute", "recompute"))
    assert computed == metrics["computed_tokens"]
    assert sum(event.tokens for event in trace.of("recompute")) == metrics["recomputed_tokens"]
    assert all(event.sentence() for event in trace)
    for completion in completions:
        assert 0 < completion.time_to_first_token
        assert 0 < completion.time_per_output_token


def test_time_per_output_token_is_undefined_for_one_token():
    completion = PagedEngine(MODEL, 4, 4).generate([[1, 2]], max_new_tokens=1)[0]
    assert completion.time_per_output_token is None
    assert completion.time_to_first_token is not None


def test_stop_token_ends_the_answer():
    tokens = alone([5, 6, 7], max_new_tokens=12)
    stop = tokens[4]
    engine = PagedEngine(MODEL, 8, 4)
    completion = engine.generate([[5, 6, 7]], max_new_tokens=12, stop_tokens=[stop])[0]
    assert completion.finish_reason == "stop"
    assert completion.tokens == tokens[: tokens.index(stop) + 1]


def test_stream_yields_tokens_as_they_come_and_aborts_when_left():
    engine = PagedEngine(MODEL, 8, 4)
    assert list(engine.stream([5, 6, 7], max_new_tokens=6)) == alone([5, 6, 7], max_new_tokens=6)
    for _ in engine.stream([5, 6, 7], max_new_tokens=6):
        break
    assert not engine.busy
    check_invariants(engine.cache)


def test_requests_under_another_salt_do_not_share():
    engine = PagedEngine(MODEL, 20, 4)
    prompt = list(range(12))
    engine.generate([prompt], max_new_tokens=2, salt="a")
    assert engine.generate([prompt], max_new_tokens=2, salt="b")[0].cached_tokens == 0
    assert engine.generate([prompt], max_new_tokens=2, salt="a")[0].cached_tokens == 8


def test_a_pool_of_the_readers_own_is_used():
    pool = nan_pool(MODEL, 8, 4)
    engine = PagedEngine(MODEL, pool=pool)
    engine.generate([[1, 2, 3, 4, 5]], max_new_tokens=2)
    assert np.isfinite(pool.keys).any()


@pytest.mark.parametrize("prompts", [[], "text"])
def test_generate_needs_a_list_of_prompts(prompts):
    with pytest.raises(ValueError, match="at least 1 prompt"):
        PagedEngine(MODEL, 8).generate(prompts)
