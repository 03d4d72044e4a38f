"""Widgets: step through what happened, and ask what would happen if.

Each is a row of controls over one HTML view. A control sets the view's value through
`observe`, so nothing flickers, and a page without a kernel keeps a line that says what is
missing. The HTML carries `data-step`, which changes with each new picture.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Sequence
from html import escape

import ipywidgets

from .controls import make_control, samples
from .draw import Layout, paint
from .legend import ENTRIES
from .plots import DPI, figure_html
from .recording import Step
from .svg import Picture

ALL = ("tables", "pool", "queue", "store")
PATIENCE = 0.5  # seconds, to look for the tallest picture
PROBLEM = (
    'style="background:#FFF4E5;color:#1F2933;border-left:4px solid #D55E00;'
    'padding:12px;border-radius:4px;font-family:system-ui,sans-serif"'
)


class Explorer(ipywidgets.VBox):
    """Plays a recording: `play`, `back`, `forward`, `slider` and the `view`."""

    def __init__(self, steps: Sequence[Step], title: str | None, parts, interval: int) -> None:
        self.steps, self.title, self.parts = steps, title, parts
        self.interval = interval
        self._frame()
        last = len(steps) - 1
        # The player of ipywidgets has buttons without names, which nobody can read aloud.
        self.play = ipywidgets.ToggleButton(
            description="Play", icon="play", tooltip="Play or pause"
        )
        self.back = ipywidgets.Button(
            description="Back", icon="step-backward", tooltip="One step back"
        )
        self.forward = ipywidgets.Button(
            description="Forward", icon="step-forward", tooltip="One step forward"
        )
        for button in (self.play, self.back, self.forward):
            button.layout = ipywidgets.Layout(width="98px")
        self.slider = ipywidgets.IntSlider(
            min=0,
            max=last,
            description="Step",
            tooltip="Which step to show; arrow keys move it",
            style={"description_width": "initial"},
            layout=ipywidgets.Layout(flex="1 1 220px", max_width="420px"),
        )
        self.view = ipywidgets.HTML()
        self.play.observe(self._toggle, "value")
        self.back.on_click(lambda _: self._move(-1))
        self.forward.on_click(lambda _: self._move(+1))
        self.slider.observe(self._show, "value")
        self._show()
        controls = ipywidgets.HBox(
            [self.play, self.back, self.forward, self.slider],
            layout=ipywidgets.Layout(flex_flow="row wrap"),
        )
        super().__init__([controls, self.view])

    def _frame(self) -> None:
        """Height and legend that fit every step, so that nothing jumps."""
        plans = [self._plan(step) for step in self.steps]
        shown = {key for plan in plans for key in plan.legend}
        self.legend = [key for key in ENTRIES if key in shown]
        self.height = max(plan.height(self.legend) for plan in plans)

    def _plan(self, step: Step) -> Layout:
        return Layout(step.snapshot, self.title, step.sentence, step.highlight, self.parts)

    def _move(self, by: int) -> None:
        self.slider.value = min(self.slider.max, max(0, self.slider.value + by))

    def _toggle(self, change) -> None:
        self.play.icon = "pause" if change.new else "play"
        self.play.description = "Pause" if change.new else "Play"
        if change.new:
            if self.slider.value == self.slider.max:
                self.slider.value = 0
            self._playing = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Step forward until the end, or until somebody presses pause."""
        task = asyncio.current_task()
        while self.slider.value < self.slider.max:
            await asyncio.sleep(self.interval / 1000)
            if not self.play.value or self._playing is not task:
                return
            self._move(+1)
        self.play.value = False

    def _show(self, _=None) -> None:
        index = self.slider.value
        picture = paint(self._plan(self.steps[index]), self.height, self.legend)
        self.view.value = picture.html(step=index)

    def __repr__(self) -> str:
        return f"Run this notebook to step through {len(self.steps)} pictures here."


def explore(
    recording, title: str | None = None, *, parts: Sequence[str] = ALL, interval: int = 700
) -> Explorer:
    """Play, step back, step forward, slide through a recording, one sentence a step.

    recording: a Recording, a list of its steps, or a Trace, whose state is then rebuilt
    parts: which of tables, pool, queue, store to show; interval: milliseconds a step
    """
    steps = list(getattr(recording, "steps", recording))
    if steps and not isinstance(steps[0], Step):
        from .replay import replay

        steps = replay(steps).steps
    if not steps:
        raise ValueError("there is no step to show: the recording is empty")
    return Explorer(steps, title, parts, interval)


class WhatIf(ipywidgets.VBox):
    """Controls, in `controls` by name, and the `view` that is rebuilt from their values."""

    def __init__(self, build: Callable, specifications: dict) -> None:
        self.build = build
        self.redraws = 0
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(build).parameters.items()
            if parameter.default is not parameter.empty
        }
        self.controls = {
            name: make_control(name, given, defaults.get(name))
            for name, given in specifications.items()
        }
        widest = max(len(name) for name in self.controls)
        for control in self.controls.values():
            control.style.description_width = f"{widest * 8 + 12}px"
        self.view = ipywidgets.HTML()
        self.frame = self._frame()
        self._show()
        for control in self.controls.values():
            control.observe(self._show, "value")
        super().__init__([*self.controls.values(), self.view])

    @property
    def values(self) -> dict:
        """The values of all controls."""
        return {name: control.value for name, control in self.controls.items()}

    def _frame(self) -> tuple[float, float] | None:
        """Width and height that fit every picture that was tried, so that nothing jumps."""
        widths, heights, patience = [], [], None
        for values, needed in samples(self.controls):
            if patience is not None and time.perf_counter() > patience and not needed:
                break
            try:
                result = self.build(**values)
            except Exception:
                continue  # some values cannot be built; the reader is told when they are chosen
            if hasattr(result, "savefig"):
                return tuple(float(inches * DPI) for inches in result.get_size_inches())
            if not isinstance(result, Picture):
                return None
            widths.append(result.width)
            heights.append(result.height)
            patience = patience or time.perf_counter() + PATIENCE
        return (max(widths), max(heights)) if widths else None

    def _show(self, _=None) -> None:
        try:
            content = self._html(self.build(**self.values))
        except Exception as error:
            # A reader who moves a slider too far is told so; the widget goes on.
            said = f"{type(error).__name__}: {error}"
            content = f"<div {PROBLEM}><b>That does not work.</b> {escape(said)}</div>"
        shape = ""
        if self.frame is not None:
            # A ratio, not pixels: on a narrow page the pictures are smaller.
            width, height = self.frame
            shape = f' style="max-width:{width:g}px;aspect-ratio:{width:g}/{height:g}"'
        self.view.value = f'<div data-step="{self.redraws}"{shape}>{content}</div>'
        self.redraws += 1

    def _html(self, result) -> str:
        if isinstance(result, Picture):
            return result.framed(*self.frame) if self.frame else result.html()
        if hasattr(result, "savefig"):
            # A chart takes too long to follow the hand: it is drawn when the hand lets go.
            for control in self.controls.values():
                if hasattr(control, "continuous_update"):
                    control.continuous_update = False
            return figure_html(result)
        return result if isinstance(result, str) else result._repr_html_()

    def __repr__(self) -> str:
        return f"Run this notebook to try other values of {', '.join(self.controls)} here."


def what_if(build: Callable, /, **controls) -> WhatIf:
    """Rebuild from the controls' values and redraw, whenever one of them is moved.

    build: called with a value for each control; returns a Picture, a figure, or HTML
    controls: (low, high) or (low, high, step) of whole or real numbers, a list of choices,
    True or False. Each starts at build's default, else at its first value
    """
    if not controls:
        raise ValueError("what_if needs a control, such as num_blocks=(4, 16)")
    return WhatIf(build, controls)
