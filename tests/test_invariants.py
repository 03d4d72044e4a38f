"""Break each rule by hand and see that check_invariants names it."""

import pytest

from paged_tutorial.hashing import BlockName
from paged_tutorial.invariants import InvariantError, check_invariants

from helpers import append, finish, make_cache, serve


def busy_cache():
    """Blocks 0, 1 shared by 'a' and 'b'; 2 the tail of 'a', 3 of 'b', 4 cached, 5 unused."""
    cache = make_cache(6)
    serve(cache, "a", range(10))
    serve(cache, "b", [*range(8), 20, 21])
    finish(cache, "c", [30, 31, 32, 33])
    cache.extend("b", [22])
    check_invariants(cache)
    return cache


def set_count(cache, block, count):
    cache.pool.reference_counts[block] = count


def double_in_queue(cache):
    order = [*cache.pool.queue, 5]
    cache.pool.queue = order


def move_name(cache, block, name):
    """Put another name on a block, and keep the index and the names in agreement."""
    cache.index.forget(block)
    cache.index.register(block, name)


ROOT = BlockName.root()
BREAKS = {
    "count too high": (lambda c: set_count(c, 0, 3), "block 0 has reference count 3, but 2"),
    "count too low": (lambda c: set_count(c, 2, 0), "block 2 has reference count 0, but 1"),
    "lost": (lambda c: c.pool.queue.remove(5), "block 5 is lost"),
    "used and free": (lambda c: c.pool.queue.put(0, True), "block 0 is in use and in the free"),
    "twice in the queue": (double_in_queue, "block 5 is in the free queue 2 times"),
    "no block in the queue": (lambda c: c.pool.queue.put(6, True), "free queue holds 6"),
    "no block in a table": (
        lambda c: c.holdings["a"].table.replace(2, -1),
        "'a' holds -1, which is no block",
    ),
    "twice in a table": (
        lambda c: c.holdings["a"].table.replace(2, 0),
        "request 'a' holds block 0 2 times",
    ),
    "name without entry": (
        lambda c: c.index.name_of.__setitem__(5, ROOT.child([1, 2, 3, 4])),
        "block 5 carries .* but the index has it not",
    ),
    "entry without name": (
        lambda c: c.index.name_of.__setitem__(4, None),
        "the index lists block 4 as .* it is None",
    ),
    "name of a part": (lambda c: move_name(c, 4, ROOT.child([30])), "a block that is not full"),
    "foreign tokens": (
        lambda c: move_name(c, 1, c.index.name_of[0].child([4, 5, 6, 9])),
        r"block 1, logical block 1 of request 'a'.*read \[4, 5, 6, 9\], but it reads \[4, 5, 6, 7",
    ),
    "foreign parent": (
        lambda c: move_name(c, 1, ROOT.child([9, 9, 9, 9]).child([4, 5, 6, 7])),
        r"logical block 0 read \[9, 9, 9, 9\]",
    ),
    "too shallow": (lambda c: move_name(c, 1, ROOT.child([4, 5, 6, 7])), "logical block 0 read"),
    "too deep": (
        lambda c: move_name(c, 0, ROOT.child([9] * 4).child(range(4))),
        "block 0 of request 'a' is named for another salt, adapter or depth",
    ),
    "foreign salt": (
        lambda c: move_name(c, 0, BlockName.root("salt").child(range(4))),
        "block 0 of request 'a' is named for another salt",
    ),
    "table too short": (
        lambda c: c.holdings["a"].tokens.extend([1] * 3),
        "request 'a' has 3 blocks for 13 tokens; it needs 4",
    ),
    "table too long": (
        lambda c: c.holdings["a"].tokens.__delitem__(slice(8, None)),
        "request 'a' has 3 blocks for 8 tokens; it needs 2",
    ),
    "missing out of order": (
        lambda c: c.holdings["b"].missing.update({9: None}),
        "missing positions of request 'b' are not ascending",
    ),
    "missing beyond the text": (
        lambda c: c.holdings["b"].missing.update({11: None}),
        "request 'b' misses position 11, beyond its text",
    ),
    "missing in a shared block": (
        lambda c: c.holdings["a"].missing.update({7: None}),
        "position 7 of request 'a' is missing, but its block 1 is shared",
    ),
    "missing in a named block": (
        lambda c: c.index.register(3, c.index.name_of[1].child([20, 21, 22, 23])),
        "position 10 of request 'b' is missing, but its block 3 carries a name",
    ),
}


@pytest.mark.parametrize("kind", BREAKS)
def test_a_broken_rule_is_named(kind):
    cache = busy_cache()
    break_it, sentence = BREAKS[kind]
    break_it(cache)
    with pytest.raises(InvariantError, match=sentence):
        check_invariants(cache)


def test_it_is_an_assertion_error():
    assert issubclass(InvariantError, AssertionError)


def test_a_forked_request_holds():
    cache = busy_cache()
    cache.fork("a", "d")
    append(cache, "d", [1])
    check_invariants(cache)
