"""The state of the widgets, in Python: moving a control changes the view."""

import asyncio
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

import ipywidgets
import pytest

from paged_tutorial import BlockPool, PagedEngine, Trace, random_model
from paged_tutorial.views import draw, explore, record, what_if
from paged_tutorial.views.controls import make_control
from paged_tutorial.views.plots import axes

from helpers import make_cache, serve


def recorded(num_blocks=8, observer=None):
    engine = PagedEngine(random_model(), num_blocks, 4, observer=observer)
    with record(engine) as recording:
        engine.generate([[1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 9, 9, 9, 9, 9]], max_new_tokens=6)
    return recording


RECORDING = recorded()


def step_of(widget):
    return int(re.search(r'data-step="(\d+)"', widget.view.value)[1])


def test_slider_and_buttons_move_through_the_steps():
    widget = explore(RECORDING)
    assert step_of(widget) == 0 and "before the first step" in widget.view.value
    widget.slider.value = 5
    assert step_of(widget) == 5
    widget.forward.click()
    assert step_of(widget) == widget.slider.value == 6
    widget.back.click()
    widget.back.click()
    assert step_of(widget) == 4
    assert RECORDING[4].sentence.replace("'", "&#x27;") in widget.view.value


def test_the_buttons_stop_at_both_ends():
    widget = explore(RECORDING)
    widget.back.click()
    assert step_of(widget) == 0
    widget.slider.value = widget.slider.max
    widget.forward.click()
    assert step_of(widget) == len(RECORDING) - 1


def test_play_runs_to_the_end_pauses_and_starts_again():
    async def watch():
        widget = explore(RECORDING.steps[:4], interval=5)
        widget.play.value = True
        assert widget.play.description == "Pause"
        while widget.play.value:
            await asyncio.sleep(0.01)
        assert step_of(widget) == 3 and widget.play.description == "Play"
        widget.play.value = True
        assert step_of(widget) == 0
        widget.play.value = False
        await asyncio.sleep(0.05)
        assert step_of(widget) == 0

    asyncio.run(watch())


def test_all_pictures_of_a_recording_have_one_size():
    widget = explore(RECORDING)
    sizes = set()
    for index in range(len(RECORDING)):
        widget.slider.value = index
        sizes.add(re.search(r'viewBox="(.*?)"', widget.view.value)[1])
        ElementTree.fromstring(widget.view.value)
    assert len(sizes) == 1


def test_a_trace_can_be_explored_without_the_object():
    trace = Trace()
    recorded(observer=trace)
    widget = explore(trace)
    widget.slider.value = 9
    assert step_of(widget) == 9


def test_nothing_to_explore_is_a_clear_error():
    with pytest.raises(ValueError, match="the recording is empty"):
        explore([])


def build(num_blocks=6, share=0.5, policy="b", holes=False):
    cache = make_cache(num_blocks)
    serve(cache, "A", range(9))
    return draw(cache, f"{share} {policy} {holes}")


def test_controls_start_at_the_defaults_and_redraw():
    widget = what_if(
        build, num_blocks=(2, 12), share=(0.0, 1.0), policy=["a", "b", "c"], holes=False
    )
    assert widget.values == {"num_blocks": 6, "share": 0.5, "policy": "b", "holes": False}
    assert "6 blocks" in widget.view.value
    seen = [step_of(widget)]
    for name, value in (("num_blocks", 9), ("share", 0.25), ("policy", "c"), ("holes", True)):
        widget.controls[name].value = value
        seen.append(step_of(widget))
    assert seen == [0, 1, 2, 3, 4]
    assert "9 blocks" in widget.view.value and "0.25 c True" in widget.view.value


def test_a_control_is_made_once(monkeypatch):
    made = []
    monkeypatch.setattr(
        "paged_tutorial.views.widgets.make_control",
        lambda name, *rest: made.append(name) or make_control(name, *rest),
    )
    what_if(build, num_blocks=(2, 12), policy=["a", "b"])
    assert made == ["num_blocks", "policy"]


def test_each_control_has_a_label_and_a_tooltip():
    widget = what_if(build, num_blocks=(2, 12), policy=["a", "b"])
    for control in widget.controls.values():
        assert control.description and control.tooltip
    explorer = explore(RECORDING)
    for control in (explorer.play, explorer.back, explorer.forward, explorer.slider):
        assert control.description and control.tooltip


def test_a_value_that_cannot_be_built_is_told_and_the_widget_goes_on():
    widget = what_if(build, num_blocks=(1, 12))
    widget.controls["num_blocks"].value = 2
    assert "OutOfBlocksError: out of blocks: 3 needed, 2 free" in widget.view.value
    widget.controls["num_blocks"].value = 3
    assert "3 blocks" in widget.view.value


def frame_of(widget):
    """The shape of the view and of the picture in it, as the page gets them."""
    return re.findall(r"aspect-ratio:[\d./]+", widget.view.value)


def test_the_view_keeps_its_height_for_every_value():
    widget = what_if(lambda n, m: draw(BlockPool(n * m, 4)), n=(1, 30), m=[1, 2, 10])
    frame = frame_of(widget)
    assert len(frame) == 2 and len(set(frame)) == 1
    viewed = set()
    for n, m in ((30, 1), (1, 10), (30, 10), (7, 2), (1, 1)):
        widget.controls["n"].value, widget.controls["m"].value = n, m
        assert frame_of(widget) == frame
        viewed.add(re.search(r'viewBox="(.*?)"', widget.view.value)[1])
        ElementTree.fromstring(widget.view.value)
    assert len(viewed) == 1  # and all at one scale


def test_an_error_keeps_the_height():
    widget = what_if(build, num_blocks=(1, 12))
    frame = frame_of(widget)[0]
    widget.controls["num_blocks"].value = 1
    assert "That does not work" in widget.view.value and frame_of(widget) == [frame]


def test_a_picture_taller_than_all_that_were_tried_is_shrunk_to_fit():
    def surprise(n=5):
        return draw(BlockPool(300 if n == 7 else 4, 4))

    widget = what_if(surprise, n=(0, 10**6))
    frame = frame_of(widget)
    widget.controls["n"].value = 7
    assert "300 blocks" in widget.view.value and frame_of(widget) == frame
    width, height = map(float, frame[0].split(":")[1].split("/"))
    _, _, _, tall = map(float, re.search(r'viewBox="(.*?)"', widget.view.value)[1].split())
    assert tall > height


def test_slow_pictures_are_tried_at_the_ends_only():
    tried = []

    def slow(n=5, other="a"):
        tried.append((n, other))
        time.sleep(0.06)
        return draw(BlockPool(n, 4))

    what_if(slow, n=(1, 9), other=["a", "b"])
    assert {(1, "a"), (9, "a"), (5, "b")} <= set(tried) and len(tried) < 20


def test_a_chart_is_redrawn_when_the_hand_lets_go():
    def chart(slope=1.0):
        figure, axis = axes("Slope", "x (s)", "y (s)")
        axis.plot([0, 1], [0, slope])
        return figure

    widget = what_if(chart, slope=(0.0, 2.0))
    assert widget.controls["slope"].continuous_update is False
    assert frame_of(widget) == ["aspect-ratio:780/360"]
    before = widget.view.value
    widget.controls["slope"].value = 2.0
    assert widget.view.value != before and 'alt="Slope"' in widget.view.value


@pytest.mark.parametrize("control", [3, (1,), (1, 2, 3, 4), "abc"])
def test_a_control_that_is_none_is_a_clear_error(control):
    with pytest.raises(TypeError, match="n=.* is no control"):
        what_if(lambda n: "", n=control)


def test_what_if_needs_a_control():
    with pytest.raises(ValueError, match="needs a control"):
        what_if(lambda: "")


def test_widgets_hold_no_output_area():
    for widget in (explore(RECORDING), what_if(build, num_blocks=(2, 12))):
        todo = [widget]
        while todo:
            one = todo.pop()
            assert not isinstance(one, ipywidgets.Output)
            todo += getattr(one, "children", ())


def test_a_page_without_a_kernel_says_what_is_missing():
    assert repr(explore(RECORDING)).startswith("Run this notebook to step through")
    assert repr(what_if(build, num_blocks=(2, 9))).endswith("other values of num_blocks here.")


def test_pictures_need_neither_matplotlib_nor_ipywidgets():
    script = (
        "import sys, paged_tutorial\n"
        "assert 'paged_tutorial.views' not in sys.modules\n"
        "from paged_tutorial.views import draw, record, source\n"
        "draw(paged_tutorial.BlockPool(4))\n"
        "print([name for name in ('matplotlib', 'ipywidgets') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_speed_is_printed(capsys):
    widget = explore(RECORDING)
    rebuilt = what_if(build, num_blocks=(3, 256))
    times = {"explore": [], "what_if, up to 256 blocks": []}
    for value in range(3, 40):
        for name, control, number in (
            ("explore", widget.slider, value),
            ("what_if, up to 256 blocks", rebuilt.controls["num_blocks"], value * 6),
        ):
            start = time.perf_counter()
            control.value = number
            times[name].append(time.perf_counter() - start)
    with capsys.disabled():
        for name, taken in times.items():
            middle = sorted(taken)[len(taken) // 2] * 1000
            print(
                f"\n[benchmark] {name}: {middle:.1f} ms from slider to picture (limit 50 ms)",
                end="",
            )
        print()
