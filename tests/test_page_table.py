"""The page table: position to block, offset and slot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.page_table import PageTable, blocks_needed

from helpers import quick

tables = st.tuples(st.integers(1, 64), st.lists(st.integers(0, 999), min_size=1, max_size=9))


@pytest.mark.parametrize(
    ("num_tokens", "expected"), [(0, 0), (1, 1), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3)]
)
def test_blocks_needed_rounds_up(num_tokens, expected):
    assert blocks_needed(num_tokens, 4) == expected


@quick
@given(tables, st.data())
def test_a_position_lies_in_its_logical_block_at_its_offset(table, data):
    block_size, block_ids = table
    position = data.draw(st.integers(0, len(block_ids) * block_size - 1))
    found = PageTable(block_size, block_ids)
    logical, block, offset = found.locate(position)
    assert logical * block_size + offset == position
    assert 0 <= offset < block_size
    assert block == block_ids[logical] == found[logical]
    assert found.slot(position) == block * block_size + offset


@quick
@given(tables, st.data())
def test_slot_mapping_is_the_slot_of_each_position_in_any_order(table, data):
    block_size, block_ids = table
    highest = len(block_ids) * block_size - 1
    positions = data.draw(st.lists(st.integers(0, highest), max_size=20))
    found = PageTable(block_size, block_ids)
    slots = found.slot_mapping(positions)
    assert slots.dtype == np.int64 and slots.shape == (len(positions),)
    assert slots.tolist() == [found.slot(position) for position in positions]


def test_slots_find_the_place_in_the_pool_seen_as_one_row():
    pool = np.arange(5 * 4 * 2).reshape(5, 4, 2)
    table = PageTable(4, [3, 1])
    assert (pool.reshape(-1, 2)[table.slot_mapping([2, 5])] == [pool[3, 2], pool[1, 1]]).all()


@pytest.mark.parametrize("position", [-1, 8, 100])
def test_a_position_outside_the_table_is_refused(position):
    table = PageTable(4, [3, 1])
    with pytest.raises(ValueError, match=str(position)):
        table.slot(position)
    with pytest.raises(ValueError, match="outside the table's 0 to 7"):
        table.slot_mapping([0, position])


@pytest.mark.parametrize("position", [1.0, "1", None, True])
def test_a_position_that_is_no_integer_is_refused(position):
    with pytest.raises(TypeError, match="position must be an integer"):
        PageTable(4, [3, 1]).slot(position)


def test_an_empty_table_covers_no_position():
    table = PageTable(4)
    assert len(table) == 0
    assert table.slot_mapping([]).shape == (0,)
    with pytest.raises(ValueError):
        table.slot(0)
    with pytest.raises(ValueError):
        table.slot_mapping([0])


def test_append_and_replace():
    table = PageTable(4, [3])
    table.append(1)
    table.replace(0, 7)
    assert table.block_ids == [7, 1]


def test_a_table_keeps_its_own_list():
    block_ids = [3, 1]
    table = PageTable(4, block_ids)
    table.append(2)
    assert block_ids == [3, 1]


@pytest.mark.parametrize("block_size", [0, -4, 4.0, "4", None])
def test_the_block_size_must_be_a_positive_integer(block_size):
    with pytest.raises((TypeError, ValueError), match="block_size must be"):
        PageTable(block_size)
