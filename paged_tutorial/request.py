"""A request on its way through the engine, and the completion that comes out."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from .checks import check_integer, check_number, check_tokens
from .page_table import blocks_needed
from .pool import BlockPool


@dataclass(frozen=True)
class Completion:
    """The answer to one request and what it cost. Times in seconds.

    text: None without a tokenizer; finish_reason: "stop", "length" or "aborted"
    cached_tokens: positions found in the pool, at every admission; computed_tokens: positions
    the model ran on, of which recomputed_tokens had been computed before and were lost
    time_to_first_token: None if there is none; time_per_output_token: None for one token
    """

    request_id: Hashable
    prompt_tokens: list[int]
    tokens: list[int]
    text: str | None
    finish_reason: str
    cached_tokens: int
    computed_tokens: int
    recomputed_tokens: int
    preemptions: int
    time_to_first_token: float | None
    time_per_output_token: float | None


@dataclass(eq=False)
class Request:
    """One text that is being continued. Times are in seconds of `time.perf_counter`."""

    request_id: Hashable
    prompt: list[int]
    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop_tokens: frozenset[int] = frozenset()
    salt: str = ""
    adapter: str = ""
    generated: list[int] = field(default_factory=list)
    finish_reason: str | None = None
    cached_tokens: int = 0
    computed_tokens: int = 0
    recomputed_tokens: int = 0
    preemptions: int = 0
    highest_computed: int = 0  # positions below this were computed at least once
    arrival_time: float = field(default_factory=time.perf_counter)
    token_times: list[float] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        """Prompt and generated tokens."""
        return self.prompt + self.generated

    def completion(self, tokenizer) -> Completion:
        """What the caller gets, with the answer as text if there is a tokenizer."""
        times = self.token_times
        first = times[0] - self.arrival_time if times else None
        per_token = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else None
        return Completion(
            self.request_id,
            self.prompt,
            self.generated,
            None if tokenizer is None else tokenizer.decode(self.generated),
            self.finish_reason,
            self.cached_tokens,
            self.computed_tokens,
            self.recomputed_tokens,
            self.preemptions,
            first,
            per_token,
        )


def checked_request(
    request_id: Hashable,
    prompt: Sequence[int],
    max_new_tokens: int,
    temperature: float,
    top_p: float,
    seed: int,
    stop_tokens: Iterable[int],
    salt: str,
    adapter: str,
    vocabulary_size: int,
) -> Request:
    """A new request. Raises TypeError or ValueError that names the bad value and the limit."""
    if isinstance(prompt, str):
        raise TypeError("a prompt as text needs an engine with a tokenizer")
    if not isinstance(stop_tokens, Iterable):
        raise TypeError(f"stop_tokens must be token ids, not {stop_tokens!r}")
    for name, value in (("salt", salt), ("adapter", adapter)):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be text, not {value!r}")
    return Request(
        request_id,
        check_tokens("prompt", prompt, vocabulary_size),
        check_integer("max_new_tokens", max_new_tokens, 1),
        check_number("temperature", temperature, 0),
        check_number("top_p", top_p, 0, 1),
        check_integer("seed", seed, 0),
        frozenset(check_integer("stop token", t, 0, vocabulary_size - 1) for t in stop_tokens),
        salt,
        adapter,
    )


def check_fits(request: Request, context_length: int, pool: BlockPool) -> None:
    """Raise ValueError if a request could never finish, however empty the pool is."""
    wish = f"prompt of {len(request.prompt)} plus {request.max_new_tokens} new tokens needs"
    # The last new token is returned and never looked at again: it needs no slot.
    longest = len(request.prompt) + request.max_new_tokens - 1
    if longest > context_length:
        raise ValueError(f"{wish} {longest} positions; the model's context has {context_length}")
    needed = blocks_needed(longest, pool.block_size)
    if needed > pool.num_blocks:
        raise ValueError(
            f"{wish} {needed} blocks of {pool.block_size}; the pool has {pool.num_blocks}"
        )
