"""The exercises of chapter 6: recompute."""

from __future__ import annotations

import functools
from itertools import chain, combinations

import numpy as np

from paged_tutorial import (
    BlockPool,
    DenseKV,
    OutOfBlocksError,
    PagedKVCache,
    fill,
    random_model,
)

from ..block_traces import conversations
from ..cost_replay import replay_cost
from ..restore_cost import relative_cost
from ..shapes import SHAPES
from . import answers_06 as answers
from .chapter_04 import PolicyPlay, policy_cases, require_policy
from .exercise import Exercise, Mutant
from .play import (
    NO_ACCIDENT,
    Broken,
    Case,
    Outcome,
    Play,
    Unattempted,
    require_function,
)
from .smollm2 import smollm2
from .telling import advice_on, message_of


def subsets(number: int):
    """All sets of numbers below `number`, small ones first."""
    every = range(number)
    return chain.from_iterable(combinations(every, size) for size in range(number + 1))


# -- 6.1 ----------------------------------------------------------------------------------

MISSING = "A position whose block is not in the pool must be computed."
PRESENT = "A position whose block is in the pool is read, and not computed."
LAST = "The block of the last token is always computed: without a query there is no answer."
PREFIX = "With holes=False everything from the first missing position on is computed."
ASCENDING = "The positions come in ascending order, each once."


class ToComputePlay(Play):
    """One call; the truth position by position."""

    def begin(self, num_tokens: int, block_size: int, resident: tuple, *holes: bool) -> None:
        """resident: logical blocks, all of them full; holes: left out, or one truth value."""
        said = f", holes={holes[0]}" if holes else ""
        text = f"{self.name}({num_tokens}, {block_size}, {set(resident) or 'set()'}{said})"
        given, holes = holes, all(holes)
        last = (num_tokens - 1) // block_size
        missing = [p for p in range(num_tokens) if p // block_size not in {*resident} - {last}]
        wanted = missing if holes else list(range(missing[0], num_tokens))
        outcome = self.run(text, self.thing, num_tokens, block_size, set(resident), *given)
        found = outcome.list_of_integers(ASCENDING, str(wanted))
        rule = self._rule(found, wanted, missing, last, block_size, holes)
        self.require(found == wanted, rule, wanted, found)

    @staticmethod
    def _rule(found, wanted, missing, last, block_size, holes) -> str:
        """Which rule a wrong list breaks."""
        lacking, more = {*wanted} - {*found}, {*found} - {*wanted}
        if not lacking and not more:
            return ASCENDING
        if any(position // block_size == last for position in lacking):
            return LAST
        if lacking & {*missing}:
            return MISSING
        return PRESENT if more or holes else PREFIX


def to_compute_cases():
    """All sets of resident blocks of short texts, with holes and without."""
    for holes in (True, False):
        for num_tokens, block_size in ((1, 2), (2, 2), (3, 2), (4, 2), (6, 2), (7, 2), (9, 3)):
            for resident in subsets(num_tokens // block_size):
                yield Case((num_tokens, block_size, resident, holes))
    yield Case((6, 2, (1,)))


TO_COMPUTE = Exercise(
    id="6.1",
    title="What must be computed?",
    minutes=8,
    difficulty=1,
    stub='''
def to_compute(num_tokens, block_size, resident, holes=True):
    """The positions of a text that the model must run on, in ascending order.

    resident: the set of the logical blocks that are in the pool; all of them are full
    holes: with False, nothing behind the first missing position is used

    The last token is always computed, and with it its whole block: somebody else may hold
    that block too, and a slot that is shared is never written.
    """
    raise NotImplementedError
''',
    hints=(
        "Position p lies in block p // block_size. Which block does the last token lie in? Take "
        "it out of `resident` first.",
        "With holes it is one list comprehension over all positions.",
        "Without holes: find the first position that is missing. All from there on are computed. "
        "There always is one, since the last token's block counts as missing.",
    ),
    solution=answers.to_compute,
    require=lambda thing: require_function(thing, "num_tokens", "block_size", "resident", "holes"),
    play=ToComputePlay,
    cases=to_compute_cases,
    insight="Without holes a text is worth what stands before the first gap, however much lies "
    "behind it. `cache.missing` gives this list; the next question is how to compute it.",
    mutants=(
        Mutant("a resident last block is used", "last token", " and block != last_block", ""),
        Mutant(
            "only the last token",
            "last token",
            "last_block = (num_tokens - 1) // block_size",
            "last_block = num_tokens // block_size",
        ),
        Mutant("holes are filled either way", "holes=False", "(holes or complete)", "True"),
        Mutant("never with holes", "read, and not", "(holes or complete)", "complete"),
        Mutant(
            "the ones that are there",
            "last token",
            "append(position)",
            "append(position) if found else None",
        ),
        Mutant("blocks instead of positions", "last token", "append(position)", "append(block)"),
        Mutant("no holes by default", "read, and not", "holes=True", "holes=False"),
        Mutant("from the back", "ascending", "return positions", "return positions[::-1]"),
        Mutant("no return", "ascending", "return positions", "positions"),
    ),
    alternatives=(answers.to_compute_by_blocks,),
)

# -- 6.2 ----------------------------------------------------------------------------------

ALL_OF_THEM = "Afterwards no missing position is left."
NOTHING_ELSE = "Only missing positions are computed: the others are read."
RIGHT_TOKEN = "At position p the model runs on tokens[p]."
ORIGINAL = "Each token is computed at its own position in the text."
RESTS = "A position rests on all before it: those must be there before it attends."
LAST_LOGITS = "Returned are the logits at the last missing position, (vocabulary_size,)."
NUMBERS = 1e-3  # the model's numbers have size 1; the mistakes to be found are far larger


@functools.cache
def _tiny():
    return random_model()


@functools.cache
def _cold(length: int):
    """(tokens, memory, logits of all positions) of a text computed in one pass."""
    tokens = [(37 * position + 11) % 101 for position in range(length)]
    memory, positions = DenseKV(_tiny().config, length), np.arange(length)
    return tokens, memory, _tiny().forward(tokens, positions, memory.at(positions))


class WatchedKV(DenseKV):
    """A memory with some positions lost, which notes the positions that are written."""

    def __init__(self, whole: DenseKV, missing) -> None:
        super().__init__(_tiny().config, whole.keys.shape[1])
        self.keys[:], self.values[:] = whole.keys, whole.values
        self.keys[:, missing] = self.values[:, missing] = np.nan
        self.written: list[int] = []

    def write(self, layer: int, keys, values) -> None:
        """As always, and noted."""
        super().write(layer, keys, values)
        self.written += self.positions.tolist()


class RepairPlay(Play):
    """One repair; keys and values of all layers against those of a cold run."""

    def begin(self, length: int, missing: tuple[int, ...]) -> None:
        """Lose some positions of a text, and let the reader bring them back."""
        tokens, whole, logits = _cold(length)
        missing = list(missing)
        memory = WatchedKV(whole, missing)
        text = f"logits = {self.name}(model, tokens, missing={missing}, memory)"
        text += f"  # {length} token{'s' * (length > 1)}"
        with np.errstate(all="ignore"):
            outcome = self.run(text, self.thing, _tiny(), list(tokens), list(missing), memory)
        outcome.returned("logits")
        other = sorted(set(memory.written) - {*missing})
        self.require(not other, NOTHING_ELSE, f"positions {missing}", f"also positions {other}")
        left = sorted({*missing} - set(memory.written))
        self.require(not left, ALL_OF_THEM, f"positions {missing}", f"{left} are still missing")
        self._compare(memory, whole, missing)
        self._logits(outcome, logits[missing[-1]])

    def _compare(self, memory, whole, missing) -> None:
        """Layer by layer: in the first one only tokens and positions can be wrong."""
        for rule, layers, found, wanted in (
            (RIGHT_TOKEN, slice(0, 1), memory.values, whole.values),
            (ORIGINAL, slice(0, 1), memory.keys, whole.keys),
            (RESTS, slice(1, None), memory.values, whole.values),
        ):
            for position in missing:
                pair = found[layers, position], wanted[layers, position]
                with np.errstate(invalid="ignore"):
                    off = float(np.abs(pair[0] - pair[1]).max())
                where = f"at position {position} the keys and values of the cold run"
                came = "NaN" if np.isnan(off) else f"numbers that are off by up to {off:.2f}"
                self.require(off < NUMBERS, rule, where, came)

    def _logits(self, outcome: Outcome, wanted) -> None:
        value = outcome.value
        shape = getattr(value, "shape", None)
        expected = f"logits of shape {wanted.shape}, as in the cold run"
        if shape != wanted.shape:
            came = outcome.came() if shape is None else f"shape {shape}"
            raise Broken(LAST_LOGITS, expected, came, advice_on(value))
        off = float(np.abs(value - wanted).max())
        self.require(off < NUMBERS, LAST_LOGITS, expected, f"off by up to {off:.2f}")


def repair_cases():
    """One missing position, two of them, blocks of two, then all patterns of a short text."""
    yield Case((1, (0,)))
    yield Case((2, (1,)))
    yield Case((3, (0, 1)))
    yield Case((3, (1, 2)))
    for missing in subsets(5):
        if missing:
            yield Case((5, missing))
    yield Case((24, (4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23)))


REPAIR_STUB = '''
def repair(model, tokens, missing, memory):
    """Compute the missing positions of a text in one pass. The logits at the last of them."""
    lost = [tokens[position] for position in missing]
    logits = model.forward(lost, range(len(lost)), memory.at(missing))
    return logits[-1]
'''


def require_other_than_planted(thing) -> None:
    """A function, and not the one with the planted bug."""
    require_function(thing, "model", "tokens", "missing", "memory")
    names: dict[str, object] = {}
    exec(REPAIR_STUB, {}, names)
    code, planted = getattr(thing, "__code__", None), names["repair"].__code__
    if code is not None and (code.co_code, code.co_names) == (planted.co_code, planted.co_names):
        raise Unattempted("`repair` is as it was planted: some repaired chats answer wrongly.")


REPAIR = Exercise(
    id="6.2",
    title="Find the bug: a repair that passes its test",
    minutes=8,
    difficulty=2,
    stub=REPAIR_STUB,
    hints=(
        "Which blocks can be lost and repaired without harm? Print the verdict for each. What "
        "is special about the one that comes out right?",
        "The keys are turned by an angle that depends on the position. By which angle is the key "
        "of the token at position 24 turned here?",
        "`model.forward` wants the positions in the text, and they stand in `missing`.",
    ),
    solution=answers.repair,
    require=require_other_than_planted,
    play=RepairPlay,
    cases=repair_cases,
    insight="The test lost the beginning, where counting from 0 happens to be right. Test holes "
    "in the middle. An engine that restarts a request at the wrong position has this very bug, "
    "and it shows as a model that has become a little stupid.",
    mutants=(
        Mutant(
            "the first tokens of the text",
            "runs on tokens[p]",
            "lost = [tokens[position] for position in missing]",
            "lost = tokens[: len(missing)]",
        ),
        Mutant(
            "renumbered from the first missing one",
            "own position",
            "forward(lost, missing,",
            "forward(lost, range(missing[0], missing[0] + len(lost)),",
        ),
        Mutant(
            "one at a time, from the back",
            "rests on all before",
            "    logits = model.forward(lost, missing, memory.at(missing))\n    return logits[-1]",
            "    done = [model.forward([t], [p], memory.at([p])) for t, p in "
            "zip(lost[::-1], missing[::-1])]\n    return done[0][0]",
        ),
        Mutant(
            "the whole text again",
            "the others are read",
            "    logits = model.forward(lost, missing, memory.at(missing))",
            "    every = range(len(tokens))\n"
            "    logits = model.forward(tokens, every, memory.at(every))",
        ),
        Mutant(
            "only the first",
            "is left",
            "    logits = model.forward(lost, missing, memory.at(missing))",
            "    logits = model.forward(lost[:1], missing[:1], memory.at(missing[:1]))",
        ),
        Mutant("all logits", "(vocabulary_size,)", "return logits[-1]", "return logits"),
        Mutant("the first logits", "last missing", "return logits[-1]", "return logits[0]"),
    ),
    alternatives=(answers.repair_one_at_a_time,),
)

# -- 6.3 ----------------------------------------------------------------------------------

CHEAPER = "On the unseen traces what is lost costs less to compute than with LRU, on the whole."
CAPACITY, NUM_REQUESTS, SEEDS, BLOCK_SIZE = 300, 300, (5, 6, 7, 8), 512


@functools.cache
def prices() -> tuple[float, ...]:
    """What the k-th block of a text costs in Llama-3-8B, by the model of restore_cost."""
    llama = next(shape for shape in SHAPES if shape.name == "Llama-3-8B")
    return tuple(relative_cost(llama, logical, BLOCK_SIZE) for logical in range(600))


@functools.cache
def contests() -> tuple:
    """(trace, cost of LRU) of each contest. No cell of the chapter shows these traces."""
    traces = [conversations(NUM_REQUESTS, seed=seed) for seed in SEEDS]
    price = prices().__getitem__
    return tuple((trace, replay_cost(trace, CAPACITY, price=price)) for trace in traces)


def cost_score(make_queue) -> float:
    """The cost of what a policy loses, that of LRU being 1; the mean over all contests."""
    price = prices().__getitem__
    shares = [
        replay_cost(trace, CAPACITY, make_queue, price=price) / lru for trace, lru in contests()
    ]
    return float(np.mean(shares))


class CostPlay(PolicyPlay):
    """The queue as in 4.3, with costs; then the real cache; then the traces."""

    arguments = "(cost)"

    def __init__(self, thing, guard=None) -> None:
        super().__init__(thing, guard)
        # The other plays make a queue without arguments; here block b costs b + 1.
        self.thing = functools.partial(thing, lambda block: block + 1.0)
        self.make = thing

    def compete(self) -> None:
        """All contests; the cost of LRU is 1."""
        self.calls.clear()
        self.subject = None
        self.wait(60.0)
        contests()
        outcome = self.run(
            f"cost of what is lost, {self.name}{self.arguments}, LRU = 1",
            lambda: cost_score(self.make),
            seconds=60.0,
        )
        score = outcome.returned("less than 1")
        outcome.value = None
        self.require(score < 0.999, CHEAPER, "less than 1, the cost of LRU", f"{score:.3f}")


def cost_cases():
    """Short sequences, longer ones, the real cache, the contests."""
    return policy_cases(length=5, number=20)


COST_AWARE = Exercise(
    id="6.3",
    title="Lose what is cheap",
    minutes=20,
    difficulty=3,
    stub='''
class CostAware(Policy):
    """A free queue that knows what it costs to compute the content of a block again.

    cost: a function; cost(block) is 1.0 for the first block of a text, and more further back.
    Ask it in `keep`, when a block comes in.
    """

    def __init__(self, cost):
        super().__init__()
        self.cost = cost

    def keep(self, block):
        """Nobody uses the block now: put it in your order."""
        raise NotImplementedError

    def take(self, block):
        """The block was hit and is in use: take it out of your order."""
        raise NotImplementedError

    def choose(self):
        """Take the block to lose out of your order, and return it."""
        raise NotImplementedError
''',
    hints=(
        "Start with a dictionary from block to value, the value being its cost, and let the "
        "lowest go: `min(self.value, key=self.value.get)`. Then dear blocks never leave, even "
        "if nobody wants them any more. That costs more than LRU.",
        "Values must age. Keep a clock: a block that comes in is worth *clock + cost*.",
        "When a block goes, set the clock to its value. What comes in later starts higher, and "
        "what nobody uses is overtaken in time. This is GreedyDual (Young, 1994).",
    ),
    solution=answers.CostAware,
    require=lambda thing: require_policy(thing, "CostAware(cost)"),
    play=CostPlay,
    cases=cost_cases,
    insight="What is lost costs less than with LRU, since your order weighs the price against the "
    'time of the last use. `solution("6.3")` shows GreedyDual, which is LRU where all prices '
    "are equal. `against_lru(CostAware)` has your number on the traces of this page.",
    mutants=(
        Mutant("all cost the same, which is LRU", "than with LRU", "self.cost(block)", "1.0"),
        Mutant("nothing ages", "than with LRU", "self.clock + self.cost", "self.cost"),
        Mutant("the dearest goes", "than with LRU", "self.clock + self", "self.clock - self"),
        Mutant(
            "one dictionary for all queues",
            "an order of its own",
            "self.value = {}",
            "self.value = vars(CostAware).get('_all', {}); CostAware._all = self.value",
        ),
        Mutant("a block in use stays", "a block that waits", "del self.value[block]", "pass"),
        Mutant(
            "choose looks and leaves it there",
            "a block that waits",
            "self.value.pop(block)",
            "self.value[block]",
        ),
        Mutant("no return", "a block that waits", "        return block\n", ""),
        Mutant(
            "worthless or not is forgotten",
            "nobody can find again",
            "    def take(self, block):\n",
            "    def put(self, block, cached):\n        super().put(block, True)\n\n"
            "    def take(self, block):\n",
        ),
    ),
    alternatives=(answers.CostPerAge,),
)

# -- 6.4 ----------------------------------------------------------------------------------

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

EXERCISES = (TO_COMPUTE, REPAIR, COST_AWARE, COME_BACK)
