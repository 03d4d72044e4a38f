"""Exercise 1.1: bytes per token."""

from __future__ import annotations

import itertools

from .. import answers_01 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_function

BYTES = "A token keeps one key and one value, in every layer, for every kv head."


class TokenBytes(Play):
    """One call; the truth is counted head by head."""

    def begin(self, layers: int, heads: int, kv_heads: int, head_dim: int, bytes_: int) -> None:
        shape = (layers, heads, kv_heads, head_dim, bytes_)
        outcome = self.run(f"{self.name}({', '.join(map(str, shape))})", self.thing, *shape)
        vectors = sum(2 for _ in range(layers) for _ in range(kv_heads))
        truth = vectors * head_dim * bytes_
        expected = f"{truth}: {vectors} vectors × {head_dim} numbers × {bytes_} bytes"
        came = outcome.integer(BYTES, expected)
        self.require(came == truth, BYTES, expected, came)


def token_bytes_cases():
    """Small shapes in which no two sizes are equal, then those of known models."""
    yield Case((1, 1, 1, 1, 1))
    yield Case((1, 4, 2, 3, 1))
    yield from (Case(shape) for shape in itertools.product((1, 3), (6,), (1, 2, 6), (5,), (2, 4)))
    known = [(30, 9, 3, 64, 4), (12, 12, 12, 64, 4), (28, 28, 4, 128, 2), (80, 64, 8, 128, 2)]
    yield from map(Case, known)


TOKEN_BYTES = Exercise(
    id="1.1",
    title="Bytes per token",
    minutes=4,
    difficulty=1,
    stub='''
def token_bytes(num_layers, num_heads, num_kv_heads, head_dim, number_bytes):
    """How many bytes of KV cache does one token take?

    num_heads: query heads; number_bytes: 4 for float32, 2 for bfloat16.
    token_bytes(30, 9, 3, 64, 4) is 46,080: SmolLM2 in float32.
    """
    raise NotImplementedError
''',
    hints=(
        "One of the five numbers is not needed at all. Which vectors are read again later?",
        "Queries are used once, by their own token, and forgotten. Keys and values are kept: "
        "two vectors of `head_dim` numbers for each kv head, in each layer.",
    ),
    solution=answers.token_bytes,
    require=lambda thing: require_function(
        thing, "num_layers", "num_heads", "num_kv_heads", "head_dim", "number_bytes"
    ),
    play=TokenBytes,
    cases=token_bytes_cases,
    insight="The width of the model, its feed-forward size and its vocabulary do not occur. That "
    "is why a model of 70 billion weights can take less memory per token than one of 13 billion: "
    "it shares its kv heads among more query heads.",
    mutants=(
        Mutant("query heads", "every kv head", "* num_kv_heads", "* num_heads"),
        Mutant("keys only", "one key and one value", "2 * num_layers", "num_layers"),
        Mutant("one layer", "every layer", "2 * num_layers", "2"),
        Mutant("always two bytes", "one key and one value", "* number_bytes", "* 2"),
        Mutant("no return", "one key and one value", "return 2", "2"),
        Mutant("a float", "one key and one value", "return 2 *", "return 2.0 *"),
    ),
    alternatives=(answers.token_bytes_by_counting,),
)
