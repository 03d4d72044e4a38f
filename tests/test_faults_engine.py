"""Faults that real engines had, at the level of the engine. Numbers as in the course's list."""

import numpy as np
import pytest
from test_engine import MODEL, alone

from paged_tutorial import PagedEngine, check_invariants, compute, fill

from helpers import nan_pool


def engine_of(num_blocks, **options):
    return PagedEngine(MODEL, pool=nan_pool(MODEL, num_blocks, 4), **options)


def test_01_and_02_content_that_was_evicted_is_not_found():
    engine = engine_of(2)
    first = engine.generate([[0, 1, 2, 3, 4]], max_new_tokens=1)[0]
    engine.generate([[9] * 8], max_new_tokens=1)
    check_invariants(engine.cache)
    again = engine.generate([[0, 1, 2, 3, 4]], max_new_tokens=1)[0]
    assert again.cached_tokens == 0
    assert again.tokens == first.tokens


def test_03_and_04_a_fully_cached_prompt_still_computes_its_last_token():
    engine = engine_of(8)
    prompt = list(range(8))
    engine.generate([prompt], max_new_tokens=1)
    again = engine.generate([prompt], max_new_tokens=3)[0]
    assert again.cached_tokens == 4
    assert again.tokens == alone(prompt, max_new_tokens=3)
    longer = engine.generate([list(range(13))], max_new_tokens=3)[0]
    assert longer.cached_tokens == 8
    assert longer.tokens == alone(list(range(13)), max_new_tokens=3)


@pytest.mark.parametrize("length", [3, 4, 5])
def test_05_the_table_grows_exactly_at_the_block_boundary(length):
    engine = engine_of(8)
    engine.add(list(range(length)), request_id="a", max_new_tokens=9)
    steps = 0
    while True:
        engine.step()
        steps += 1
        if "a" not in engine.requests:
            break
        held = length + steps - 1
        assert len(engine.cache.holdings["a"].table) == -(-held // 4)
        check_invariants(engine.cache)
    assert engine.completions["a"].tokens == alone(list(range(length)), max_new_tokens=9)


@pytest.mark.parametrize("moment", range(1, 9))
def test_06_no_token_is_lost_or_doubled_on_coming_back(moment):
    engine = engine_of(8)
    engine.add([3, 1, 4], request_id="a", max_new_tokens=10)
    for _ in range(moment):
        engine.step()
    scheduler = engine.scheduler
    scheduler._preempt(scheduler.running[0])
    while engine.busy:
        engine.step()
    assert engine.completions["a"].tokens == alone([3, 1, 4], max_new_tokens=10)


@pytest.mark.parametrize("chunk", [1, 2, 3, 4, 5, 7, 8])
def test_07_and_08_chunks_of_any_size_equal_one_pass(chunk):
    engine = engine_of(8, max_step_tokens=chunk)
    prompt = [7, 6, 5, 4, 3, 2, 1, 0]
    completion = engine.generate([prompt], max_new_tokens=6)[0]
    assert completion.tokens == alone(prompt, max_new_tokens=6)
    assert np.isfinite(engine.cache.pool.keys[:, engine.cache.match(prompt).blocks[0]]).all()


def test_09_a_prompt_that_can_never_fit_is_refused_at_once():
    engine = engine_of(4)
    with pytest.raises(ValueError, match=r"prompt of 20 .* needs 5 blocks .* the pool has 4"):
        engine.add(list(range(20)), max_new_tokens=1)
    assert not engine.busy
    small = engine.generate([[1, 2, 3]], max_new_tokens=4)[0]
    assert small.tokens == alone([1, 2, 3], max_new_tokens=4)


def test_09_an_answer_that_could_outgrow_the_pool_is_refused_too():
    engine = engine_of(4)
    with pytest.raises(ValueError, match="needs 5 blocks"):
        engine.add([1] * 10, max_new_tokens=8)
    assert len(engine.generate([[1] * 10], max_new_tokens=7)[0].tokens) == 7


def test_12_a_block_is_not_hit_before_it_is_computed():
    prefix = list(range(8))
    first, second = prefix + [20, 21], prefix + [30]
    engine = engine_of(20)
    for completion, prompt in zip(
        engine.generate([first, second], max_new_tokens=5), (first, second), strict=True
    ):
        assert completion.tokens == alone(prompt, max_new_tokens=5)
    # The same by hand, the second request computed before the first.
    cache = engine_of(20).cache
    cache.admit("first", first)
    cache.admit("second", second)
    assert cache.missing("second") == list(range(9))
    logits = fill(MODEL, cache, "second")
    assert logits.argmax() == alone(second, max_new_tokens=1)[0]
    assert fill(MODEL, cache, "first").argmax() == alone(first, max_new_tokens=1)[0]


def test_12_a_chunk_registers_only_the_blocks_that_are_complete():
    cache = engine_of(20).cache
    cache.admit("a", list(range(12)))
    compute(MODEL, cache, "a", range(6))
    assert cache.match(list(range(12))).blocks.keys() == {0}


def test_14_unwritten_slots_of_nan_never_reach_the_answer():
    engine = engine_of(4)
    completion = engine.generate([[1, 2, 3, 4, 5]], max_new_tokens=3)[0]
    small = PagedEngine(MODEL, 4, 4).generate([[1, 2, 3, 4, 5]], max_new_tokens=3)[0]
    assert completion.tokens == small.tokens


BAD = [
    (dict(prompt=[]), ValueError, "empty"),
    (dict(prompt=[-1]), ValueError, "at least 0, got -1"),
    (dict(prompt=[101]), ValueError, "at most 100, got 101"),
    (dict(prompt=[1.5]), TypeError, "1.5"),
    (dict(prompt=[True]), TypeError, "True"),
    (dict(prompt="text"), TypeError, "tokenizer"),
    (dict(prompt=b"text"), TypeError, "token ids"),
    (dict(prompt=7), TypeError, "sequence"),
    (dict(temperature=float("nan")), ValueError, "temperature .* nan"),
    (dict(temperature=-0.1), ValueError, "temperature .* -0.1"),
    (dict(temperature="hot"), TypeError, "temperature"),
    (dict(top_p=1.5), ValueError, "top_p .* 1.5"),
    (dict(max_new_tokens=-1), ValueError, "max_new_tokens must be at least 1, got -1"),
    (dict(max_new_tokens=0), ValueError, "max_new_tokens must be at least 1, got 0"),
    (dict(max_new_tokens=600), ValueError, "600 new tokens"),
    (dict(seed=-1), ValueError, "seed"),
    (dict(seed=None), TypeError, "seed"),
    (dict(stop_tokens=[500]), ValueError, "stop token .* 500"),
    (dict(stop_tokens=5), TypeError, "stop_tokens must be .* not 5"),
    (dict(salt=3), TypeError, "salt"),
    (dict(request_id="taken"), ValueError, "'taken' is in the engine already"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_21_bad_input_is_one_clear_error_and_changes_nothing(arguments, error, message):
    engine = engine_of(200)
    engine.add([1, 2], request_id="taken", max_new_tokens=4)
    engine.step()
    before = (list(engine.requests), engine.metrics, list(engine.cache.pool.queue))
    with pytest.raises(error, match=message):
        engine.add(arguments.pop("prompt", [1, 2, 3]), **arguments)
    assert (list(engine.requests), engine.metrics, list(engine.cache.pool.queue)) == before
    engine.step()
    check_invariants(engine.cache)


@pytest.mark.parametrize(
    "options",
    [
        dict(num_blocks=0),
        dict(num_blocks=4, block_size=0),
        dict(num_blocks=None),
        dict(num_blocks=4, max_batch_size=0),
        dict(num_blocks=4, max_step_tokens=0),
    ],
)
def test_21_bad_sizes_of_an_engine(options):
    with pytest.raises((TypeError, ValueError), match="must be"):
        PagedEngine(MODEL, **options)


def test_21_one_bad_prompt_in_a_list_starts_none():
    engine = engine_of(40)
    with pytest.raises(ValueError, match="got 101"):
        engine.generate([[1, 2], [101]])
    assert not engine.busy
    with pytest.raises(KeyError, match="nobody"):
        engine.abort("nobody")
