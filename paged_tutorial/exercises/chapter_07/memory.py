"""Exercise 7.4: run SmolLM2 on a memory of your own."""

from __future__ import annotations

import functools

import numpy as np

from paged_tutorial import (
    Batch,
    BlockPool,
    OutOfBlocksError,
    PagedEngine,
    dense_attention,
    random_model,
)

from .. import answers_07 as answers
from ..chapter_02.pool import whole
from ..checking import all_sequences, random_sequences
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_class
from ..smollm2 import LONG, smollm2
from ..telling import tell

NEW = "A new memory has all its blocks free, and keeps its number of blocks and its block size."
FRONT = "allocate hands out the front of the queue, which then is held once."
EMPTY = "An empty queue says so with OutOfBlocksError(1, 0): one is needed, none is free."
SHARED = "share adds a holder; a block in the queue leaves it, its content as it was."
LAST = "The last holder to leave puts the block into the queue, and no other does."
ENDS = "A block that can still be hit goes to the back of the queue, any other to the front."
TWO_ARRAYS = "keys and values are two arrays: (layers, blocks, block size, kv heads, head_dim)."
LIKE_QUERIES = "attention returns an array in the shape of the queries."
UNTOUCHED = "attention only reads: queries, keys and values stay as they were."
ANY_SIZE = "Scores of any size are right: no exp overflows."
ATTENTION = "attention equals attention over the same keys and values in one run."
SAME_ANSWER = "On your memory the model writes the tokens that it writes on the package's."
FOUND = "On your memory as many tokens are found as on the package's."
QUESTION = "What is the capital of France?"


class MemoryPlay(Play):
    """The bookkeeping beside that of the package, then attention, then models."""

    def begin(self, num_blocks: int, *sizes: int) -> None:
        """Both memories; sizes: block size, layers, kv heads and head_dim."""
        size, layers, kv_heads, head_dim = sizes or (4, 2, 2, 4)
        shape = dict(num_layers=layers, num_kv_heads=kv_heads, head_dim=head_dim)
        self.truth = BlockPool(num_blocks, size, **shape)
        self.memory = self.subject = self._made(num_blocks, size, layers, kv_heads, head_dim)
        self._compare(NEW)

    def _made(self, *shape: int):
        """A memory of this shape."""
        made = self.run(f"memory = {self.name}{shape}", self.thing, *shape)
        memory = made.returned("a memory")
        made.value = None
        for name, wanted in (("num_blocks", shape[0]), ("block_size", shape[1])):
            came = getattr(memory, name, None)
            self.require(came == wanted, NEW, f"memory.{name} {wanted}", tell(came))
        return memory

    def allocate(self) -> None:
        """One block, or none left."""
        outcome = self.run("memory.allocate()", lambda: self.memory.allocate())
        if not self.truth.num_free:
            outcome.raised(OutOfBlocksError, EMPTY)
            needed, free_then = outcome.error.needed, outcome.error.free
            came = f"needed {needed}, free {free_then}"
            self.require((needed, free_then) == (1, 0), EMPTY, "needed 1, free 0", came)
            self._compare(EMPTY)
            return
        wanted = self.truth.allocate()
        # Which block comes is decided by where the blocks went when they were released.
        rule = ENDS if any(call.text.startswith("memory.release") for call in self.calls) else FRONT
        found = outcome.integer(rule, str(wanted))
        self.require(found == wanted, rule, wanted, found)
        self._compare(FRONT)

    def share(self, block: int) -> None:
        """One holder more."""
        self.run(f"memory.share({block})", lambda: self.memory.share(block)).returned("nothing")
        self.truth.share(block)
        self._compare(SHARED)

    def release(self, block: int, cached: bool) -> None:
        """One holder less, if there is one."""
        if not self.truth.reference_counts[block]:
            return
        text = f"memory.release({block}, cached={cached})"
        self.run(text, lambda: self.memory.release(block, cached=cached)).returned("nothing")
        self.truth.release(block, cached)
        self._compare(LAST)

    def _compare(self, rule: str) -> None:
        memory, truth = self.memory, self.truth
        counts = self.peek(
            "memory.reference_counts",
            lambda: [whole(memory.reference_counts[b]) for b in range(truth.num_blocks)],
        )
        wanted = truth.reference_counts
        self.require(counts == wanted, rule, f"reference counts {wanted}", counts)
        free = self.peek("memory.num_free", lambda: memory.num_free)
        a_number = isinstance(free, (int, np.integer)) and not isinstance(free, bool)
        right = a_number and free == truth.num_free
        self.require(right, rule, f"num_free {truth.num_free}", tell(free))

    def arrays(self) -> None:
        """Shapes, and that one is not the other."""
        keys, values = self.peek("memory.keys", lambda: (self.memory.keys, self.memory.values))
        shape = self.truth.keys.shape
        came = f"{np.shape(keys)} and {np.shape(values)}"
        right = np.shape(keys) == np.shape(values) == shape
        self.require(right, TWO_ARRAYS, f"{shape} twice", came)
        apart = not np.shares_memory(keys, values)
        self.require(apart, TWO_ARRAYS, "two arrays", "one array under two names")

    def attend(self, heads: int, kv_heads: int, chosen, size=1.0, rule=ATTENTION) -> None:
        """chosen: the positions of each request's queries; size: of queries."""
        random = np.random.default_rng(7)
        blocks = np.full((2, 9, 4, kv_heads, 4), np.nan, np.float32)
        free, tables, parts = list(range(8)), [], []
        for positions in chosen:
            at = np.arange(max(positions) + 1)
            table = np.array([free.pop() for _ in range(at[-1] // 4 + 1)])
            both = random.normal(size=(2, len(at), kv_heads, 4)).astype(np.float32)
            blocks[:, table[at // 4], at % 4] = both
            queries = size * random.normal(size=(len(positions), heads, 4)).astype(np.float32)
            parts.append((queries, dense_attention(queries, *both, positions)))
            tables.append(table)
        queries, truth = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        flat = np.array([position for positions in chosen for position in positions])
        batch = Batch(flat, np.cumsum([0, *map(len, chosen)]), tables)
        text = f"memory.attention(…)  # positions {chosen}, {heads} heads on {kv_heads}"
        if size != 1:
            text += f", queries of about {size:g}"
        before = [queries.copy(), blocks.copy()]
        with np.errstate(all="ignore"):
            outcome = self.run(text, lambda: self.memory.attention(queries, *blocks, batch))
        found = outcome.returned("an array like the queries", rule)
        kind = "array" if isinstance(found, np.ndarray) else type(found).__name__
        wanted, came = f"array {truth.shape}", f"{kind} {np.shape(found)}"
        self.require(wanted == came, LIKE_QUERIES, wanted, came)
        same = all(map(_same_numbers, before, (queries, blocks)))
        self.require(same, UNTOUCHED, "no change", "other numbers afterwards")
        for index in np.argwhere(~np.isclose(found, truth, rtol=1e-4, atol=1e-4))[:1]:
            row, head, _ = index.tolist()
            expected, came = (
                [round(float(number), 3) for number in array[row, head]] for array in (truth, found)
            )
            where = f"row {row}, head {head}: "
            self.require(False, rule, f"{where}{expected}", f"{where}{came}")

    def serve(self, name: str) -> None:
        """Two rounds of requests; the second finds what the first has left."""
        self.wait(LONG)
        model, rounds, num_blocks = _workload(name)
        config, expected = model.config, _expected(name)
        shape = (num_blocks, 4, config.num_layers, config.num_kv_heads, config.head_dim)
        self.calls.clear()
        memory = self.subject = self._made(*shape)
        engine = PagedEngine(model, pool=memory, attention=memory.attention)
        for (prompts, new_tokens), (tokens, found) in zip(rounds, expected, strict=True):
            outcome = self.run(
                f"engine.generate(…)  # {len(prompts)} at a time, {name}",
                functools.partial(_generate, engine, prompts, new_tokens),
                seconds=LONG,
            )
            came = outcome.returned("answers", SAME_ANSWER)
            self.require(came[0] == tokens, SAME_ANSWER, f"tokens {tokens}", f"tokens {came[0]}")
            self.require(came[1] == found, FOUND, f"{found} found", f"{came[1]} found")


def _same_numbers(before, after) -> bool:
    return np.array_equal(before, after, equal_nan=True)


def _generate(engine, prompts, new_tokens) -> tuple[list[list[int]], list[int]]:
    done = engine.generate(prompts, max_new_tokens=new_tokens, stop_tokens=())
    return [one.tokens for one in done], [one.cached_tokens for one in done]


@functools.cache
def _workload(name: str):
    """Model, rounds of (prompts, new tokens for each), blocks of 4."""
    if name == "tiny":
        start = list(range(9))
        first, second = [start + [20], start + [30, 31], [40] * 5], [[40] * 6, start + [50]]
        return random_model(), [(first, 6), (second, 6), ([start], 6)], 9
    model, tokenizer = smollm2()
    question = tokenizer.chat(QUESTION)
    return model, [([question], 7), ([question], 2)], 12


@functools.cache
def _expected(name: str):
    model, rounds, num_blocks = _workload(name)
    engine = PagedEngine(model, num_blocks, 4)
    return [_generate(engine, prompts, new_tokens) for prompts, new_tokens in rounds]


def memory_cases():
    """Bookkeeping first, since it fails with the smaller case; then attention; then models."""
    moves = [("allocate",), *(("release", b, c) for b in (0, 1) for c in (False, True))]
    yield from all_sequences((2,), [*moves, ("share", 0)], 3)
    moves = [("allocate",)] * 4 + [("share", b) for b in range(4)]
    moves += [("release", b, c) for b in range(4) for c in (False, True)]
    yield from random_sequences((4,), moves, 24, 40)
    yield Case((3,), (("arrays",),))
    yield Case((3, 5, 2, 1, 6), (("arrays",),))
    for heads, kv_heads, chosen in (
        (1, 1, [[0]]),
        (1, 1, [[2]]),
        (1, 1, [[5]]),
        (6, 2, [[6]]),
        (6, 2, [[1, 4]]),
        (6, 2, [[8], [0, 1, 2], [3, 6]]),
    ):
        yield Case((3,), (("attend", heads, kv_heads, chosen),))
    yield Case((3,), (("attend", 6, 2, [[6], [3]], 1000.0, ANY_SIZE),))
    yield Case((9,), (("serve", "tiny"),))
    yield Case((12,), (("serve", "SmolLM2"),))


MEMORY = Exercise(
    id="7.4",
    title="Run SmolLM2 on a memory of your own",
    minutes=30,
    difficulty=3,
    stub='''
class MyMemory:
    """Block pool, free queue and paged attention in one, for PagedEngine."""

    def __init__(self, num_blocks, block_size, num_layers, num_kv_heads, head_dim):
        self.num_blocks, self.block_size = num_blocks, block_size
        shape = (num_layers, num_blocks, block_size, num_kv_heads, head_dim)
        self.keys = np.zeros(shape, np.float32)
        self.values = np.zeros(shape, np.float32)
        self.reference_counts = [0] * num_blocks
        self.queue = OrderedDict.fromkeys(range(num_blocks))  # free; the front goes next

    @property
    def num_free(self):
        return len(self.queue)

    def allocate(self):
        """The block at the front, held once. OutOfBlocksError(1, 0) if there is none."""
        raise NotImplementedError

    def share(self, block):
        """One holder more. A block in the queue leaves it."""
        raise NotImplementedError

    def release(self, block, cached):
        """One holder less. The last one puts it to the back if cached, else to the front."""
        raise NotImplementedError

    def attention(self, queries, key_blocks, value_blocks, batch):
        """As my_paged_attention in exercise 5.4."""
        raise NotImplementedError
''',
    hints=(
        "The pool is exercise 2.4 and the queue is chapter 4: `popitem(last=False)` takes the "
        "front, `pop(block, None)` takes a block out of the middle, `move_to_end(block, "
        "last=cached)` puts it where it belongs.",
        "Your function of exercise 5.4 becomes a method when you add `self`, or call it: "
        "`return my_paged_attention(queries, key_blocks, value_blocks, batch)`.",
        "For each request: `np.concatenate(key_blocks[table])` is the request's keys in one run, "
        "(slots, kv_heads, head_dim). Cut them after the query's position.",
    ),
    solution=answers.MyMemory,
    require=lambda thing: require_class(thing, "MyMemory(num_blocks, block_size, …)"),
    play=MemoryPlay,
    cases=memory_cases,
    insight="SmolLM2 wrote “The capital of France is Paris.” on your pool, your queue and your "
    "attention, token for token; asked again, it found its prompt in your blocks. The engine "
    "needs no more of a memory than this.",
    mutants=(
        Mutant(
            "the back of the queue first",
            "front of the queue",
            "popitem(last=False)",
            "popitem(last=True)",
        ),
        Mutant(
            "cached blocks to the front",
            "can still be hit goes to the back",
            "last=cached",
            "last=not cached",
        ),
        Mutant(
            "all to the back",
            "can still be hit goes to the back",
            "last=cached",
            "last=True",
        ),
        Mutant("brought back and still free", "share adds", "self.queue.pop(block, None)", "pass"),
        Mutant(
            "the first to leave frees the block",
            "last holder to leave",
            "if self.reference_counts[block] == 0:",
            "if True:",
        ),
        Mutant("allocate does not count", "held once", "[block] = 1", "[block] = 0"),
        Mutant(
            "one array under two names",
            "two arrays",
            "self.values = np.zeros(shape, np.float32)",
            "self.values = self.keys",
        ),
        Mutant(
            "always blocks of four",
            "keeps its number of blocks and its block size",
            "self.block_size = num_blocks, block_size",
            "self.block_size = num_blocks, 4",
        ),
        Mutant(
            "arrays for blocks of four",
            "two arrays",
            "num_blocks, block_size, num_kv_heads, head_dim)\n        self.keys",
            "num_blocks, 4, num_kv_heads, head_dim)\n        self.keys",
        ),
        Mutant(
            "needed and free exchanged",
            "empty queue",
            "OutOfBlocksError(1, 0)",
            "OutOfBlocksError(0, 1)",
        ),
        Mutant(
            "one queue for all memories",
            "A new memory",
            "self.queue = OrderedDict.fromkeys(range(num_blocks))",
            "self.queue = vars(MyMemory).get('_all') or OrderedDict.fromkeys(range(num_blocks))\n"
            "        MyMemory._all = self.queue",
        ),
        Mutant(
            "an empty queue speaks for itself", "empty queue", "if not self.queue:", "if False:"
        ),
        Mutant(
            "the whole last block is seen",
            "in one run",
            "slice(0, position + 1)",
            "slice(0, None)",
        ),
        Mutant(
            "the token does not see itself",
            "in one run",
            "slice(0, position + 1)",
            "slice(0, max(1, position))",
        ),
        Mutant(
            "kv heads are dealt like cards",
            "in one run",
            "keys = np.repeat(np.concatenate(key_blocks[table]), group, axis=1)",
            "keys = np.tile(np.concatenate(key_blocks[table]), (1, group, 1))",
        ),
        Mutant(
            "no maximum", "no exp overflows", "scores - scores.max(axis=1, keepdims=True)", "scores"
        ),
        Mutant(
            "heads in one row",
            "the shape of the queries",
            "return output",
            "return output.reshape(len(output), -1)",
        ),
        Mutant(
            "the answer is written over the queries",
            "only reads",
            "output = np.zeros_like(queries)",
            "output = queries",
        ),
        Mutant(
            "the blocks as they lie",
            "in one run",
            "np.concatenate(value_blocks[table])",
            "np.concatenate(value_blocks[np.sort(table)])",
        ),
    ),
    alternatives=(answers.MemoryOfThePackage,),
)
