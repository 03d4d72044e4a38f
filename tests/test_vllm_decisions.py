"""Strict prefix mode decides as vLLM does, in all 200 recorded workloads, and stays short."""

import ast
import inspect
import io
import json
import textwrap
import tokenize
from pathlib import Path

import pytest

from paged_tutorial.cache import PagedKVCache
from paged_tutorial.invariants import check_invariants
from paged_tutorial.lru import LRUManager
from paged_tutorial.pool import BlockPool, OutOfBlocksError

from helpers import make_cache

RECORDS = json.loads((Path(__file__).parent / "data" / "vllm_decisions.json").read_text())
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def test_all_workloads_are_here():
    assert len(RECORDS) == 200
    assert sum(len(record["operations"]) for record in RECORDS) == 7205


def fits(action, *arguments):
    """Do something. Returns whether there were blocks enough for it."""
    try:
        action(*arguments)
    except OutOfBlocksError:
        return False
    return True


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"seed{record['seed']}")
def test_every_decision_equals_the_recorded_one(record):
    cache = make_cache(record["num_blocks"], record["block_size"], holes=False)
    for step, operation in enumerate(record["operations"]):
        request_id = operation["id"]
        where = f"operation {step}: {operation}"
        if operation["op"] == "start":
            hits = len(cache.match(operation["tokens"]).blocks) * cache.block_size
            assert hits == operation["hit"], where
            assert cache.can_admit(operation["tokens"]) == operation["ok"], where
            assert fits(cache.admit, request_id, operation["tokens"]) == operation["ok"], where
            if operation["ok"]:
                cached = len(operation["tokens"]) - len(cache.missing(request_id))
                assert cached == operation["hit"], where
        elif operation["op"] == "append":
            ok = fits(cache.extend, request_id, [operation["token"]])
            assert ok == operation["ok"], where
        else:
            cache.release(request_id)
        if request_id in cache.holdings:
            cache.commit(request_id, cache.missing(request_id))
        assert cache.pool.num_free == operation["free"], where
    check_invariants(cache)


def code_lines(function):
    """Lines of a function that hold code: no blank lines, comments or docstring."""
    source = textwrap.dedent(inspect.getsource(function))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {
        line
        for token in tokens
        if token.type not in LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    definition = ast.parse(source).body[0]
    if ast.get_docstring(definition) is not None:
        docstring = definition.body[0]
        lines -= set(range(docstring.lineno, docstring.end_lineno + 1))
    return len(lines)


def test_code_lines_are_counted_without_comments_and_docstrings():
    def example(value):
        """A docstring

        of three lines.
        """
        # a comment

        text = "# no comment"  # a comment after code
        return (
            value,
            text,
        )

    assert code_lines(example) == 6


def test_what_decides_is_under_120_lines():
    deciding = [
        PagedKVCache.match,
        PagedKVCache._needed,
        PagedKVCache.admit,
        PagedKVCache.extend,
        PagedKVCache.commit,
        PagedKVCache.release,
        PagedKVCache._take,
        PagedKVCache._name,
        BlockPool.allocate,
        BlockPool.share,
        BlockPool.release,
        LRUManager.put,
        LRUManager.remove,
        LRUManager.pop,
    ]
    lines = {function.__qualname__: code_lines(function) for function in deciding}
    assert sum(lines.values()) < 120, lines
