"""The controls of a widget, and the values that they can take."""

from __future__ import annotations

import random
from collections.abc import Iterator

import ipywidgets

MIXTURES = 60


def make_control(name: str, given, default):
    """A slider, a list or a box, that starts at the default. Raises TypeError for no control."""
    label = name.replace("_", " ")
    common = {
        "description": label.capitalize(),
        "tooltip": f"Choose the {label}; arrow keys move it",
        "layout": ipywidgets.Layout(width="min(560px, 95%)"),
    }
    if isinstance(given, bool):
        return ipywidgets.Checkbox(given if default is None else default, indent=False, **common)
    if isinstance(given, list):
        value = default if default in given else given[0]
        return ipywidgets.Dropdown(options=given, value=value, **common)
    if not isinstance(given, tuple) or len(given) not in (2, 3):
        raise TypeError(
            f"{name}={given!r} is no control: give (low, high), (low, high, step), "
            "a list of choices, or True or False"
        )
    low, high, *step = given
    value = low if default is None else min(high, max(low, default))
    if any(isinstance(number, float) for number in (*given, value)):
        size = step[0] if step else (high - low) / 20
        return ipywidgets.FloatSlider(min=low, max=high, step=size, value=value, **common)
    size = step[0] if step else 1
    return ipywidgets.IntSlider(min=low, max=high, step=size, value=value, **common)


def samples(controls: dict) -> Iterator[tuple[dict, bool]]:
    """Values to try for the height, and whether they must be: each end alone, then mixtures."""
    now = {name: control.value for name, control in controls.items()}
    choices = {name: _choices(control) for name, control in controls.items()}
    yield now, True
    for name, control in controls.items():
        slider = hasattr(control, "max")
        for value in (control.min, control.max) if slider else choices[name]:
            yield now | {name: value}, True
    generator = random.Random(0)
    for _ in range(MIXTURES):
        yield {name: generator.choice(values) for name, values in choices.items()}, False


def _choices(control) -> list:
    if hasattr(control, "options"):
        return list(control.options)
    if not hasattr(control, "max"):
        return [False, True]
    steps = round((control.max - control.min) / control.step)
    return [control.min + step * control.step for step in range(steps)] + [control.max]
