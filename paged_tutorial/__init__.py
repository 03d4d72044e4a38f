"""Build the memory system of an LLM serving engine, and run it on a real model."""

from importlib import import_module

from .attention import (
    Batch,
    Partial,
    dense_attention,
    merge_partials,
    paged_attention_blocks,
    paged_attention_gather,
    partial_attention,
)
from .cache import PagedKVCache
from .engine import PagedEngine
from .hashing import BlockIndex, BlockName
from .invariants import InvariantError, check_invariants
from .lru import LRUManager
from .model import DenseKV, ModelConfig, Transformer, random_model
from .page_table import PageTable, blocks_needed
from .paged_batch import PagedBatch
from .pool import BlockPool, OutOfBlocksError
from .recompute import compute, compute_batch, fill
from .request import Completion, Request
from .scheduler import Scheduler
from .trace import Event, Trace

__version__ = "0.1.0"

__all__ = [
    "SMOLLM2",
    "Batch",
    "BlockIndex",
    "BlockName",
    "BlockPool",
    "Completion",
    "DenseKV",
    "Event",
    "InvariantError",
    "LRUManager",
    "ModelConfig",
    "ModelFileError",
    "OutOfBlocksError",
    "PageTable",
    "PagedBatch",
    "PagedEngine",
    "PagedKVCache",
    "Partial",
    "Request",
    "Scheduler",
    "Tokenizer",
    "Trace",
    "Transformer",
    "check_invariants",
    "compute",
    "compute_batch",
    "blocks_needed",
    "dense_attention",
    "fill",
    "load_smollm2",
    "merge_partials",
    "paged_attention_blocks",
    "paged_attention_gather",
    "partial_attention",
    "random_model",
]


def __getattr__(name: str):
    # `python -m paged_tutorial.weights` runs the module itself: importing it here would make two.
    if name in ("SMOLLM2", "ModelFileError", "Tokenizer", "load_smollm2"):
        return getattr(import_module(".weights", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
