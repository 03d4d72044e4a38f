"""SmolLM2 for the checks that run a reader's answer under the real model."""

from __future__ import annotations

from collections.abc import Sequence

from paged_tutorial import ModelFileError, PagedEngine, Tokenizer, Transformer, load_smollm2

from .play import Unusable

LONG = 120.0  # seconds for a model on a busy machine


def smollm2() -> tuple[Transformer, Tokenizer]:
    """The model and its tokenizer. Raises Unusable, which says what to do, if there is none."""
    try:
        return load_smollm2(), Tokenizer()
    except ModelFileError as problem:
        raise Unusable(str(problem)) from None


def new_tokens_of(
    engine: PagedEngine, prompts: Sequence[Sequence[int]], number: int
) -> list[list[int]]:
    """The tokens that the engine says to each prompt: so many, stop tokens or not."""
    answers = engine.generate(prompts, max_new_tokens=number, stop_tokens=())
    return [answer.tokens for answer in answers]
