"""What it costs to bring lost blocks back: by running the model again, or from a store.

In English: recomputing a token takes two operations for each weight (multiply and add), and
four for each number of the keys that its query reads (a product with the key, a sum over
the values). However few tokens there are, the weights must be read once. Swapping moves the
bytes of the blocks over a link, and each transfer has a fixed cost besides.

This is a model of the cost, not a measurement. It counts all weights for every token, those of
the vocabulary included, which are 3 % of all in Llama-3-70B and 31 % in GPT-2. It
knows nothing of overlap, of other traffic on the link, or of memory that is not pinned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .checks import check_integer, check_number
from .page_table import blocks_needed
from .shapes import ModelShape


@dataclass(frozen=True)
class Machine:
    """What a machine reaches, not what its data sheet promises.

    flops: operations a second in a forward pass over many tokens
    weight_bandwidth: bytes a second at which the weights are read
    link_bandwidth: bytes a second between the pool and the store
    transfer_seconds: what each transfer costs besides
    """

    flops: float
    weight_bandwidth: float
    link_bandwidth: float
    transfer_seconds: float

    def __post_init__(self) -> None:
        for name in ("flops", "weight_bandwidth", "link_bandwidth"):
            check_number(name, getattr(self, name), 1e-9)
        check_number("transfer_seconds", self.transfer_seconds, 0)


def block_bytes(shape: ModelShape, block_size: int) -> int:
    """Bytes of the keys and values of one block, all layers."""
    return check_integer("block_size", block_size, 1) * shape.token_bytes


def recompute_flops(shape: ModelShape, positions: Sequence[int]) -> float:
    """Operations of a forward pass over these positions of a text, the others being present."""
    positions = np.asarray(positions, np.float64)
    weights = 2.0 * shape.parameters * len(positions)
    per_key = 4.0 * shape.num_layers * shape.num_heads * shape.head_dim
    return weights + per_key * float((positions + 1).sum())


def recompute_seconds(shape: ModelShape, positions: Sequence[int], machine: Machine) -> float:
    """Time to compute these positions in one pass; 0 if there are none."""
    if not len(positions):
        return 0.0
    reading = shape.weight_bytes / machine.weight_bandwidth
    return max(recompute_flops(shape, positions) / machine.flops, reading)


def swap_seconds(
    shape: ModelShape,
    num_tokens: int,
    block_size: int,
    machine: Machine,
    *,
    pieces: int | None = None,
) -> float:
    """Time to move the blocks of so many tokens over the link, one way.

    pieces: transfers a block; by default two a layer, since each layer keeps its keys and its
    values in arrays of their own
    """
    each = block_bytes(shape, block_size)
    blocks = blocks_needed(num_tokens, block_size)
    pieces = 2 * shape.num_layers if pieces is None else check_integer("pieces", pieces, 1)
    moved = blocks * each / machine.link_bandwidth
    return moved + blocks * pieces * machine.transfer_seconds


def relative_cost(shape: ModelShape, logical: int, block_size: int) -> float:
    """Operations to recompute the logical-th block of a text, those of its first block being 1."""
    block = np.arange(check_integer("block_size", block_size, 1))
    later = recompute_flops(shape, logical * block_size + block)
    return later / recompute_flops(shape, block)


def changes(cheaper: Sequence[bool]) -> list[int]:
    """The indices at which a verdict differs from the one before."""
    return (np.flatnonzero(np.diff(np.asarray(cheaper, np.int8))) + 1).tolist()
