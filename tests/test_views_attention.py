"""The pictures of attention: right numbers, one size for all steps, words for those who hear."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from paged_tutorial import dense_attention
from paged_tutorial.views import what_if
from paged_tutorial.views.attention import LIMITS, SHADES, Arrival, draw_arrivals, draw_weights

NUMBERS = np.random.default_rng(0).normal(size=(2, 8, 6))


def states_of(scores, values, order):
    """The online softmax in double precision, one block of two after the other."""
    states = [(-np.inf, 0.0, np.zeros(values.shape[1]))]
    for block in order:
        at = slice(2 * block, 2 * block + 2)
        highest, total, output = states[-1]
        new = max(highest, scores[at].max())
        shrink, weights = np.exp(highest - new), np.exp(scores[at] - new)
        states.append((new, total * shrink + weights.sum(), output * shrink + weights @ values[at]))
    return states[1:]


def arrivals_picture(arrived=2, order=(0, 1, 2, 3), caption="Block 1 arrives."):
    """Four blocks of two tokens, of which the last sees all."""
    keys, values = NUMBERS
    exact = dense_attention(keys[-1:, None], keys[:, None], values[:, None], [7])[0, 0]
    scores = keys @ keys[-1] / np.sqrt(6)
    blocks = [Arrival(f"block {b}", ["<a>", "\n"], scores[2 * b : 2 * b + 2]) for b in order]
    states = states_of(scores, values, order[:arrived])
    return draw_arrivals(blocks, states, exact, "Four blocks", caption)


def texts(picture):
    """All text of a picture, in order."""
    tree = ElementTree.fromstring(picture.svg)
    return [node.text for node in tree.iter() if node.tag.endswith("}text")]


def weights_of(number):
    """Causal weights, each row equal over what it sees."""
    return np.tril(np.ones((number, number))) / np.arange(1, number + 1)[:, None]


def test_the_shares_of_the_last_row_stand_above_the_blocks():
    picture = draw_weights(weights_of(34), [f"w{n}" for n in range(34)], [7, 2, 5], 16, "Equal")
    found = texts(picture)
    # The last block is too narrow for the word.
    assert found[found.index("block 7") + 1] == "47%"
    assert found[found.index("block 2") + 1] == "47%"
    assert "block 5" not in found
    assert found[found.index("5") + 1] == "6%"
    assert "block 7 47%, block 2 47%, block 5 6%" in picture.alt
    assert picture.alt.startswith("Equal")


def test_each_weight_has_one_square_of_its_shade():
    weights = np.zeros((3, 3))
    weights[0, 0], weights[1, :2], weights[2, :] = 1, (0.5, 0.5), (0.005, 0.05, 0.945)
    picture = draw_weights(weights, "abc", [0, 1], 2, "Shades")
    squares = {
        colour: d.count("M")
        for d, colour in re.findall(r'<path d="(\S.*?z)" fill="(#.*?)"', picture.svg)
    }
    wanted = {}
    for weight in weights.ravel():
        if weight >= LIMITS[0]:
            shade = SHADES[sum(weight >= limit for limit in LIMITS) - 1]
            wanted[shade] = wanted.get(shade, 0) + 1
    assert {colour: squares[colour] for colour in wanted} == wanted


def test_shades_grow_darker():
    lightness = [sum(int(shade[at : at + 2], 16) for at in (1, 3, 5)) for shade in SHADES]
    assert lightness == sorted(lightness, reverse=True)


def test_labels_and_weights_must_fit():
    with pytest.raises(ValueError, match=r"2 labels need weights \(2, 2\), got \(3, 3\)"):
        draw_weights(weights_of(3), ["a", "b"], [0], 4, "No")


def test_the_last_arrival_gives_the_exact_answer_in_any_order():
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        found = texts(arrivals_picture(4, order))
        assert found.count("under 1e-5") == 1
    assert "under 1e-5" not in texts(arrivals_picture(3))


def test_highest_and_total_stand_below_the_blocks_that_have_arrived():
    keys, values = NUMBERS
    scores = keys @ keys[-1] / np.sqrt(6)
    found = texts(arrivals_picture(3))
    for highest, total, _ in states_of(scores, values, (0, 1, 2)):
        assert f"{highest:.2f}" in found and f"{total:.2f}" in found
    assert f"{states_of(scores, values, range(4))[-1][1]:.2f}" not in found


def test_all_steps_have_one_size_and_are_told_in_words():
    pictures = [arrivals_picture(arrived) for arrived in range(5)]
    assert len({(picture.width, picture.height) for picture in pictures}) == 1
    assert "0 of 4 blocks; the output is not there yet" in pictures[0].alt
    assert "3 of 4 blocks" in pictures[3].alt and "Block 1 arrives." in pictures[3].alt


@pytest.mark.filterwarnings("error")
def test_a_block_that_is_wholly_masked_can_be_drawn():
    hidden = Arrival("block 0", [], np.full(4, -np.inf))
    seen = Arrival("block 1", ["a"], np.array([1.0]))
    nothing = (-np.inf, 0.0, np.zeros(3))
    exact = np.ones(3)
    picture = draw_arrivals([hidden, seen], [nothing], exact, "Hidden")
    assert "-inf" in texts(picture) and "nan" not in picture.svg
    draw_arrivals([hidden, seen], [nothing, (1.0, 1.0, exact)], exact, "Then one is seen")


def test_controls_redraw_the_state():
    widget = what_if(
        lambda arrived=2, backwards=False: arrivals_picture(
            arrived, (3, 2, 1, 0) if backwards else (0, 1, 2, 3)
        ),
        arrived=(0, 4),
        backwards=False,
    )
    seen = {widget.view.value}
    for control, value in (("arrived", 4), ("backwards", True), ("arrived", 1)):
        widget.controls[control].value = value
        assert "That does not work" not in widget.view.value
        ElementTree.fromstring(widget.view.value)
        seen.add(widget.view.value)
    assert len(seen) == 4
