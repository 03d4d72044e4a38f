"""Two policies side by side: the picture says what the caches did, and the widget moves it."""

import re

import pytest

from paged_tutorial import LRUManager
from paged_tutorial.block_cache import replay
from paged_tutorial.policies import FIFO, LFU, LIFO, Random, Sieve, TwoQueue
from paged_tutorial.views import what_if
from paged_tutorial.views.duel import draw_duel, draw_order

TRACE = "ABCABDAEABFAG"
PAIR = {"LRU": LRUManager, "FIFO": FIFO}


@pytest.mark.parametrize("capacity", (1, 3, 8, 20))
@pytest.mark.parametrize("step", (0, 1, 7, len(TRACE)))
def test_title_and_marks_are_the_hits_of_a_replay(step, capacity):
    picture = draw_duel(TRACE, step, capacity, PAIR)
    hits = {name: replay(TRACE[:step], capacity, make) for name, make in PAIR.items()}
    scores = ", ".join(f"{name} {number}" for name, number in hits.items())
    assert picture.title == f"Hits after {step} of {len(TRACE)} accesses: {scores}"
    without_patterns = re.sub(r"<pattern.*?</pattern>", "", picture.svg)
    assert without_patterns.count("<circle") == sum(hits.values())
    assert picture.svg.count("↑ next") == 2


def test_the_words_say_who_gives_way_and_who_is_next():
    trace = "PQPR"
    picture = draw_duel(trace, 4, 2, PAIR)
    assert "R is asked for. LRU: a miss, Q gives way. FIFO: a miss, P gives way." in picture.alt
    assert "LRU holds P, R; P would go next." in picture.alt
    assert "FIFO holds R, Q; Q would go next." in picture.alt
    assert "a block was still empty" in draw_duel(trace, 1, 2, PAIR).alt
    assert "All blocks are empty" in draw_duel(trace, 0, 2, PAIR).alt


@pytest.mark.parametrize("make", (LRUManager, FIFO, LFU, LIFO, Random, Sieve, TwoQueue))
def test_asking_who_is_next_changes_nothing(make):
    named = [draw_duel(TRACE, step, 3, {"it": make}) for step in range(len(TRACE))]
    for step, picture in enumerate(named):
        after = draw_duel(TRACE, step + 1, 3, {"it": make})
        following = re.search(r"; (.*?) would go next", picture.alt)[1]
        if "gives way" in after.alt:
            held, then = (
                re.search(r"it holds (.*?);", one.alt)[1].split(", ") for one in (picture, after)
            )
            assert then[held.index(following)] == TRACE[step]


@pytest.mark.parametrize("step", (-1, 14))
def test_a_step_outside_the_trace(step):
    with pytest.raises(ValueError, match=f"0 to 13, got {step}"):
        draw_duel(TRACE, step, 3, PAIR)


def test_the_widget_redraws_for_every_control():
    def duel(capacity=3, step=5, first="LRU"):
        return draw_duel(TRACE, step, capacity, {first: PAIR[first]})

    widget = what_if(duel, capacity=(2, 6), step=(0, 13), first=["LRU", "FIFO"])
    seen = [widget.view.value]
    for name, value in (("step", 12), ("capacity", 4), ("first", "FIFO")):
        widget.controls[name].value = value
        seen.append(widget.view.value)
    assert len(set(seen)) == 4
    assert "Hits after 12 of 13 accesses: FIFO" in seen[-1]


def test_an_order_of_keys():
    picture = draw_order("QP", "Your Recent")
    assert picture.alt == "Your Recent. Next to go first: Q, P."
    assert "empty" in draw_order([], "Your Recent").alt
    assert draw_order("ABCDEFGHIJKLMNOP", "many").alt.endswith("K, L.")
