"""The block pool: allocate, share, release, copy, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.lru import LRUManager
from paged_tutorial.pool import BlockPool, OutOfBlocksError

from helpers import quick


def state(pool):
    return list(pool.queue), list(pool.reference_counts)


def test_arrays_have_the_stated_shape_and_type():
    pool = BlockPool(5, 4, num_layers=3, num_kv_heads=2, head_dim=6, dtype=np.float16)
    assert pool.keys.shape == pool.values.shape == (3, 5, 4, 2, 6)
    assert pool.keys.dtype == pool.values.dtype == np.float16


def test_blocks_are_handed_out_in_order_until_none_is_left():
    pool = BlockPool(3)
    assert [pool.allocate() for _ in range(3)] == [0, 1, 2]
    assert pool.num_free == 0
    before = state(pool)
    with pytest.raises(OutOfBlocksError, match="out of blocks: 1 needed, 0 free") as caught:
        pool.allocate()
    assert (caught.value.needed, caught.value.free) == (1, 0)
    assert state(pool) == before


def test_a_shared_block_returns_when_its_last_holder_leaves():
    pool = BlockPool(2)
    block = pool.allocate()
    pool.share(block)
    pool.release(block)
    assert pool.num_free == 1
    pool.release(block)
    assert pool.num_free == 2


def test_sharing_a_free_block_takes_it_out_of_the_queue_with_its_content():
    pool = BlockPool(3, 2)
    block = pool.allocate()
    pool.keys[:, block] = 7
    pool.release(block, cached=True)
    pool.share(block)
    assert list(pool.queue) == [1, 2]
    assert (pool.keys[:, block] == 7).all()


def test_released_blocks_go_to_the_back_if_cached_and_else_to_the_front():
    pool = BlockPool(4)
    first, second = pool.allocate(), pool.allocate()
    pool.release(first, cached=True)
    pool.release(second, cached=False)
    assert list(pool.queue) == [1, 2, 3, 0]


def test_a_double_release_names_the_block_and_changes_nothing():
    pool = BlockPool(3)
    block = pool.allocate()
    pool.release(block)
    before = state(pool)
    with pytest.raises(ValueError, match=f"block {block} is released but nobody holds it"):
        pool.release(block)
    assert state(pool) == before


@pytest.mark.parametrize("block", [-1, 3, 1.0, "0", None, True])
@pytest.mark.parametrize("operation", ["share", "release"])
def test_a_block_that_does_not_exist_is_refused(operation, block):
    pool = BlockPool(3)
    pool.allocate()
    before = state(pool)
    with pytest.raises((TypeError, ValueError), match="block id must be"):
        getattr(pool, operation)(block)
    assert state(pool) == before


def test_ids_from_numpy_become_plain_ints_in_the_queue():
    pool = BlockPool(2)
    pool.share(np.int64(0))
    pool.release(np.int64(0), cached=True)
    assert [type(block) for block in pool.queue] == [int, int]


@pytest.mark.parametrize("name", ["num_layers", "num_kv_heads", "head_dim"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "4", None, True])
def test_sizes_must_be_positive_integers(name, value):
    with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
        BlockPool(4, 4, **{name: value})


@pytest.mark.parametrize("value", [0, -1, 1.5, "4", None, True])
def test_number_and_size_of_blocks_must_be_positive_integers(value):
    with pytest.raises((TypeError, ValueError), match="num_blocks must be"):
        BlockPool(value, 4)
    with pytest.raises((TypeError, ValueError), match="block_size must be"):
        BlockPool(4, value)


def test_copy_takes_all_layers_of_keys_and_values():
    pool = BlockPool(3, 2, num_layers=2, num_kv_heads=2, head_dim=2)
    pool.keys[:] = np.arange(pool.keys.size).reshape(pool.keys.shape)
    pool.values[:] = -pool.keys
    kept = pool.keys[:, 1].copy()
    pool.copy(0, 2)
    assert (pool.keys[:, 2] == pool.keys[:, 0]).all()
    assert (pool.values[:, 2] == pool.values[:, 0]).all()
    assert (pool.keys[:, 1] == kept).all()


def test_another_queue_with_the_same_interface_can_be_plugged_in():
    class LastInFirstOut(LRUManager):
        def pop(self):
            return self._order.popitem()[0]

    pool = BlockPool(3, queue=LastInFirstOut())
    assert [pool.allocate() for _ in range(3)] == [2, 1, 0]


@quick
@given(st.lists(st.tuples(st.sampled_from(["allocate", "share", "release"]), st.integers(0, 4))))
def test_counts_and_queue_always_agree(steps):
    pool, held = BlockPool(5), []
    for kind, block in steps:
        if kind == "allocate" and pool.num_free:
            held.append(pool.allocate())
        elif kind == "share":
            pool.share(block)
            held.append(block)
        elif kind == "release" and block in held:
            pool.release(block, cached=block % 2 == 0)
            held.remove(block)
        assert pool.reference_counts == [held.count(block) for block in range(5)]
        assert sorted(pool.queue) == [block for block in range(5) if block not in held]
        assert pool.num_free == len(list(pool.queue))


@pytest.mark.parametrize(("source", "target"), [(-1, 0), (0, -1), (3, 0), (0, 3), (True, 0)])
def test_a_copy_from_or_to_no_block_changes_nothing(source, target):
    pool = BlockPool(3, 2)
    pool.keys += np.arange(3)[:, None, None, None]
    before = pool.keys.tobytes()
    with pytest.raises((TypeError, ValueError), match="block id must be"):
        pool.copy(source, target)
    assert pool.keys.tobytes() == before
