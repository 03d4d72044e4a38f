"""Exercise 5.4: run SmolLM2 on your attention."""

from __future__ import annotations

import functools
import math

import numpy as np

from paged_tutorial import Batch, PagedEngine, dense_attention, random_model

from .. import answers_05 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_function
from ..smollm2 import LONG, new_tokens_of, smollm2
from .attend import GARBAGE, LARGE, LATER, ONE_SOFTMAX, OWN, PLACES, SCALED
from .common import EXACT, numbers, told

LIKE_QUERIES = "The result is an array like the queries: (num_tokens, num_heads, head_dim)."
GROUPED = "Query head h reads kv head h // (num_heads // num_kv_heads)."
BY_POSITION = "Each query has its own position, batch.positions[row], and sees up to it."
RAGGED = "Each request has its own rows and its own page table."
SAME_TOKENS = "On your attention the model writes the tokens that it writes on the package's."
TEXT = (
    "The key is in the red box and the coin is in the blue box. Both boxes stand on the table. "
    "To find the coin, open the"
)


class PagedPlay(Play):
    """Small ragged batches against dense attention, then models on the reader's function."""

    def attend(self, rule, heads, kv_heads, block_size, chosen, filling=0.0, scale=1.0) -> None:
        """chosen: the positions of each request's queries; tables lie in falling order."""
        random = np.random.default_rng(5)
        counts = [max(positions) // block_size + 1 for positions in chosen]
        blocks = np.full((2, sum(counts) + 1, block_size, kv_heads, 4), filling, np.float32)
        free, tables, parts = list(range(sum(counts))), [], []
        for positions, count in zip(chosen, counts, strict=True):
            table = np.array([free.pop() for _ in range(count)])
            at = np.arange(max(positions) + 1)
            both = random.normal(size=(2, len(at), kv_heads, 4)).astype(np.float32)
            both[0] *= scale
            blocks[:, table[at // block_size], at % block_size] = both
            queries = random.normal(size=(len(positions), heads, 4)).astype(np.float32)
            parts.append((queries, dense_attention(queries, *both, positions)))
            tables.append(table)
        queries, truth = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        flat = np.array([position for positions in chosen for position in positions])
        batch = Batch(flat, np.cumsum([0, *map(len, chosen)]), tables)
        text = f"{self.name}(queries, key_blocks, value_blocks, batch)  # positions "
        text += f"{[list(p) for p in chosen]}, tables {[t.tolist() for t in tables]}, "
        text += f"block size {block_size}, {heads} heads, {kv_heads} kv heads"
        with np.errstate(all="ignore"):
            outcome = self.run(text, self.thing, queries, *blocks, batch)
        found = numbers(outcome, truth.shape, rule, "an array like the queries", LIKE_QUERIES)
        kind = type(outcome.value).__name__
        an_array = isinstance(outcome.value, np.ndarray)
        self.require(an_array, LIKE_QUERIES, "an array", f"a {kind}")
        wrong = np.argwhere(~np.isclose(found, truth, rtol=EXACT, atol=EXACT).all(axis=-1))
        for row, head in wrong[:1].tolist():
            where = f"row {row}, head {head}: "
            expected, came = where + told(truth[row, head]), where + told(found[row, head])
            self.require(False, rule, expected, came)

    def serve(self, name: str) -> None:
        """A model on the reader's attention, token for token."""
        self.wait(LONG)
        model, prompts, new_tokens = _workload(name)
        expected = _expected(name)

        def answer():
            engine = PagedEngine(model, 40, 4, attention=self.thing)
            return new_tokens_of(engine, prompts, new_tokens)

        text = f"PagedEngine(model, 40, 4, attention={self.name}).generate(…)  # {name}"
        outcome = self.run(text, answer, seconds=LONG)
        tokens = outcome.returned("tokens", SAME_TOKENS)
        self.require(tokens == expected, SAME_TOKENS, f"tokens {expected}", f"tokens {tokens}")


@functools.cache
def _workload(name: str):
    """Model, prompts, new tokens for each."""
    if name == "tiny":
        return random_model(), [[5, 17, 3, 99, 42], [1, 2], list(range(9))], 6
    model, tokenizer = smollm2()
    return model, [tokenizer.encode(TEXT)], 8


@functools.cache
def _expected(name: str) -> list[list[int]]:
    model, prompts, new_tokens = _workload(name)
    return new_tokens_of(PagedEngine(model, 40, 4), prompts, new_tokens)


def paged_cases():
    """Each case brings one new difficulty, and the rule that goes with it; then two models."""
    nan = math.nan

    def case(*arguments):
        return Case((), (("attend", *arguments),))

    yield case(OWN, 1, 1, 1, [[0]])
    yield case(SCALED, 1, 1, 2, [[1]])
    yield case(LATER, 1, 1, 4, [[1]])
    yield case(GARBAGE, 1, 1, 4, [[1]], nan)
    yield case(ONE_SOFTMAX, 1, 1, 2, [[3]])
    yield case(PLACES, 1, 1, 3, [[4]])
    yield from (case(OWN, 1, 1, 4, [[position]]) for position in range(3, 9))
    yield case(GROUPED, 2, 1, 4, [[2]])
    yield case(GROUPED, 4, 2, 4, [[2]])
    yield from (case(GROUPED, *heads, 4, [[5]]) for heads in ((8, 2), (6, 2), (9, 3), (12, 4)))
    yield case(GROUPED, 9, 3, 2, [[5]])
    yield case(BY_POSITION, 2, 1, 4, [[0, 1]])
    yield case(BY_POSITION, 2, 1, 4, [[2, 5, 9]], nan)
    yield case(RAGGED, 2, 1, 4, [[1], [2]])
    yield case(RAGGED, 6, 2, 4, [[8], [0, 1, 2], [3, 6]], nan)
    yield case(LARGE, 6, 2, 4, [[6], [3]], nan, 30_000.0)
    yield Case((), (("serve", "tiny"),))
    yield Case((), (("serve", "SmolLM2"),))


PAGED = Exercise(
    id="5.4",
    title="Run SmolLM2 on your attention",
    minutes=25,
    difficulty=3,
    stub='''
def my_paged_attention(queries, key_blocks, value_blocks, batch):
    """Attention of the queries of many requests over the blocks of one layer. Like queries.

    queries: (num_tokens, num_heads, head_dim), all requests one after the other
    key_blocks, value_blocks: (num_blocks, block_size, num_kv_heads, head_dim)
    batch.requests() yields for each request: its rows (a slice), the position of each of
    them (an array), and its page table (an array of physical block ids).
    """
    raise NotImplementedError
''',
    hints=(
        "Three loops will do: requests, rows of the request, heads. Inside them it is one query "
        "over the blocks of one text: exercise 5.2.",
        "Head h reads `key_blocks[block, :, h // group]` with `group = num_heads // num_kv_heads`.",
        "`for rows, positions, table in batch.requests():` and then "
        "`for row, position in zip(range(rows.start, rows.stop), positions):`. Write into "
        "`output[row, head]`.",
    ),
    solution=answers.my_paged_attention,
    require=lambda thing: require_function(thing, "queries", "key_blocks", "value_blocks", "batch"),
    play=PagedPlay,
    cases=paged_cases,
    insight="SmolLM2 wrote its sentence on your attention, token for token. The engine needs to "
    "know nothing of how you read the blocks. Chapter 12 puts a compiled kernel into the same "
    "place.",
    mutants=(
        Mutant(
            "kv heads are dealt like cards",
            "kv head h //",
            "scores = keys[:, head // group]",
            "scores = keys[:, head % num_kv_heads]",
        ),
        Mutant(
            "values from the first kv head",
            "kv head h //",
            "weights @ values[:, head // group]",
            "weights @ values[:, 0]",
        ),
        Mutant("not scaled", "√head_dim", " / np.sqrt(head_dim)", ""),
        Mutant(
            "the whole last block is seen",
            "after its own",
            "keys = key_blocks[blocks].reshape(-1, num_kv_heads, head_dim)[: position + 1]\n"
            "            values = value_blocks[blocks].reshape(-1, num_kv_heads, head_dim)"
            "[: position + 1]",
            "keys = key_blocks[blocks].reshape(-1, num_kv_heads, head_dim)\n"
            "            values = value_blocks[blocks].reshape(-1, num_kv_heads, head_dim)",
        ),
        Mutant(
            "positions count within the request's rows",
            "its own position",
            "in zip(range(rows.start, rows.stop), positions, strict=True)",
            "in ((row, max(positions) - rows.stop + 1 + row) for row in range(*rows.indices(99)))",
        ),
        Mutant(
            "the blocks as they lie",
            "table[k]",
            "blocks = table[: position // block_size + 1]",
            "blocks = np.sort(table[: position // block_size + 1])",
        ),
        Mutant("no maximum", "overflow", "scores - scores.max()", "scores"),
        Mutant(
            "heads in one row",
            "like the queries",
            "return output",
            "return output.reshape(len(output), -1)",
        ),
        Mutant("a list of rows", "like the queries", "return output", "return list(output)"),
        Mutant(
            "a block for as many tokens as there are kv heads",
            "kv head h //",
            "blocks = table[: position // block_size + 1]",
            "blocks = table[: position // max(num_kv_heads, block_size) + 1]",
        ),
        Mutant(
            "only the first request",
            "own rows",
            "in batch.requests()",
            "in list(batch.requests())[:1]",
        ),
        Mutant(
            "the first block is left out",
            "last one included",
            "blocks = table[: position // block_size + 1]",
            "blocks = table[: max(1, -(-position // block_size))]",
        ),
    ),
    alternatives=(answers.paged_attention_by_merging,),
)
