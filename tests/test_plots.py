"""Charts: one style, words for those who do not see them, the same output each time."""

import base64

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from paged_tutorial.views import show
from paged_tutorial.views.plots import axes, figure_html, line_labels, png


def chart():
    figure, axis = axes("Paging wastes less", "request length (tokens)", "waste (%)")
    axis.plot([0, 1, 2], [3, 2, 1], label="contiguous")
    axis.plot([0, 1, 2], [1, 1, 1], label="paged")
    line_labels(axis)
    return figure, axis


@pytest.fixture
def shown():
    """What a notebook would get."""
    shell = InteractiveShell.instance()
    before = shell.display_pub
    shell.display_pub = CapturingDisplayPublisher()
    yield shell.display_pub.outputs
    shell.display_pub = before
    InteractiveShell.clear_instance()


def test_a_chart_is_shown_with_its_words(shown):
    assert show(chart()[0], alt="Waste falls < to 1 %") is None
    words, image = shown
    assert "Chart: Waste falls &lt; to 1 %" in words["data"]["text/html"]
    assert image["metadata"]["image/png"]["alt"] == "Waste falls < to 1 %"
    assert base64.b64decode(image["data"]["image/png"]).startswith(b"\x89PNG")
    # Strict comparison of notebooks looks at all but PNG: it must not hold what may vary.
    assert set(image["data"]) == {"image/png", "text/plain"}


@pytest.mark.parametrize("alt", ["", "  ", None])
def test_a_chart_without_words_is_refused(alt):
    with pytest.raises(ValueError, match="alt must say in words"):
        show(chart()[0], alt=alt)


def test_the_same_chart_gives_the_same_bytes():
    assert png(chart()[0]) == png(chart()[0])


def test_the_ground_is_opaque_and_lines_differ_without_colour():
    figure, axis = chart()
    assert figure.get_facecolor() == (1, 1, 1, 1) == axis.get_facecolor()
    first, second = axis.get_lines()
    assert first.get_marker() != second.get_marker()
    assert first.get_linestyle() != second.get_linestyle()


def test_labels_at_the_ends_of_lines_stand_apart():
    figure, axis = chart()
    figure.draw_without_rendering()
    (upper, lower) = (label.get_window_extent() for label in axis.texts)
    assert axis.get_legend() is None and axis.texts[0].get_text() == "contiguous"
    assert not upper.overlaps(lower)


def test_several_axes_share_a_title():
    figure, axis = axes("Two", "x (s)", "y (s)", ncols=2)
    assert figure.get_suptitle() == "Two" and [one.get_xlabel() for one in axis] == ["x (s)"] * 2


def test_a_chart_in_a_widget_says_its_title():
    html = figure_html(chart()[0])
    assert html.startswith('<img alt="Paging wastes less"') and "data:image/png;base64," in html


def test_pyplot_forgets_a_figure_that_was_shown(shown):
    from matplotlib import pyplot

    figure = pyplot.figure()
    show(figure, "Empty")
    assert not pyplot.fignum_exists(figure.number)
