"""The LRU manager against a plain list: same order, same errors, whatever happens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.lru import LRUManager

from helpers import quick

operations = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 7), st.booleans()),
        st.tuples(st.just("remove"), st.integers(0, 7), st.just(False)),
        st.tuples(st.just("pop"), st.just(0), st.just(False)),
    ),
    max_size=60,
)


@quick
@given(st.lists(st.integers(0, 7), unique=True), operations)
def test_it_behaves_like_a_list(first, steps):
    queue, model = LRUManager(first), list(first)
    for kind, block, cached in steps:
        if kind == "put" and block in model:
            with pytest.raises(ValueError, match=f"block {block} is in the free queue already"):
                queue.put(block, cached)
        elif kind == "put":
            queue.put(block, cached)
            model.insert(len(model) if cached else 0, block)
        elif kind == "remove" and block not in model:
            with pytest.raises(KeyError):
                queue.remove(block)
        elif kind == "remove":
            queue.remove(block)
            model.remove(block)
        elif not model:
            with pytest.raises(KeyError):
                queue.pop()
        else:
            assert queue.pop() == model.pop(0)
        assert list(queue) == model
        assert len(queue) == len(model)
        assert [block in queue for block in range(8)] == [block in model for block in range(8)]


def test_a_cached_block_waits_longest_and_a_worthless_one_goes_next():
    queue = LRUManager([1, 2])
    queue.put(3, cached=True)
    queue.put(4, cached=False)
    assert [queue.pop() for _ in range(4)] == [4, 1, 2, 3]


def test_a_hit_and_return_makes_a_block_most_recent():
    queue = LRUManager([1, 2, 3])
    queue.remove(1)
    queue.put(1, cached=True)
    assert list(queue) == [2, 3, 1]
