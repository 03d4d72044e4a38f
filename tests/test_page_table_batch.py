"""Slots of a ragged batch: against one token at a time, and against what the model is given."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.attention import paged_attention_gather
from paged_tutorial.model import DenseKV, random_model
from paged_tutorial.page_table import (
    NO_BLOCK,
    PageTable,
    ragged_batch,
    ragged_slot_mapping,
    stack_tables,
)
from paged_tutorial.paged_batch import PagedBatch
from paged_tutorial.pool import BlockPool
from paged_tutorial.views import draw_page_table
from paged_tutorial.views.palette import GOLD

from helpers import quick


@st.composite
def plans(draw):
    """Requests of any length, with any of their positions, in any order; some with none."""
    block_size = draw(st.integers(1, 9))
    plan = []
    for _ in range(draw(st.integers(0, 5))):
        blocks = draw(st.lists(st.integers(0, 999), max_size=6))
        positions = st.integers(0, max(0, len(blocks) * block_size - 1))
        chosen = draw(st.lists(positions, max_size=12)) if blocks else []
        plan.append((PageTable(block_size, blocks), chosen))
    return plan


@quick
@given(plans())
def test_every_token_goes_where_its_own_table_says(plan):
    batch = ragged_batch(plan)
    expected = [table.slot(position) for table, chosen in plan for position in chosen]
    assert batch.slot_mapping.tolist() == expected
    assert batch.positions.tolist() == [position for _, chosen in plan for position in chosen]
    for index, (table, chosen) in enumerate(plan):
        rows = slice(batch.query_start[index], batch.query_start[index + 1])
        assert batch.positions[rows].tolist() == list(chosen)
        assert batch.sequence_lengths[index] == max(chosen, default=-1) + 1
        row = batch.page_tables[index].tolist()
        assert row[: len(table)] == table.block_ids
        assert set(row[len(table) :]) <= {NO_BLOCK}
    assert all(array.dtype == np.int64 for array in batch)


@quick
@given(plans())
def test_the_arrays_are_those_that_the_model_is_given(plan):
    texts = [SimpleNamespace(tokens=range(999), table=table) for table, _ in plan]
    chosen = [positions for _, positions in plan]
    given_to_model = PagedBatch(BlockPool(1), list(zip(texts, chosen, strict=True)), None)
    batch = ragged_batch(plan)
    assert batch.slot_mapping.tolist() == given_to_model.slot_mapping.tolist()
    assert batch.positions.tolist() == given_to_model.batch.positions.tolist()
    assert batch.query_start.tolist() == given_to_model.batch.query_start.tolist()


@quick
@given(plans(), st.data())
def test_a_position_beyond_the_table_of_its_own_request_is_refused(plan, data):
    if not plan:
        return
    index = data.draw(st.integers(0, len(plan) - 1))
    table, chosen = plan[index]
    limit = len(table) * table.block_size
    position = data.draw(st.one_of(st.integers(-30, -1), st.integers(limit, limit + 30)))
    spoiled = [*plan]
    spoiled[index] = (table, [*chosen, position])
    with pytest.raises(ValueError, match=rf"position {position} .* request {index}$"):
        ragged_batch(spoiled)


@pytest.mark.parametrize("requests", [1, 3])
def test_a_query_start_for_other_requests_than_have_tables_is_refused(requests):
    tables = stack_tables([[3], [4]])
    query_start = [0] * requests + [1]
    with pytest.raises(ValueError, match="does not share out 1 tokens among 2 requests"):
        ragged_slot_mapping(tables, query_start, np.array([0]), 4)


@pytest.mark.parametrize("query_start", [[0, 2], [0, 4], [1, 3], [0, 5, 3]])
def test_a_query_start_that_does_not_share_out_the_tokens_is_refused(query_start):
    tables = stack_tables([[3]] * (len(query_start) - 1))
    with pytest.raises(ValueError, match="does not share out 3 tokens"):
        ragged_slot_mapping(tables, np.array(query_start), np.arange(3), 8)


def test_tables_of_different_block_sizes_are_refused():
    with pytest.raises(ValueError, match=r"one block size, got \[4, 8\]"):
        ragged_batch([(PageTable(4, [0]), [0]), (PageTable(8, [1]), [0])])


def test_the_arguments_stay_as_they_are():
    tables, start, positions = stack_tables([[3, 1], [2]]), np.array([0, 1, 2]), np.array([5, 3])
    before = [array.copy() for array in (tables, start, positions)]
    ragged_slot_mapping(tables, start, positions, 4)
    assert all(map(np.array_equal, before, (tables, start, positions)))
    with pytest.raises(ValueError):
        ragged_slot_mapping(tables, start, np.array([5, 99]), 4)


def test_stacked_tables_are_padded():
    stacked = stack_tables([[3, 1], [], [2]])
    assert stacked.tolist() == [[3, 1], [NO_BLOCK] * 2, [2, NO_BLOCK]]
    assert stack_tables([]).shape == (0, 0)
    assert stack_tables([[], []]).shape == (2, 0)


def test_moving_the_blocks_changes_nothing_for_the_model():
    """The blocks of a text change places in the pool; its table follows; the logits are equal."""
    model = random_model()
    config = model.config
    tokens = list(range(30, 43))
    dense = DenseKV(config, len(tokens))
    expected = model.forward(tokens, range(len(tokens)), dense.at(np.arange(len(tokens))))[-1]
    for seed in range(5):
        generator = np.random.default_rng(seed)
        pool = BlockPool(
            7,
            4,
            num_layers=config.num_layers,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
        )
        text = SimpleNamespace(tokens=tokens, table=PageTable(4, generator.permutation(7)[:4]))
        for positions in (range(9), range(9, 13)):
            batch = PagedBatch(pool, [(text, positions)], paged_attention_gather)
            logits = model.forward(batch.tokens, batch.positions, batch)[-1]
            moved_to = generator.permutation(7)
            pool.keys[:, moved_to] = pool.keys.copy()
            pool.values[:, moved_to] = pool.values.copy()
            text.table.block_ids = [int(moved_to[block]) for block in text.table.block_ids]
        np.testing.assert_allclose(logits, expected, atol=1e-5)


@pytest.mark.parametrize(("block_size", "framed"), [(4, True), (16, True), (64, False)])
def test_the_picture_of_a_position_frames_its_slot(block_size, framed):
    """Row, block and slot have a golden frame; slots that are not drawn singly have none."""
    picture = draw_page_table(PageTable(block_size, [2, 0]), position=block_size + 1)
    assert picture.svg.count(f'stroke="{GOLD}"') == (4 if framed else 3)  # with the line
    assert f"slot is 0 × {block_size} + 1 = 1" in picture.alt
