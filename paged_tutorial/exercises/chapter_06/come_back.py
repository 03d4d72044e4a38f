"""Exercise 6.4: bring a chat back on SmolLM2."""

from __future__ import annotations

import functools

import numpy as np

from paged_tutorial import BlockPool, DenseKV, OutOfBlocksError, PagedKVCache, fill, random_model

from .. import answers_06 as answers
from ..exercise import Exercise, Mutant
from ..play import NO_ACCIDENT, Broken, Case, Outcome, Play, require_function
from ..smollm2 import smollm2
from ..telling import advice_on, message_of

ADMITTED = "In the end the request is admitted, and none of its positions is missing."
STEP = "No pass of the model takes more than step_tokens positions."
FEW = "The passes are as few as step_tokens allows."
FRONT = "Positions are computed from the front, since each rests on all before it."
EXACTLY = "The model runs on the missing positions, each once, and on no other."
AS_COLD = "Returned are the logits at the last token, as if the text had been computed cold."
FULL = "With too few free blocks: OutOfBlocksError, nothing admitted, and no pass of the model."


# Seconds on a busy machine. A loop that never ends shows with the tiny model, which comes first.
PATIENCE = {"tiny": 2.0, "SmolLM2": 120.0}
SYSTEM = "You are a helpful teacher. Answer in one short sentence."


class WatchedModel:
    """A model that notes the positions of each pass."""

    def __init__(self, model) -> None:
        self.model, self.config, self.passes = model, model.config, []

    def forward(self, tokens, positions, kv, rows=None):
        """As always, and noted."""
        self.passes.append([int(position) for position in positions])
        return self.model.forward(tokens, positions, kv, rows)


class ComeBackPlay(Play):
    """A chat in a real cache, some of its blocks evicted, comes back."""

    whose = "The"

    def begin(self, name: str, lost: tuple, step_tokens: int, crowded: bool = False) -> None:
        """lost: logical blocks; crowded: somebody else holds the free blocks."""
        self.wait(max(PATIENCE.values()))  # to make the chat takes the longest
        model, tokens, size, wanted = _chat(name)
        cache = self.subject = _cache_without(name, lost, crowded)
        watched = WatchedModel(model)
        must_fail = not cache.can_admit(tokens)
        missing = self._missing(cache, tokens)
        # Not the same name each time, or an answer could do without it.
        who = "A" if step_tokens > 2 else "C"
        text = f"logits = {self.name}(model, cache, {who!r}, tokens, step_tokens={step_tokens})"
        text += f"  # {name}: {len(tokens)} tokens, blocks of {size}, lost {list(lost)}"
        with np.errstate(invalid="ignore"):
            given = watched, cache, who, list(tokens), step_tokens
            outcome = self.run(text, self.thing, *given, seconds=PATIENCE[name])
        if must_fail:
            outcome.raised(OutOfBlocksError, FULL)
            clean = who not in cache.holdings and not watched.passes
            came = f"admitted: {who in cache.holdings}, passes: {len(watched.passes)}"
            self.require(clean, FULL, "admitted: False, passes: 0", came)
            return
        outcome.returned("logits", self._rule(outcome.error))
        self._passes(watched.passes, missing, step_tokens)
        left = cache.holdings[who].missing if who in cache.holdings else None
        came = "it is not admitted" if left is None else f"{len(left)} are missing"
        self.require(left is not None and not left, ADMITTED, "none is missing", came)
        self._logits(outcome, wanted)

    @staticmethod
    def _rule(error) -> str:
        """Which rule an exception tells of; a batch refuses with ValueError."""
        if isinstance(error, ValueError) and "is not missing" in message_of(error):
            return EXACTLY
        refused = isinstance(error, ValueError) and "cannot be next" in message_of(error)
        return FRONT if refused else NO_ACCIDENT

    @staticmethod
    def _missing(cache, tokens) -> list[int]:
        found, size = cache.match(tokens).blocks, cache.block_size
        return [p for p in range(len(tokens)) if p // size not in found]

    def _passes(self, passes, missing, step_tokens) -> None:
        longest = max(map(len, passes), default=0)
        said = f"{step_tokens} at most"
        self.require(longest <= step_tokens, STEP, said, f"a pass over {longest}")
        ran = [position for one in passes for position in one]
        if len(ran) < len(missing):
            left = len(missing) - len(ran)
            self.require(False, ADMITTED, "none is missing", f"{left} were not computed")
        self.require(ran == missing, EXACTLY, f"positions {missing}", f"positions {ran}")
        fewest = -(-len(missing) // step_tokens)
        said = f"{fewest} pass{'es' * (fewest > 1)}"
        self.require(len(passes) == fewest, FEW, said, f"{len(passes)} passes")

    def _logits(self, outcome: Outcome, wanted) -> None:
        value = outcome.value
        expected = f"logits of shape {wanted.shape}, the highest that of token {wanted.argmax()}"
        if getattr(value, "shape", None) != wanted.shape:
            shape = getattr(value, "shape", None)
            came = outcome.came() if shape is None else f"shape {shape}"
            raise Broken(AS_COLD, expected, came, advice_on(value))
        off = float(np.abs(value - wanted).max())
        came = f"token {value.argmax()}, logits off by up to {off:.2f}"
        self.require(off < 0.05, AS_COLD, expected, came)


@functools.cache
def _chat(name: str):
    """(model, tokens, block size, logits at the last token)"""
    if name == "tiny":
        model, tokens, size = random_model(), [(37 * p + 11) % 101 for p in range(11)], 2
    else:
        model, tokenizer = smollm2()
        said = "What is the capital of France?", "The capital of France is Paris."
        tokens, size = tokenizer.chat(*said, "And of Italy?", system=SYSTEM), 8
    memory, positions = DenseKV(model.config, len(tokens)), np.arange(len(tokens))
    return model, tokens, size, model.forward(tokens, positions, memory.at(positions), [-1])[0]


@functools.cache
def _computed(name: str):
    """(keys, values) of the chat in blocks 0, 1, 2, … of a pool with twice the room."""
    cache = _empty_cache(name)
    cache.admit("before", _chat(name)[1])
    fill(_chat(name)[0], cache, "before")
    return cache.pool.keys.copy(), cache.pool.values.copy()


def _empty_cache(name: str) -> PagedKVCache:
    model, tokens, size, _ = _chat(name)
    config = model.config
    shape = dict(
        num_layers=config.num_layers, num_kv_heads=config.num_kv_heads, head_dim=config.head_dim
    )
    return PagedKVCache(BlockPool(2 * -(-len(tokens) // size), size, **shape))


def _cache_without(name: str, lost, crowded: bool) -> PagedKVCache:
    """The chat is idle, some of its blocks are evicted; what they held is NaN."""
    cache, tokens = _empty_cache(name), _chat(name)[1]
    cache.pool.keys[:], cache.pool.values[:] = _computed(name)
    cache.admit("before", tokens)
    blocks = list(cache.holdings["before"].table.block_ids)
    cache.commit("before", cache.missing("before"))
    cache.release("before")
    for logical in lost:
        cache.evict(blocks[logical])
        cache.pool.keys[:, blocks[logical]] = np.nan
        cache.pool.values[:, blocks[logical]] = np.nan
    if crowded:  # somebody else takes all blocks but one, those of the chat aside
        others = cache.pool.num_free - len(blocks) + len(lost) - 1
        cache.admit("B", [2**40 + n for n in range(others * cache.block_size)])
        cache.commit("B", cache.missing("B"))
    return cache


def come_back_cases():
    """Few positions, then chunks, then too little room, then SmolLM2."""
    yield Case(("tiny", (), 100))
    yield Case(("tiny", (2,), 100))
    yield Case(("tiny", (2,), 2))
    for lost in ((0,), (0, 2), (1, 3, 4), (0, 1, 2, 3, 4)):
        for step_tokens in (1, 2, 3, 100):
            yield Case(("tiny", lost, step_tokens))
    yield Case(("tiny", (0, 1, 2), 3, True))
    yield Case(("SmolLM2", (0, 3, 4), 16))


COME_BACK = Exercise(
    id="6.4",
    title="Bring a chat back on SmolLM2",
    minutes=15,
    difficulty=3,
    stub='''
def come_back(model, cache, request_id, tokens, step_tokens):
    """Admit a chat and compute what is missing. Returns the logits at its last token.

    cache: a PagedKVCache. cache.admit(request_id, tokens) looks the blocks up and takes new
    ones for the rest; cache.missing(request_id) are the positions to compute.
    step_tokens: positions in one pass of the model, at most; and no more passes than needed.
    compute(model, cache, request_id, positions) makes one pass and returns the last logits.

    Without room for the chat, cache.admit raises OutOfBlocksError, and so does this.
    """
    raise NotImplementedError
''',
    hints=(
        "Admit, then loop while anything is missing. `cache.missing` shrinks as you compute.",
        "`cache.missing(request_id)[:step_tokens]` are the next positions, in ascending order.",
        "Return what the last `compute` returned. If `admit` raises, let it: it has left "
        "everything as it was.",
    ),
    solution=answers.come_back,
    require=lambda thing: require_function(
        thing, "model", "cache", "request_id", "tokens", "step_tokens"
    ),
    play=ComeBackPlay,
    cases=come_back_cases,
    insight="SmolLM2 came back on your function with three of its blocks gone, 16 positions a "
    "pass, and its next word is that of the cold run. A first prompt takes the same way, with "
    "everything missing, and so does a new token, with one position: that is the engine of "
    "chapter 7.",
    mutants=(
        Mutant("all in one pass", "more than step_tokens", "missing[:step_tokens]", "missing"),
        Mutant("one pass only", "none of its positions", "while missing :=", "if missing :="),
        Mutant(
            "the last ones first",
            "from the front",
            "missing[:step_tokens]",
            "missing[-step_tokens:]",
        ),
        Mutant(
            "missing or not",
            "each once, and on no other",
            "missing[:step_tokens]",
            "list(range(len(tokens)))[:step_tokens]",
        ),
        Mutant(
            "what is missing is never looked up again",
            "comes to an end",
            "    while missing := cache.missing(request_id):",
            "    missing = cache.missing(request_id)[:]\n    while cache.missing(request_id):\n"
            "        cache.missing(request_id)\n        if not missing[step_tokens:]: continue",
        ),
        Mutant("one position at a time", "as few as", "missing[:step_tokens]", "missing[:1]"),
        Mutant(
            "everything again",
            "each once, and on no other",
            "    cache.admit(request_id, tokens)",
            "    cache.drop_all() if not cache.holdings else None\n"
            "    cache.admit(request_id, tokens)",
        ),
        Mutant(
            "given back at once",
            "is admitted",
            "    return logits",
            "    cache.release(request_id)\n    return logits",
        ),
        Mutant(
            "the token instead of the logits", "as if", "return logits", "return logits.argmax()"
        ),
        Mutant(
            "the error is swallowed",
            "too few free blocks",
            "    cache.admit(request_id, tokens)",
            "    try:\n        cache.admit(request_id, tokens)\n"
            "    except Exception:\n        return None",
        ),
    ),
    alternatives=(answers.come_back_by_hand,),
)
