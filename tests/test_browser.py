"""Every notebook in a real browser: run all cells, move every control, see the picture change."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest

from notebooks import FOLDER, NAMES, read

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
SHOTS = Path(os.environ.get("PAGED_TUTORIAL_SCREENSHOTS", "build/screenshots"))
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and "CI" not in os.environ, reason="Chromium is not installed"
)
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
# What a widget shows; changes whenever the picture does.
VIEW = ".widget-html-content"
# Resolves to true when every cell has run, and to false when that takes too long.
RUN_ALL_CELLS = """async () => {
  const { commands, shell } = window.jupyterapp;
  const { sessionContext } = shell.currentWidget;
  const run = async () => {
    await sessionContext.ready;
    await sessionContext.session.kernel.info;
    await commands.execute('notebook:run-all-cells');
    return true;
  };
  const late = new Promise(resolve => setTimeout(() => resolve(false), 240_000));
  return Promise.race([run(), late]);
}"""
NUMBERED = """() => [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')]
  .every(prompt => /\\[\\d+\\]/.test(prompt.textContent))"""


# Notes the milliseconds from each key press to the next frame after the views of a widget changed.
WATCH = f"""node => {{
  window.roundTrips = [];
  let pressed = null;
  window.addEventListener('keydown', () => {{ pressed = performance.now(); }}, true);
  new MutationObserver(() => {{
    if (pressed === null) return;
    const since = pressed;
    pressed = null;
    requestAnimationFrame(() => window.roundTrips.push(performance.now() - since));
  }}).observe(node.querySelector('{VIEW}'), {{childList: true, subtree: true}});
}}"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """JupyterLab on a copy of the notebooks; the address it listens on."""
    root = tmp_path_factory.mktemp("lab")
    (root / "notebooks").mkdir()
    for name in NAMES:
        notebook = read(name)
        for cell in notebook.cells:
            if cell.cell_type == "code":  # so that a number in the margin means: run just now
                cell.update(outputs=[], execution_count=None)
        nbformat.write(notebook, root / "notebooks" / f"{name}.ipynb")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"]
    command += ["--expose-app-in-browser"]
    command += [f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1"]
    command += ["--IdentityProvider.token=", f"--ServerApp.root_dir={root / 'notebooks'}"]
    # All windowing off: every cell is in the page, so that each can be found and looked at.
    settings = root / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    # No question about news over the pictures that are kept.
    news = root / "settings" / "@jupyterlab" / "apputils-extension"
    news.mkdir()
    (news / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    environment = dict(
        os.environ,
        JUPYTERLAB_SETTINGS_DIR=str(root / "settings"),
        JUPYTERLAB_WORKSPACES_DIR=str(root / "workspaces"),
        PAGED_TUTORIAL_DATA=str(root / "data"),
    )
    address = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/api/status", timeout=5).close()
                break
            except OSError:
                time.sleep(0.25)
        yield address
        server.terminate()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


def open_and_run(browser, lab, name):
    """A page with the notebook, all of its cells run, and the console's errors so far."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(60_000)
    errors = []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{lab}/lab/tree/{name}.ipynb?reset")
    page.wait_for_selector(".jp-NotebookPanel .jp-CodeCell")
    page.wait_for_function("window.jupyterapp?.shell.currentWidget?.sessionContext?.isReady")
    errors.clear()  # what JupyterLab itself says while it starts is not ours
    assert page.evaluate(RUN_ALL_CELLS), "the cells did not finish in time"
    failed = page.locator("[data-mime-type='application/vnd.jupyter.error']").all_inner_texts()
    assert not failed, failed[0][-2000:]
    page.wait_for_function(NUMBERED)
    return page, errors


def shown(widget):
    """The HTML of all views in a widget."""
    return widget.evaluate(
        f"node => [...node.querySelectorAll('{VIEW}')].map(view => view.innerHTML).join()"
    )


def height(widget):
    """The height of all views in a widget, in pixels."""
    return widget.evaluate(
        f"node => [...node.querySelectorAll('{VIEW}')].reduce((sum, view) => "
        "sum + view.getBoundingClientRect().height, 0)"
    )


def changes_picture(page, widget, act):
    """Do something with a control, and wait until the picture of its widget is another.

    What stands below must stay where it is.
    """
    before, tall = shown(widget), height(widget)
    act()
    page.wait_for_function(
        f"""([node, before]) =>
        [...node.querySelectorAll('{VIEW}')].map(view => view.innerHTML).join() !== before""",
        arg=[widget.element_handle(), before],
        timeout=20_000,
    )
    assert abs(height(widget) - tall) < 1.5, "the page jumps when the picture changes"


def move_sliders_to_both_ends(page, widget):
    """The height stays, from the first value to the last."""
    for handle in widget.locator("[role=slider]").element_handles():
        handle.focus()
        for key, end in (("Home", "valuemin"), ("End", "valuemax")):
            if handle.get_attribute("aria-valuenow") != handle.get_attribute(f"aria-{end}"):
                changes_picture(page, widget, lambda key=key: page.keyboard.press(key))


def nudge(page, handle):
    """Move a slider by one step with the arrow keys."""
    handle.focus()
    at_end = handle.get_attribute("aria-valuenow") == handle.get_attribute("aria-valuemax")
    page.keyboard.press("ArrowLeft" if at_end else "ArrowRight")


def move_every_control(page, widget):
    """Use each slider, button and list of a widget; each must change the picture once."""
    uses = {
        "[role=slider]": lambda control: nudge(page, control),
        "button:has-text('Forward')": lambda control: control.click(),
        "button:has-text('Back')": lambda control: control.click(),
        "select": lambda control: control.select_option(index=1),
        "input[type=checkbox]": lambda control: control.click(),
        "button:has-text('Play')": lambda control: control.click(),
    }
    moved = 0
    for selector, use in uses.items():
        for control in widget.locator(selector).element_handles():
            changes_picture(page, widget, lambda use=use, control=control: use(control))
            moved += 1
    for pause in widget.locator("button:has-text('Pause')").all():
        pause.click()
    return moved


def round_trips(page, widget, presses=40):
    """Milliseconds from pressing an arrow key on the widget's first slider to the new picture."""
    handle = widget.locator("[role=slider]").first
    page.evaluate(WATCH, widget.element_handle())
    handle.focus()
    key = "ArrowRight"
    for count in range(1, presses + 1):
        value = handle.get_attribute("aria-valuenow")
        if value == handle.get_attribute("aria-valuemax"):
            key = "ArrowLeft"
        elif value == handle.get_attribute("aria-valuemin"):
            key = "ArrowRight"
        page.keyboard.press(key)
        page.wait_for_function(f"window.roundTrips.length >= {count}")
    return sorted(page.evaluate("window.roundTrips"))


def check_nothing_is_cut(page, name):
    """No output is wider than its place, at two widths; pictures are kept for looking at."""
    for width in (1280, 1000):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(400)
        wide = page.evaluate(
            """() => [...document.querySelectorAll(
                '.jp-OutputArea-output, .jp-RenderedHTMLCommon, .widget-html-content')]
              .filter(node => node.scrollWidth > node.clientWidth + 2 && node.clientWidth > 0)
              .map(node => node.scrollWidth + ' > ' + node.clientWidth + ': ' +
                   node.textContent.trim().slice(0, 80))"""
        )
        assert not wide, (name, width, wide)


def take_pictures(page, name):
    SHOTS.mkdir(parents=True, exist_ok=True)
    for theme, title in THEMES.items():
        page.evaluate(
            """async title => {
                await window.jupyterapp.commands.execute(
                    'apputils:change-theme', {theme: title});
            }""",
            title,
        )
        page.wait_for_timeout(800)
        if theme == "dark":
            assert page.get_attribute("body", "data-jp-theme-light") == "false"
        pictures = page.locator(".jp-OutputArea-output:has(svg, img)").all()
        for number, picture in enumerate(pictures):
            picture.scroll_into_view_if_needed()
            picture.screenshot(path=SHOTS / f"{name}-{number:02}-{theme}.png")


@pytest.mark.parametrize("name", NAMES)
def test_in_a_browser(name, lab, browser, capsys):
    page, errors = open_and_run(browser, lab, name)
    problems = page.locator(".jp-OutputArea-output[data-mime-type*=stderr]")
    assert problems.count() == 0, problems.all_inner_texts()
    widgets = page.locator(f".jp-OutputArea-output:has({VIEW})").all()
    moved = sum(move_every_control(page, widget) for widget in widgets)
    for width in (1000, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(400)
        for widget in widgets:
            move_sliders_to_both_ends(page, widget)
    if re.search(r"\b(explore|what_if)\(", (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")):
        assert widgets
        assert moved
    check_nothing_is_cut(page, name)
    take_pictures(page, name)
    with capsys.disabled():
        print(f"\n{name}: {len(widgets)} widgets, {moved} controls moved")
        for widget in widgets:
            if widget.locator("[role=slider]").count():
                trips = round_trips(page, widget)
                p95 = trips[int(0.95 * len(trips))]
                print(f"  slider to picture: median {trips[len(trips) // 2]:.0f}, p95 {p95:.0f} ms")
    assert not errors, errors
    page.close()
