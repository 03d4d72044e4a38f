"""PagedEngine: many requests, one model, one pool of blocks.

In English, a step: the scheduler says which positions of which requests are to be computed.
All of them go through the model in one ragged batch. Every request whose last token was
among them gets a new token; a request that reached its end gives its blocks back at once.

Prefill, decode, a chunk of a long prompt, coming back after preemption and the repair of
evicted blocks are all this one step. They differ only in the positions.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence

from .cache import PagedKVCache
from .checks import check_integer
from .model import Transformer
from .pool import BlockPool, check_arrays
from .recompute import compute_batch
from .request import Completion, Request, check_fits, checked_request
from .sampling import sample
from .scheduler import Scheduler
from .trace import Event, Observer


class PagedEngine:
    """Runs requests on a model with a pool of `num_blocks` blocks.

    pool: your own block pool instead of `num_blocks` and `block_size`
    holes: use resident blocks after a missing one, and compute only the holes
    max_batch_size: requests that run at the same time, at most
    max_step_tokens: positions per step at most, None for any number; longer prompts are
        computed in chunks, which bounds the memory that a step needs beside the pool
    attention: the paged attention function; that of `kernels` unless you give another
    tokenizer: needed for prompts and answers as text
    observer: called with every Event, for instance a Trace

    Raises TypeError or ValueError for a bad argument and for a pool of another model's shape.
    """

    def __init__(
        self,
        model: Transformer,
        num_blocks: int | None = None,
        block_size: int = 16,
        *,
        pool: BlockPool | None = None,
        holes: bool = True,
        max_batch_size: int = 16,
        max_step_tokens: int | None = 512,
        attention=None,
        tokenizer=None,
        observer: Observer | None = None,
    ) -> None:
        config = model.config
        if pool is None:
            pool = BlockPool(
                num_blocks,
                block_size,
                num_layers=config.num_layers,
                num_kv_heads=config.num_kv_heads,
                head_dim=config.head_dim,
                observer=observer,
            )
        check_arrays(pool, config)
        if max_step_tokens is not None:
            check_integer("max_step_tokens", max_step_tokens, 1)
        if attention is None:
            from .kernels import paged_attention as attention  # Numba takes a moment to load
        self.model = model
        self.tokenizer = tokenizer
        self.observer = observer
        self.cache = PagedKVCache(pool, holes=holes, attention=attention, observer=observer)
        self.scheduler = Scheduler(
            self.cache,
            check_integer("max_batch_size", max_batch_size, 1),
            max_step_tokens,
            observer,
        )
        self.requests: dict[Hashable, Request] = {}
        self.completions: dict[Hashable, Completion] = {}
        self._numbers = itertools.count()
        self._totals = dict.fromkeys(
            ("steps", "cached_tokens", "computed_tokens", "recomputed_tokens", "new_tokens"), 0
        )

    # -- requests in -------------------------------------------------------------------

    def add(
        self,
        prompt: str | Sequence[int],
        *,
        request_id: Hashable = None,
        max_new_tokens: int = 64,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        stop_tokens: Iterable[int] | None = None,
        salt: str = "",
        adapter: str = "",
    ) -> Hashable:
        """Put a request in line. Returns its id, a number if none is given.

        Raises TypeError or ValueError (nothing changes) for a bad argument, for a request id
        in use, and for a request that could never fit into the context or into the pool.
        """
        if isinstance(prompt, str) and self.tokenizer is not None:
            prompt = self.tokenizer.encode(prompt)
        if stop_tokens is None:
            stop_tokens = () if self.tokenizer is None else (self.tokenizer.end_of_text,)
        options = (max_new_tokens, temperature, top_p, seed, stop_tokens, salt, adapter)
        request = self._new_request(request_id, prompt, *options)
        self.scheduler.waiting.append(request)
        return request.request_id

    def fork(
        self,
        parent_id: Hashable,
        *,
        request_id: Hashable = None,
        max_new_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Hashable:
        """Continue a request's text, as far as it has come, in a second one. Returns its id.

        Options not given are the parent's; `max_new_tokens` counts what the child inherits.
        The child shares the parent's blocks, and whoever writes first copies the last one. If
        the parent does not run just now, or the batch is full, the child waits like anybody.
        Raises KeyError for an unknown parent, else as `add`; nothing changes.
        """
        if parent_id not in self.requests:
            raise KeyError(f"request {parent_id!r} is not in the engine")
        parent = self.requests[parent_id]
        inherited = len(parent.generated)
        if max_new_tokens is not None:
            check_integer("max_new_tokens", max_new_tokens, inherited + 1)
        child = self._new_request(
            request_id,
            parent.prompt,
            parent.max_new_tokens if max_new_tokens is None else max_new_tokens,
            parent.temperature if temperature is None else temperature,
            parent.top_p if top_p is None else top_p,
            parent.seed if seed is None else seed,
            parent.stop_tokens,
            parent.salt,
            parent.adapter,
        )
        child.generated.extend(parent.generated)
        self.scheduler.fork(parent, child)
        return child.request_id

    def _new_request(self, request_id: Hashable, prompt: Sequence[int], *options) -> Request:
        if request_id is None:
            known = self.requests, self.completions
            request_id = next(n for n in self._numbers if all(n not in ids for ids in known))
        if request_id in self.requests:
            raise ValueError(f"request {request_id!r} is in the engine already")
        request = checked_request(request_id, prompt, *options, self.model.config.vocabulary_size)
        check_fits(request, self.model.config.context_length, self.cache.pool)
        self.completions.pop(request_id, None)
        self.requests[request_id] = request
        return request

    # -- work --------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether any request waits or runs."""
        return bool(self.requests)

    def step(self) -> list[tuple[Hashable, int]]:
        """Run the model once. Returns (request id, new token) of each request that got one."""
        plan = self.scheduler.schedule()
        if not plan:
            return []
        for request, positions in plan:
            self._count(request, positions)
        complete = [
            index
            for index, (request, positions) in enumerate(plan)
            if positions[-1] == len(request.prompt) + len(request.generated) - 1
        ]
        positions_by_id = [(request.request_id, positions) for request, positions in plan]
        logits = compute_batch(self.model, self.cache, positions_by_id, wanted=complete)
        self._totals["steps"] += 1
        return [
            self._append_token(plan[index][0], row)
            for index, row in zip(complete, logits, strict=True)
        ]

    def _count(self, request: Request, positions: list[int]) -> None:
        lost = self.cache.lost_positions(request.request_id)
        again = sum(p < request.highest_computed or p in lost for p in positions)
        request.computed_tokens += len(positions)
        request.recomputed_tokens += again
        request.highest_computed = max(request.highest_computed, positions[-1] + 1)
        if self.observer is not None:
            if again:
                self.observer(Event("recompute", request.request_id, tokens=again))
            if again < len(positions):
                fresh = len(positions) - again
                self.observer(Event("compute", request.request_id, tokens=fresh))

    def _append_token(self, request: Request, logits) -> tuple[Hashable, int]:
        token = sample(
            logits,
            request.temperature,
            request.top_p,
            request.seed,
            len(request.prompt) + len(request.generated),
        )
        request.generated.append(token)
        request.token_times.append(time.perf_counter())
        if self.observer is not None:
            self.observer(Event("token", request.request_id, tokens=token))
        if token in request.stop_tokens:
            self._finish(request, "stop")
        elif len(request.generated) == request.max_new_tokens:
            self._finish(request, "length")
        return request.request_id, token

    def abort(self, request_id: Hashable) -> Completion:
        """End a request now and release its blocks. Raises KeyError if there is none."""
        if request_id not in self.requests:
            raise KeyError(f"request {request_id!r} is not in the engine")
        return self._finish(self.requests[request_id], "aborted")

    def _finish(self, request: Request, reason: str) -> Completion:
        self.scheduler.remove(request)
        del self.requests[request.request_id]
        request.finish_reason = reason
        if self.observer is not None:
            self.observer(Event("finish", request.request_id))
        for name in ("cached_tokens", "computed_tokens", "recomputed_tokens"):
            self._totals[name] += getattr(request, name)
        self._totals["new_tokens"] += len(request.generated)
        completion = request.completion(self.tokenizer)
        self.completions[request.request_id] = completion
        return completion

    # -- answers out -------------------------------------------------------------------

    def generate(
        self, prompts: Sequence[str | Sequence[int]], *, progress: bool = False, **options
    ) -> list[Completion]:
        """Run several prompts to their end, together. Options are those of `add`.

        Raises ValueError for an empty list, and whatever `add` raises, before anything runs.
        """
        if isinstance(prompts, str) or not len(prompts):
            raise ValueError(f"prompts must be a list of at least 1 prompt, got {prompts!r}")
        if isinstance(options.get("stop_tokens"), Iterator):  # every prompt needs them anew
            options["stop_tokens"] = list(options["stop_tokens"])
        added: list[Hashable] = []
        try:
            for prompt in prompts:
                added.append(self.add(prompt, **options))
            with self._progress_bar(len(added), progress) as bar:
                while left := sum(request_id in self.requests for request_id in added):
                    bar.update(len(added) - left - bar.n)
                    self.step()
                bar.update(len(added) - bar.n)
        finally:
            for request_id in added:
                if request_id in self.requests:
                    self.abort(request_id)
            answers = [self.completions.pop(request_id) for request_id in added]
        return answers

    @staticmethod
    def _progress_bar(total: int, visible: bool):
        from tqdm.auto import tqdm

        return tqdm(total=total, unit="answer", disable=not visible)

    def stream(self, prompt: str | Sequence[int], **options) -> Iterator[str | int]:
        """Run one prompt and yield each new piece of text, or each token without a tokenizer.

        Leaving the loop early aborts the request. Several streams may take turns.
        """
        request_id = self.add(prompt, **options)
        request = self.requests[request_id]
        told, written, over = 0, "", False
        try:
            while not over:
                if request.finish_reason is None:
                    self.step()
                over = request.finish_reason is not None
                # Steps that somebody else ran since the last one may have brought tokens too.
                fresh, told = request.generated[told:], len(request.generated)
                if self.tokenizer is None:
                    yield from fresh
                elif fresh or over:
                    text = self.tokenizer.decode(request.generated)
                    # A character may take several tokens: wait until it is whole, or all is over.
                    whole = not text.endswith("\N{REPLACEMENT CHARACTER}")
                    if (whole or over) and text != written:
                        yield text[len(written) :]
                        written = text
        finally:
            if self.requests.get(request_id) is request:
                self.abort(request_id)
            if options.get("request_id") is None:  # nobody knows the number to ask for it
                self.completions.pop(request_id, None)

    @property
    def metrics(self) -> dict[str, int]:
        """Totals over finished requests, and the state of the pool."""
        return {
            **self._totals,
            "preemptions": self.scheduler.preemptions,
            **self.cache.stats,
        }
