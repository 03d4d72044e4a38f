"""This engine beside Hugging Face transformers: same weights, same machine, same minutes.

    python -m venv peers
    peers/bin/python -m pip install --editable ".[peers]"
    peers/bin/python -m paged_tutorial.peers

In English: each engine lives in a process of its own and is asked in turn, several rounds
long, with a pause before each question, until the threads of the other have gone to sleep.
An engine answers with the moment at which each token was there. A decode step is the gap
between two tokens, prefill the time to the first one. The table shows the median of the
rounds' medians, the ratio of both, and how far the rounds lie apart. Both engines compute in
float32, greedily, on all cores, and neither stops early.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from .weights import GGUF, SMOLLM2, fetch_model

PAUSE = 0.5  # seconds; idle threads of OpenMP and OpenBLAS spin for a while before they sleep
TASKS = (("prefill of 320", 1, 320, 1), *((f"decode, batch {n}", n, 32, 17) for n in (1, 8, 16)))

# (prompts of equal length, number of new tokens) -> seconds until each new token was there
Clocked = Callable[[list[list[int]], int], list[float]]


def paged_tutorial_engine() -> Clocked:
    """This project's engine, as it comes."""
    from . import PagedEngine, load_smollm2

    engine = PagedEngine(load_smollm2(), num_blocks=128)
    salts = itertools.count()  # a salt of its own a question: nothing is found in the cache

    def clocked(prompts: list[list[int]], num_tokens: int) -> list[float]:
        salt = str(next(salts))
        start, stamps = time.perf_counter(), []
        for prompt in prompts:
            engine.add(prompt, max_new_tokens=num_tokens, salt=salt)
        while engine.busy:
            engine.step()
            stamps.append(time.perf_counter() - start)
        return stamps

    return clocked


def transformers_engine() -> Clocked:
    """`generate` of transformers, which reads the same GGUF file."""
    import torch
    from transformers import AutoModelForCausalLM

    folder = fetch_model().parent
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32)

    def clocked(prompts: list[list[int]], num_tokens: int) -> list[float]:
        stamps: list[float] = []

        def stamp(tokens, scores):  # called after every step; nothing is stopped
            stamps.append(time.perf_counter() - start)
            return torch.zeros(len(tokens), dtype=torch.bool)

        tokens = torch.tensor(prompts)
        start = time.perf_counter()
        model.generate(
            tokens,
            attention_mask=torch.ones_like(tokens),
            max_new_tokens=num_tokens,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
            stopping_criteria=[stamp],
        )
        return stamps

    return clocked


ENGINES = {"paged_tutorial": paged_tutorial_engine, "transformers": transformers_engine}


def serve(name: str, pipe) -> None:
    """In a process of its own: answer questions until None comes."""
    clocked = ENGINES[name]()
    while (question := pipe.recv()) is not None:
        time.sleep(PAUSE)
        pipe.send(clocked(*question))


def put_question(pipe, *question) -> list[float]:
    """Put a question to a process and wait for its answer."""
    pipe.send(question)
    return pipe.recv()


def one_round(ask: Callable[..., list[float]], batch_size: int, length: int, count: int) -> float:
    """Tokens per second: of prefill for a single new token, of decoding for more."""
    generator = np.random.default_rng(batch_size)
    shape = (batch_size, length)
    stamps = ask(generator.integers(1000, SMOLLM2.vocabulary_size, shape).tolist(), count)
    if len(stamps) != count:
        raise RuntimeError(f"{count} steps expected, {len(stamps)} came")
    if count == 1:
        return batch_size * length / stamps[0]
    return batch_size / statistics.median(np.diff(stamps))


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    context = multiprocessing.get_context("spawn")
    pipes = {}
    for name in ENGINES:
        pipes[name], theirs = context.Pipe()
        context.Process(target=serve, args=(name, theirs), daemon=True).start()
        theirs.close()  # so that the end of a process is noticed at once

    print(f"{'tokens per second':18}" + "".join(f"{name:>32}" for name in ENGINES) + "   ratio")
    for title, *task in TASKS:
        rates: dict[str, list[float]] = {name: [] for name in ENGINES}
        for number in range(rounds + 1):
            for name, pipe in pipes.items():
                rate = one_round(partial(put_question, pipe), *task)
                if number:  # the first round warms up
                    rates[name].append(rate)
        medians = [statistics.median(rates[name]) for name in ENGINES]
        cells = "".join(
            f"{median:12.1f} ({min(rates[name]):7.1f} to {max(rates[name]):7.1f})"
            for name, median in zip(ENGINES, medians, strict=True)
        )
        print(f"{title:18}{cells}{medians[0] / medians[1]:8.2f}", flush=True)
    for pipe in pipes.values():
        pipe.send(None)


if __name__ == "__main__":
    main()
