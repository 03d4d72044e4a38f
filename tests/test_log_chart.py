"""The chart with two logarithmic axes: equal ratios are equal distances, and words say it all."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.views.log_chart import LABEL_GAP, Scale, draw_lines
from paged_tutorial.views.svg import apart


def chart(lines, x=(1, 10, 100), **options):
    return draw_lines(lines, x, "Title", "tokens", "seconds", ticks=[1, 10, 100], **options)


def ways(picture) -> list[list[tuple[float, float]]]:
    """The points of each line of the chart."""
    found = re.findall(r'd="M([\d. L-]+)" fill="none"', picture.svg)
    return [[tuple(map(float, at.split())) for at in way.split("L")] for way in found if "L" in way]


def test_equal_ratios_are_equal_distances():
    (way,) = ways(chart({"line": [0.01, 1, 100]}))
    (x0, y0), (x1, y1), (x2, y2) = way
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)


numbers = st.floats(1e-6, 1e6)


@given(numbers, numbers)
def test_a_scale_puts_the_middle_ratio_into_the_middle(low, ratio):
    scale = Scale(low, low * (1 + ratio), 40, 240)
    middle = low * (1 + ratio) ** 0.5
    assert scale(middle) == pytest.approx(140, abs=0.5)


@given(st.lists(st.floats(0, 300), min_size=1, max_size=6))
def test_names_never_touch_and_keep_their_order(heights):
    placed = apart(heights, LABEL_GAP)
    ordered = [placed[n] for n in sorted(range(len(heights)), key=heights.__getitem__)]
    assert all(lower - upper >= LABEL_GAP - 1e-6 for upper, lower in pairwise(ordered))
    assert all(placed[n] >= height for n, height in enumerate(heights))


@pytest.mark.parametrize("level", (0.004, 1, 3e6))
def test_a_level_line_stays_inside_and_its_ticks_are_plain_numbers(level):
    picture = chart({"level": [level] * 3})
    (way,) = ways(picture)
    assert len({y for _, y in way}) == 1
    assert 0 < way[0][1] < picture.height
    assert "e+" not in picture.svg and "e-0" not in picture.svg


def test_lines_differ_in_more_than_colour_and_the_words_name_them():
    picture = chart({"first": [1, 2, 3], "second": [3, 2, 1]}, dotted=[10])
    assert picture.svg.count("stroke-dasharray") == 2  # the second line and the dotted one
    assert "first: from 1.00 at 1 to 3.00 at 100." in picture.alt
    assert "second: from 3.00 at 1 to 1.00 at 100." in picture.alt


@pytest.mark.parametrize("lines", ({}, {"empty": []}))
def test_nothing_to_draw_is_said(lines):
    with pytest.raises(ValueError, match="nothing to draw"):
        chart(lines)


def test_a_number_without_a_logarithm_is_named():
    with pytest.raises(ValueError, match="above zero, got -2"):
        chart({"line": [1, -2, 3]})


@pytest.mark.parametrize("x", ([1, 1, 2], [1, 3, 2]))
def test_x_must_rise(x):
    with pytest.raises(ValueError, match="x must rise"):
        chart({"line": [1, 2, 3]}, x)
