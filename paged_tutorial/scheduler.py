"""The scheduler: who runs in the next step, on which positions.

In English: requests that run come first, oldest first. Each gets a block for its new token
if it needs one; if none is free, the newest running request is preempted: it gives all its
blocks back and waits at the head of the line. Then waiting requests are admitted in order,
as long as the blocks and the places in the batch last. After a preemption nobody is
admitted in the same step. A request that waits keeps nothing but its tokens; when it comes
back it looks its blocks up like anybody else, and what is gone is computed again.

The rules are those of vLLM's first-come-first-served scheduler (vllm/v1/core/sched).
"""

from __future__ import annotations

from collections import deque

from .cache import PagedKVCache
from .pool import OutOfBlocksError
from .request import Request
from .trace import Event, Observer


class Scheduler:
    """Decides, step by step, which requests run and which positions are computed.

    max_batch_size: running requests at most
    max_step_tokens: positions computed in one step at most; longer prompts are cut into chunks
    """

    def __init__(
        self,
        cache: PagedKVCache,
        max_batch_size: int,
        max_step_tokens: int | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.cache = cache
        self.max_batch_size = max_batch_size
        self.max_step_tokens = max_step_tokens
        self.observer = observer
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.preemptions = 0

    def schedule(self) -> list[tuple[Request, list[int]]]:
        """The plan of the next step: requests and the positions to compute, ascending."""
        preempted = self._grow_running()
        if not preempted:
            self._admit_waiting()
        return self._share_out()

    def fork(self, parent: Request, child: Request) -> None:
        """Take in a request that continues another's text.

        It runs at once, on the parent's blocks, if those are complete and the batch has a place.
        """
        complete = parent in self.running and not self.cache.missing(parent.request_id)
        if not complete or len(self.running) == self.max_batch_size:
            self.waiting.append(child)
            return
        self.cache.fork(parent.request_id, child.request_id)
        self.running.append(child)
        child.cached_tokens = len(self.cache.holdings[child.request_id].tokens)
        child.highest_computed = child.cached_tokens

    def _grow_running(self) -> bool:
        """Append each running request's newest token to its blocks. True if any had to go."""
        before = self.preemptions
        for request in list(self.running):
            while request in self.running:
                held = len(self.cache.holdings[request.request_id].tokens)
                fresh = request.tokens[held:]
                if not fresh:
                    break
                try:
                    self.cache.extend(request.request_id, fresh)
                except OutOfBlocksError:
                    self._preempt(self.running[-1])
        return self.preemptions > before

    def _preempt(self, request: Request) -> None:
        self.running.remove(request)
        self.cache.release(request.request_id)
        self.waiting.appendleft(request)
        request.preemptions += 1
        self.preemptions += 1
        if self.observer is not None:
            self.observer(Event("preempt", request.request_id))

    def _admit_waiting(self) -> None:
        """Admit in order. Raises OutOfBlocksError if nobody of ours holds what is lacking."""
        while self.waiting and len(self.running) < self.max_batch_size:
            request = self.waiting[0]
            try:
                cached = self.cache.admit(
                    request.request_id, request.tokens, request.salt, request.adapter
                )
            except OutOfBlocksError:
                if not self.running:  # nobody is left who would give blocks back
                    raise
                return
            self.running.append(self.waiting.popleft())
            request.cached_tokens += len(cached)

    def _share_out(self) -> list[tuple[Request, list[int]]]:
        plan = []
        left = self.max_step_tokens
        for request in self.running:
            positions = self.cache.missing(request.request_id)[:left]
            if positions:
                plan.append((request, positions))
            if left is not None:
                left -= len(positions)
        return plan

    def remove(self, request: Request) -> None:
        """Take out a request that is finished or aborted; its blocks go back."""
        if request in self.running:
            self.running.remove(request)
            self.cache.release(request.request_id)
        else:
            self.waiting.remove(request)
