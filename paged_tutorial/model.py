"""The Llama architecture in plain NumPy.

In English: look up a vector for each token. Thirty times over (once per layer), let the
tokens exchange information by attention, then let each think for itself in a feed-forward
network; both add their result to the vector. At the end compare the vector with the vector
of every word in the vocabulary: the scores are the logits.

The model knows nothing of paging. It hands new keys and values to `kv.write` and asks
`kv.attend` for the attention of its queries; who keeps the memory, and how, is not its
business. A layer writes the keys and values of all its tokens before any query attends, so
that the tokens may be any positions of a text, in any pattern: that is all recompute needs.

Touvron et al., "LLaMA" (2023); Su et al., "RoFormer" (2021) for the rotary embedding;
Zhang & Sennrich (2019) for RMSNorm; Shazeer (2020) for SwiGLU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from .attention import dense_attention
from .checks import check_integer, check_tokens

Linear = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a Llama model."""

    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    feed_forward_size: int
    vocabulary_size: int
    context_length: int
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5

    def __post_init__(self) -> None:
        for size in fields(self):
            if size.type == "int":
                check_integer(size.name, getattr(self, size.name), 1)
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads {self.num_heads} is no multiple of num_kv_heads {self.num_kv_heads}"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim must be even for rotary embedding, got {self.head_dim}")

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of keys and values that one token occupies in float32."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * 4

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every parameter, in the order in which they are stored.

        Matrices are (outputs, inputs). `qkv` stacks the rows of query, key and value,
        `gate_up` those of the gate and the up projection: one product instead of three.
        """
        hidden = self.hidden_size
        attended = self.num_heads * self.head_dim
        qkv = attended + 2 * self.num_kv_heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {"embedding": (self.vocabulary_size, hidden)}
        for layer in range(self.num_layers):
            shapes |= {
                f"{layer}.attention_norm": (hidden,),
                f"{layer}.qkv": (qkv, hidden),
                f"{layer}.output": (hidden, attended),
                f"{layer}.feed_forward_norm": (hidden,),
                f"{layer}.gate_up": (2 * self.feed_forward_size, hidden),
                f"{layer}.down": (hidden, self.feed_forward_size),
            }
        return shapes | {"final_norm": (hidden,)}


class KeysAndValues(Protocol):
    """What the model needs of a memory of keys and values, dense or paged."""

    def write(self, layer: int, keys: np.ndarray, values: np.ndarray) -> None:
        """Keep keys and values (num_tokens, num_kv_heads, head_dim) of this step's tokens."""

    def attend(self, layer: int, queries: np.ndarray) -> np.ndarray:
        """Attention of queries (num_tokens, num_heads, head_dim), by position, same shape."""


class DenseKV:
    """The plain memory: one contiguous array per layer, one request. The reference for paging.

    Set `positions` (or pass them anew with `at`) before each forward pass.
    """

    def __init__(self, config: ModelConfig, max_tokens: int) -> None:
        shape = (config.num_layers, max_tokens, config.num_kv_heads, config.head_dim)
        self.keys = np.full(shape, np.nan, np.float32)
        self.values = np.full(shape, np.nan, np.float32)
        self.positions = np.arange(0)

    def at(self, positions: Sequence[int]) -> DenseKV:
        """This memory, ready for a forward pass over the given positions."""
        self.positions = np.asarray(positions, np.int64)
        return self

    def write(self, layer: int, keys: np.ndarray, values: np.ndarray) -> None:
        """Keep the keys and values of the current positions."""
        self.keys[layer, self.positions] = keys
        self.values[layer, self.positions] = values

    def attend(self, layer: int, queries: np.ndarray) -> np.ndarray:
        """Attention of the queries over all positions up to their own."""
        length = int(self.positions.max()) + 1
        return dense_attention(
            queries, self.keys[layer, :length], self.values[layer, :length], self.positions
        )


def linear(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """x (num_tokens, inputs) times weight (outputs, inputs), giving (num_tokens, outputs).

    One row is a matrix times a vector. For a few rows OpenBLAS is faster with the weights
    first and the activations as columns.
    """
    if len(x) == 1:
        return (weight @ x[0])[None]
    return (weight @ x.T).T


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    """Scale each row of x to a root mean square of 1, then each column by its weight."""
    mean_square = np.einsum("th,th->t", x, x)[:, None] / x.shape[1]
    return x / np.sqrt(mean_square + np.float32(epsilon)) * weight


def swiglu(gate_up: np.ndarray) -> np.ndarray:
    """silu(gate) * up, for gate and up side by side in (num_tokens, 2 * size)."""
    size = gate_up.shape[1] // 2
    gate, up = gate_up[:, :size], gate_up[:, size:]
    with np.errstate(over="ignore"):  # exp may reach infinity, and gate / infinity is 0
        return gate / (1 + np.exp(-gate)) * up


class Transformer:
    """A Llama model.

    weights: maps the names of `config.parameter_shapes()` to float32 arrays
    linear: the product of activations and a weight, this module's or that of `kernels`
    """

    def __init__(
        self, config: ModelConfig, weights: dict[str, np.ndarray], linear: Linear = linear
    ) -> None:
        for name, shape in config.parameter_shapes().items():
            if name not in weights or weights[name].shape != shape:
                found = weights[name].shape if name in weights else "nothing"
                raise ValueError(f"weights[{name!r}] must have shape {shape}, found {found}")
        self.config = config
        self.weights = weights
        self.linear = linear
        # Position p turns the pair (2i, 2i + 1) by the angle p * base ** (-2i / head_dim).
        # A pair is a complex number, so that turning it is one multiplication.
        frequencies = config.rope_base ** (-np.arange(0, config.head_dim, 2) / config.head_dim)
        angles = np.arange(config.context_length)[:, None] * frequencies
        self._rotations = np.exp(1j * angles).astype(np.complex64)

    def rotate(self, vectors: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Rotary embedding of (num_tokens, heads, head_dim) float32 by position."""
        pairs = np.ascontiguousarray(vectors).view(np.complex64)
        return (pairs * self._rotations[positions][:, None, :]).view(np.float32)

    def forward(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        kv: KeysAndValues,
        rows: Sequence[int] | None = None,
    ) -> np.ndarray:
        """Run the model over some tokens at their positions; the rest is read from `kv`.

        Returns logits (len(rows), vocabulary_size) float32 for the given rows of the batch
        (all by default). Raises ValueError for an empty batch, a token outside the
        vocabulary, or a position outside the context.
        """
        config, weights, linear = self.config, self.weights, self.linear
        tokens = np.array(check_tokens("tokens", tokens, config.vocabulary_size))
        positions = np.asarray(positions, np.int64)
        if positions.shape != tokens.shape:
            raise ValueError(f"{len(tokens)} tokens need as many positions, got {positions.shape}")
        if positions.min() < 0 or positions.max() >= config.context_length:
            raise ValueError(
                f"positions must lie in 0 to {config.context_length - 1}, "
                f"got {positions.min()} to {positions.max()}"
            )
        attended = config.num_heads * config.head_dim
        turned = config.num_heads + config.num_kv_heads  # heads of queries and keys
        x = weights["embedding"][tokens]
        for layer in range(config.num_layers):
            normed = rms_norm(x, weights[f"{layer}.attention_norm"], config.norm_epsilon)
            heads = linear(normed, weights[f"{layer}.qkv"])
            heads = heads.reshape(len(tokens), -1, config.head_dim)
            queries_and_keys = self.rotate(heads[:, :turned], positions)
            kv.write(layer, queries_and_keys[:, config.num_heads :], heads[:, turned:])
            mixed = kv.attend(layer, queries_and_keys[:, : config.num_heads])
            x = x + linear(mixed.reshape(len(tokens), attended), weights[f"{layer}.output"])
            normed = rms_norm(x, weights[f"{layer}.feed_forward_norm"], config.norm_epsilon)
            thought = swiglu(linear(normed, weights[f"{layer}.gate_up"]))
            x = x + linear(thought, weights[f"{layer}.down"])
        x = x if rows is None else x[np.asarray(rows, np.int64)]
        if not len(x):
            return np.zeros((0, config.vocabulary_size), np.float32)
        return linear(rms_norm(x, weights["final_norm"], config.norm_epsilon), weights["embedding"])


def random_model(
    *,
    num_layers: int = 3,
    num_heads: int = 8,
    num_kv_heads: int = 2,
    head_dim: int = 6,
    hidden_size: int = 40,
    feed_forward_size: int = 64,
    vocabulary_size: int = 101,
    context_length: int = 512,
    seed: int = 0,
) -> Transformer:
    """A small model with seeded random weights: fast, exact, and of any shape."""
    config = ModelConfig(
        num_layers,
        hidden_size,
        num_heads,
        num_kv_heads,
        head_dim,
        feed_forward_size,
        vocabulary_size,
        context_length,
    )
    generator = np.random.default_rng(seed)
    weights = {
        name: np.ones(shape, np.float32)
        if len(shape) == 1
        else generator.normal(0, 1.5 / np.sqrt(shape[-1]), shape).astype(np.float32)
        for name, shape in config.parameter_shapes().items()
    }
    weights["embedding"] *= np.float32(np.sqrt(hidden_size))
    return Transformer(config, weights)
