"""The picture of the ways back and the charts of the cost model."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from paged_tutorial.restore_cost import Machine, swap_seconds
from paged_tutorial.shapes import SHAPES
from paged_tutorial.views import what_if
from paged_tutorial.views.restore_chart import chart_by_block_size, chart_by_length, finding
from paged_tutorial.views.ways_back import draw_ways

from helpers import make_cache, serve

WAYS = {"all": range(10), "from the first hole": range(4, 10), "only the holes": (4, 5, 9)}
GPU = Machine(400e12, 2e12, 10e9, 10e-6)


def texts(picture):
    """All text of a picture, in order."""
    tree = ElementTree.fromstring(picture.svg)
    return [node.text for node in tree.iter() if node.tag.endswith("}text")]


def squares(picture):
    """How many squares each fill has, in lines of the picture."""
    return [(d.count("M"), fill) for d, fill in re.findall(r'<path d="(M[^"]*z)" fill="(#\w+)"',
                                                           picture.svg)]  # fmt: skip


def test_each_way_has_its_squares_and_its_count():
    picture = draw_ways(10, 2, {0, 1, 3}, WAYS, "Three ways")
    found = texts(picture)
    for name, count in (("all", "10 tokens"), ("only the holes", "3 tokens")):
        assert found[found.index(name) + 1] == count
    # The first way computes all: it has no pale square.
    assert [number for number, _ in squares(picture)] == [10, 4, 6, 7, 3]
    assert "missing: 2, 4" in picture.alt and "only the holes 3" in picture.alt


def test_missing_blocks_have_a_question_mark_instead_of_a_number():
    found = texts(draw_ways(10, 2, {0, 1, 3}, WAYS, "Three ways"))
    assert found.count("?") == 2
    assert [number for number in found if number.isdigit()] == ["0", "1", "3"]


def test_a_position_outside_the_text_is_refused():
    with pytest.raises(ValueError, match="all: position 10 is outside 0 to 9"):
        draw_ways(10, 2, (), {"all": range(11)}, "No")


@pytest.mark.parametrize("block_size", [1, 4, 16, 32])
def test_long_texts_and_all_block_sizes_can_be_drawn(block_size):
    picture = draw_ways(130, block_size, set(), {"all": range(130)}, "Long", "And said.")
    ElementTree.fromstring(picture.svg)
    assert picture.alt.endswith("And said.")


def test_controls_redraw_what_a_real_cache_says():
    tokens = list(range(30))

    def build(lost=1, block_size=4, holes=True):
        cache = make_cache(16, block_size, holes=holes)
        serve(cache, "chat", tokens)
        cache.release("chat")
        found = cache.match(tokens).blocks
        for logical in list(found)[:lost]:
            cache.evict(found[logical])
        cache.admit("chat", tokens)
        kept = set(list(found)[lost:])
        return draw_ways(30, block_size, kept, {"computed": cache.missing("chat")}, "Play")

    widget = what_if(build, lost=(0, 6), block_size=[4, 8], holes=True)
    seen = {widget.view.value}
    for control, value in (("lost", 3), ("block_size", 8), ("holes", False)):
        widget.controls[control].value = value
        assert "That does not work" not in widget.view.value
        seen.add(widget.view.value)
    assert len(seen) == 4


def test_the_finding_tells_each_change():
    lengths = [10, 20, 30, 40]
    level = np.full(4, 2.0)
    assert finding(lengths, level, level + 1) == "swap is faster at every length"
    assert finding(lengths, level, level - 1) == "recompute is faster at every length"
    twice = finding(lengths, np.array([1, 3, 3, 1.0]), level)
    once = finding(lengths, np.array([3, 3, 1, 1.0]), level)
    assert once == "recompute is faster up to 20 tokens, then swap"
    assert twice == "swap is faster up to 10 tokens, recompute up to 30, then swap"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_charts_of_all_models_can_be_drawn(shape):
    for block_size in (1, 16, 256):
        picture = chart_by_length(shape, block_size, GPU)
        assert picture.title.startswith(f"{shape.name}: ")
        assert "swap in: from" in picture.alt and "recompute: from" in picture.alt
    picture = chart_by_block_size(shape, 512, GPU, [1, 4, 16, 64], "Title")
    said = re.findall(
        r"(swap in|swap out and in): from ([\d,.]+) at 1 to ([\d,.]+) at 64", picture.alt
    )
    assert [name for name, *_ in said] == ["swap in", "swap out and in"]
    for times, (_, first, last) in enumerate(said, 1):
        for size, number in ((1, first), (64, last)):
            milliseconds = times * 1e3 * swap_seconds(shape, 512, size, GPU)
            assert float(number.replace(",", "")) == pytest.approx(milliseconds, rel=0.01)


def test_numbers_that_do_not_fit_into_their_blocks_are_left_out():
    found = texts(draw_ways(91, 2, set(range(45)), {"all": range(91)}, "Small blocks"))
    assert [number for number in found if number.isdigit()] == [str(n) for n in range(10)]
