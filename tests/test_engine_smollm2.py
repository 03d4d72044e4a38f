"""The engine on the real model: small pools, any schedule, the answers of a cold engine."""

import json
import random
import subprocess
import sys
from functools import cache

import pytest

from paged_tutorial import PagedEngine, Tokenizer, check_invariants, load_smollm2

from helpers import nan_pool

QUESTIONS = [
    "What is the capital of France?",
    "Name three fruits.",
    "What is two plus two?",
    "Say hello in Spanish.",
]


def test_sixteen_requests_on_a_small_pool_answer_as_if_alone():
    model, tokenizer = load_smollm2(), Tokenizer()
    prompts = [
        tokenizer.chat(question, system=system)
        for system in (None, "Answer briefly.", "You are a friendly teacher.", "Be exact.")
        for question in QUESTIONS
    ]
    engine = PagedEngine(model, 24, 16, tokenizer=tokenizer)
    completions = engine.generate(prompts, max_new_tokens=16)
    assert engine.metrics["preemptions"] > 0
    assert engine.metrics["evictions"] > 0
    check_invariants(engine.cache)
    for prompt, completion in zip(prompts, completions, strict=True):
        cold = PagedEngine(model, 24, 16, tokenizer=tokenizer)
        assert cold.generate([prompt], max_new_tokens=16)[0].tokens == completion.tokens
    assert completions[0].text == "The capital of France is Paris."


def test_text_streams_in_whole_characters():
    model, tokenizer = load_smollm2(), Tokenizer()
    engine = PagedEngine(model, 24, tokenizer=tokenizer)
    prompt = tokenizer.chat("What is the capital of France?")
    pieces = list(engine.stream(prompt, max_new_tokens=12))
    assert len(pieces) > 3
    assert "".join(pieces) == "The capital of France is Paris."


# Short questions whose greedy answers never come near a tie.
SURE = ["What is the capital of France?", "What is the capital of Italy?", "What is 2+2?"]
TEACHER = "You are a helpful teacher. Answer in one short sentence."
NEW_TOKENS = 6


@cache
def alone(question):
    """(prompt, greedy tokens of the question on a cold engine)."""
    model, tokenizer = load_smollm2(), Tokenizer()
    prompt = tokenizer.chat(question, system=TEACHER)
    [answer] = PagedEngine(model, 32, 4, tokenizer=tokenizer).generate(
        [prompt], max_new_tokens=NEW_TOKENS
    )
    return prompt, answer.tokens


@pytest.mark.parametrize("seed", range(20))
def test_random_schedules_give_the_cold_answers(seed):
    """Arrivals, forks, aborts, evictions of idle blocks and chunks at random; a pool of NaN."""
    luck = random.Random(seed)
    model = load_smollm2()
    block_size = luck.choice([3, 4, 8, 16])
    longest = max(len(prompt) for prompt, _ in map(alone, SURE)) + NEW_TOKENS
    engine = PagedEngine(
        model,
        pool=nan_pool(model, -(-longest // block_size) + luck.randrange(8), block_size),
        holes=luck.random() < 0.7,
        max_batch_size=luck.randint(2, 5),
        max_step_tokens=luck.choice([None, 7, 30]),
        tokenizer=Tokenizer(),
    )
    arriving = [luck.choice(SURE) for _ in range(4)]
    asked, aborted = {}, set()
    while arriving or engine.busy:
        if arriving and (not engine.busy or luck.random() < 0.4):
            question = arriving.pop()
            asked[engine.add(alone(question)[0], max_new_tokens=NEW_TOKENS)] = question
        engine.step()
        for block_id, count in enumerate(engine.cache.pool.reference_counts):
            named = engine.cache.index.name_of[block_id] is not None
            if named and not count and luck.random() < 0.2:
                engine.cache.evict(block_id)
        if engine.requests and luck.random() < 0.1:
            chosen = luck.choice(sorted(engine.requests))
            if luck.random() < 0.5 and len(asked) < 6:
                asked[engine.fork(chosen)] = asked[chosen]
            else:
                engine.abort(chosen)
                aborted.add(chosen)
        check_invariants(engine.cache)
    assert engine.cache.pool.num_free == engine.cache.pool.num_blocks
    for number, question in asked.items():
        tokens, expected = engine.completions[number].tokens, alone(question)[1]
        assert tokens == (expected[: len(tokens)] if number in aborted else expected)


def test_a_seed_gives_the_same_text_alone_and_in_a_batch_of_sixteen():
    model, tokenizer = load_smollm2(), Tokenizer()
    options = dict(temperature=0.8, top_p=0.9, max_new_tokens=8)
    prompts = [tokenizer.chat(question) for question in QUESTIONS]
    engine = PagedEngine(model, 80, tokenizer=tokenizer)
    numbers = {
        (seed, tuple(prompt)): engine.add(prompt, seed=seed, **options)
        for seed in range(4)
        for prompt in prompts
    }
    while engine.busy:
        engine.step()
    for (seed, prompt), number in list(numbers.items())[::3]:
        single = PagedEngine(model, 80, tokenizer=tokenizer)
        [answer] = single.generate([prompt], seed=seed, **options)
        assert engine.completions[number].text == answer.text
    assert len({engine.completions[number].text for number in numbers.values()}) > len(prompts)


PEAK = """
import json, re, resource, sys
from pathlib import Path
import numpy as np
from paged_tutorial import PagedEngine, load_smollm2

model = load_smollm2()
engine = PagedEngine(model, 220)
random = np.random.default_rng(0)
engine.generate(random.integers(3, 49152, (8, 400)).tolist(), max_new_tokens=4)
if sys.platform == "linux":  # what getrusage says there includes the process that started this one
    status = Path("/proc/self/status").read_text()
    peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1])
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "peak": peak,
    "weights": sum(weight.nbytes for weight in model.weights.values()),
    "pool": engine.cache.pool.keys.nbytes + engine.cache.pool.values.nbytes,
}))
"""


def test_memory_stays_within_weights_pool_and_300_megabytes():
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, check=True)
    used = json.loads(done.stdout)
    beyond = used["peak"] - used["weights"] - used["pool"]
    print(f"beyond weights and pool: {beyond / 1e6:.0f} MB")
    assert beyond < 300e6
