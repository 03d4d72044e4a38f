"""The engine: every request gets the answer it would get alone on a cold engine."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paged_tutorial import (
    BlockPool,
    OutOfBlocksError,
    PagedEngine,
    Trace,
    Transformer,
    check_invariants,
    paged_attention_gather,
    random_model,
)
from paged_tutorial.model import linear

from helpers import nan_pool, snapshot

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


def evict_some(cache, draw):
    """Some idle cached blocks are forgotten, in no order, so that holes arise anywhere."""
    idle = [
        block_id
        for block_id in range(cache.pool.num_blocks)
        if cache.index.name_of[block_id] is not None and not cache.pool.reference_counts[block_id]
    ]
    if idle:
        for block_id in draw(st.lists(st.sampled_from(idle), unique=True)):
            cache.evict(block_id)
    check_invariants(cache)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 1000),
    block_size=st.integers(1, 9),
    spare=st.integers(0, 12),
    chunk=st.one_of(st.none(), st.integers(1, 20)),
    holes=st.booleans(),
    data=st.data(),
)
def test_any_schedule_gives_the_cold_answers(seed, block_size, spare, chunk, holes, data):
    """Requests arrive, fork and are aborted at any moment, idle blocks are evicted anywhere."""
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
    aborted, forked = set(), {}
    while waiting or engine.busy:
        if waiting and (not engine.busy or data.draw(st.booleans(), "a request arrives")):
            number, text = waiting.pop(0)
            engine.add(text, request_id=number, max_new_tokens=10)
        engine.step()
        check_invariants(engine.cache)
        happens = data.draw(st.sampled_from(["nothing"] * 6 + ["abort", "fork", "evict", "evict"]))
        if happens == "evict":
            evict_some(engine.cache, data.draw)
        if engine.requests and happens in ("abort", "fork"):
            chosen = data.draw(st.sampled_from(sorted(engine.requests)))
            if happens == "abort":
                engine.abort(chosen)
                aborted.add(chosen)
            elif len(forked) < 4:
                inherited = list(engine.requests[chosen].generated)
                child = engine.fork(chosen, request_id=100 + len(forked))
                forked[child] = (engine.requests[chosen].prompt, inherited)
            check_invariants(engine.cache)
    assert engine.cache.pool.num_free == engine.cache.pool.num_blocks
    forked |= {number: (text, []) for number, text in enumerate(texts)}
    for number, (text, inherited) in forked.items():
        tokens = engine.completions[number].tokens
        expected = alone(text, max_new_tokens=10)
        assert tokens == (expected[: len(tokens)] if number in aborted else expected)
        assert tokens[: len(inherited)] == inherited


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


def test_sixteen_seeded_requests_in_one_batch_say_what_each_says_alone():
    options = dict(temperature=1.1, top_p=0.9, max_new_tokens=12)
    mixed = prompts(16, seed=4)
    engine = PagedEngine(MODEL, 200, 4, max_batch_size=16)
    numbers = [engine.add(prompt, seed=7, **options) for prompt in mixed]
    engine.step()
    assert len(engine.scheduler.running) == 16
    while engine.busy:
        engine.step()
    for number, prompt in zip(numbers, mixed, strict=True):
        assert engine.completions[number].tokens == alone(prompt, seed=7, **options)


def test_a_fork_computes_nothing_twice_and_goes_its_own_way():
    engine = PagedEngine(MODEL, pool=nan_pool(MODEL, 20, 4))
    prompt = prompts(1, seed=6, low=9, high=10)[0]
    parent = engine.add(prompt, max_new_tokens=9)
    for _ in range(3):
        engine.step()
    inherited = list(engine.requests[parent].generated)
    computed = engine.requests[parent].computed_tokens
    sampling = dict(temperature=1.5, seed=3)
    child = engine.fork(parent, max_new_tokens=8, **sampling)
    check_invariants(engine.cache)
    assert engine.cache.pool.num_free == 20 - 3
    while engine.busy:
        engine.step()
        check_invariants(engine.cache)
    assert engine.completions[parent].tokens == alone(prompt, max_new_tokens=9)
    said = engine.completions[child]
    assert said.tokens[:3] == inherited
    assert said.tokens[3:] == alone(prompt + inherited, max_new_tokens=5, **sampling)
    assert (said.cached_tokens, said.computed_tokens) == (computed, 5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(parent_id="nobody"), KeyError, "'nobody' is not in the engine"),
        (dict(request_id="parent"), ValueError, "'parent' is in the engine already"),
        (dict(max_new_tokens=2), ValueError, "max_new_tokens must be at least 3"),
        (dict(max_new_tokens=99), ValueError, "the pool has 8"),
        (dict(temperature=-1), ValueError, "temperature"),
    ],
)
def test_a_fork_that_cannot_be_changes_nothing(arguments, error, message):
    engine = PagedEngine(MODEL, 8, 4)
    engine.add([1, 2, 3], request_id="parent", max_new_tokens=6)
    engine.step()
    engine.step()
    before = snapshot(engine.cache), dict(engine.requests), list(engine.scheduler.running)
    with pytest.raises(error, match=message):
        engine.fork(**{"parent_id": "parent", **arguments})
    assert before == (snapshot(engine.cache), engine.requests, engine.scheduler.running)


def test_a_fork_waits_where_there_is_no_place():
    engine = PagedEngine(MODEL, 20, 4, max_batch_size=1)
    parent = engine.add([1, 2, 3, 4, 5], max_new_tokens=6)
    child = engine.fork(parent)  # not even the parent runs
    engine.step()
    other = engine.fork(parent)
    assert len(engine.scheduler.running) == 1
    while engine.busy:
        engine.step()
        check_invariants(engine.cache)
    expected = alone([1, 2, 3, 4, 5], max_new_tokens=6)
    assert [engine.completions[name].tokens for name in (parent, child, other)] == [expected] * 3


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


def test_streams_that_take_turns_lose_nothing():
    engine = PagedEngine(MODEL, 20, 4)
    texts = ([1, 2, 3], 5), ([4, 5, 6], 8)
    streams = [engine.stream(prompt, max_new_tokens=number) for prompt, number in texts]
    turns = list(itertools.zip_longest(*streams))
    for told, (prompt, number) in zip(zip(*turns, strict=True), texts, strict=True):
        tokens = [token for token in told if token is not None]
        assert tokens == alone(prompt, max_new_tokens=number)


def test_a_stream_tells_what_came_before_somebody_aborted_it():
    engine = PagedEngine(MODEL, 20, 4)
    stream = engine.stream([1, 2, 3], request_id="a", max_new_tokens=9)
    told = [next(stream)]
    engine.step()
    engine.abort("a")
    assert told + list(stream) == alone([1, 2, 3], max_new_tokens=2)
    assert engine.completions["a"].finish_reason == "aborted"


@pytest.mark.parametrize("end", [list, lambda stream: stream.close()])
def test_the_end_of_a_stream_leaves_another_request_of_the_same_name_alone(end):
    engine = PagedEngine(MODEL, 20, 4)
    stream = engine.stream([1, 2, 3], request_id="a", max_new_tokens=9)
    next(stream)
    engine.abort("a")
    engine.add([4, 5, 6], request_id="a", max_new_tokens=3)
    end(stream)
    while engine.busy:
        engine.step()
    assert engine.completions["a"].tokens == alone([4, 5, 6], max_new_tokens=3)


def test_nothing_is_kept_of_requests_whose_number_nobody_was_told():
    engine = PagedEngine(MODEL, 8, 4)
    for _ in engine.stream([5, 6, 7], max_new_tokens=3):
        pass
    with pytest.raises(ValueError, match="got 101"):
        engine.generate([[1, 2], [101]], max_new_tokens=2)
    assert not engine.completions


def test_a_number_given_by_itself_takes_no_answer_away():
    engine = PagedEngine(MODEL, 8, 4)
    engine.add([1, 2, 3], request_id=0, max_new_tokens=2)
    while engine.busy:
        engine.step()
    engine.generate([[4, 5]], max_new_tokens=1)
    assert engine.completions[0].prompt_tokens == [1, 2, 3]


def test_stop_tokens_that_can_be_read_only_once_hold_for_all_prompts():
    stop = alone([5, 6, 7], max_new_tokens=12)[3]
    answers = PagedEngine(MODEL, 20, 4).generate([[5, 6, 7]] * 2, stop_tokens=iter([stop]))
    assert [answer.finish_reason for answer in answers] == ["stop"] * 2
    assert answers[0].tokens == answers[1].tokens


@pytest.mark.parametrize("length", [14, 10])
def test_blocks_that_somebody_else_keeps_are_an_error_and_no_endless_wait(length):
    """A prompt that cannot be admitted, and an answer that outgrows what is there."""
    pool = nan_pool(MODEL, 4, 4)
    pool.allocate()
    engine = PagedEngine(MODEL, pool=pool)
    engine.add([1] * length, max_new_tokens=16 - length)
    with pytest.raises(OutOfBlocksError, match="4 needed, 3 free"):
        for _ in range(20):
            engine.step()
    pool.release(0)
    while engine.busy:
        engine.step()
    assert engine.completions[0].tokens == alone([1] * length, max_new_tokens=16 - length)


ANSWER = "a€é".encode() + b"\xe2\x82" + "€".encode()


class Bytes:
    """A tokenizer: token n stands for the n-th byte of ANSWER."""

    end_of_text = 99

    def decode(self, tokens):
        return bytes(ANSWER[token] for token in tokens).decode(errors="replace")


@pytest.mark.parametrize("length", range(1, len(ANSWER) + 1))
def test_a_stream_is_the_whole_answer_even_if_it_ends_within_a_character(length, monkeypatch):
    prompt = [5, 6, 7]
    # The argument after the seed is the position of the token to choose.
    monkeypatch.setattr("paged_tutorial.engine.sample", lambda *args: args[4] - len(prompt))
    engine = PagedEngine(MODEL, 8, 4, tokenizer=Bytes())
    pieces = list(engine.stream(prompt, max_new_tokens=length))
    assert "".join(pieces) == Bytes().decode(range(length))
    assert all(piece[-1] != "\N{REPLACEMENT CHARACTER}" for piece in pieces[:-1])


def test_requests_under_another_salt_do_not_share():
    engine = PagedEngine(MODEL, 20, 4)
    prompt = list(range(12))
    engine.generate([prompt], max_new_tokens=2, salt="a")
    assert engine.generate([prompt], max_new_tokens=2, salt="b")[0].cached_tokens == 0
    assert engine.generate([prompt], max_new_tokens=2, salt="a")[0].cached_tokens == 8


def test_an_attention_that_answers_in_float64_is_welcome():
    """np.zeros is float64 unless told otherwise, and so is what a reader fills it with."""

    def attention(queries, keys, values, batch):
        return paged_attention_gather(queries.astype(np.float64), keys, values, batch)

    kinds = set()

    def watched(x, weight):
        kinds.add(x.dtype.name)
        return linear(x, weight)

    model = Transformer(MODEL.config, MODEL.weights, linear=watched)
    engine = PagedEngine(model, 20, 4, attention=attention)
    mixed = prompts(3, seed=5)
    for prompt, completion in zip(mixed, engine.generate(mixed, max_new_tokens=5), strict=True):
        assert completion.tokens == alone(prompt, max_new_tokens=5)
    assert kinds == {"float32"}


def test_a_pool_of_the_readers_own_is_used():
    pool = nan_pool(MODEL, 8, 4)
    engine = PagedEngine(MODEL, pool=pool)
    engine.generate([[1, 2, 3, 4, 5]], max_new_tokens=2)
    assert np.isfinite(pool.keys).any()


@pytest.mark.parametrize("name", ["num_layers", "num_kv_heads", "head_dim"])
def test_a_pool_of_another_models_shape_is_refused(name):
    config = MODEL.config
    shape = {key: getattr(config, key) for key in ("num_layers", "num_kv_heads", "head_dim")}
    pool = BlockPool(8, 4, **shape | {name: shape[name] + 1})
    with pytest.raises(ValueError, match="the pool's keys must have shape .*, found "):
        PagedEngine(MODEL, pool=pool)


@pytest.mark.parametrize("prompts", [[], "text"])
def test_generate_needs_a_list_of_prompts(prompts):
    with pytest.raises(ValueError, match="at least 1 prompt"):
        PagedEngine(MODEL, 8).generate(prompts)
