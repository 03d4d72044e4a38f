"""The manner of a notebook: what a reader can count on in every chapter."""

import re
from itertools import pairwise
from urllib.parse import unquote

import pytest

from notebooks import FOLDER, NAMES, read

# Cells whose output depends on the machine or the clock. Few, and every one counted.
UNCOMPARED_CELLS = {
    "00_tour": 2,
    "01_why_paging": 2,
    "02_block_pool": 1,
    "03_page_table": 2,
    "04_lru_manager": 2,
    "05_paged_attention": 2,
    "06_recompute": 5,
    "07_paged_engine": 2,
}


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.fixture
def notebook(name):
    return read(name)


def text_of(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def headings(notebook):
    without_code = re.sub(r"```.*?```", "", text_of(notebook), flags=re.S)
    return [(len(marks), title) for marks, title in re.findall(r"^(#+) (.+)$", without_code, re.M)]


def anchor(title):
    """The anchor that JupyterLab gives to a heading."""
    return re.sub(r"[`*]", "", title).strip().replace(" ", "-")


def test_one_title_and_headings_in_order(notebook):
    levels = [level for level, _ in headings(notebook)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))


def test_code_cells_are_few_and_short(notebook):
    assert len(code_of(notebook)) <= 40
    for cell in code_of(notebook):
        assert len(cell.source.splitlines()) <= 30, cell.source


def test_executed_in_order_on_a_clean_kernel(notebook):
    counts = [cell.execution_count for cell in code_of(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    assert not any(
        output.output_type == "error" for cell in code_of(notebook) for output in cell.outputs
    )


def test_no_widget_state_and_no_time_stamps(notebook):
    assert "widgets" not in notebook.metadata
    assert not any("execution" in cell.metadata for cell in notebook.cells)


def test_lines_printed_one_after_the_other_are_one_output(notebook):
    """Viewers other than JupyterLab draw a gap between outputs."""
    for cell in code_of(notebook):
        printed = [output.get("name") for output in cell.outputs]
        pieces = [one for one, next_one in pairwise(printed) if one and one == next_one]
        assert not pieces, cell.source


def test_cells_whose_output_is_not_compared_are_counted(name, notebook):
    tagged = [c for c in code_of(notebook) if "nbval-ignore-output" in c.metadata.get("tags", ())]
    assert len(tagged) == UNCOMPARED_CELLS[name]
    tags = {tag for cell in notebook.cells for tag in cell.metadata.get("tags", ())}
    assert tags <= {"nbval-ignore-output"}


def test_no_magics_no_installs_no_warnings_and_no_path_of_a_machine(notebook):
    for cell in code_of(notebook):
        assert not re.search(r"^\s*[%!]|pip install|conda install", cell.source, re.M), cell.source
        for output in cell.outputs:
            # Base64 may spell anything.
            written = re.sub(r"'image/png': '[^']*'", "", str(output))
            assert output.get("name") != "stderr", written[:500]
            assert not re.search(r"/home/|/root/|/tmp/|/Users/|C:\\|0x[0-9a-f]{6}", written)


def test_every_picture_has_a_description(notebook):
    for cell in code_of(notebook):
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                assert 'alt="' in data.get("text/html", "") or output.metadata.get(
                    "image/png", {}
                ).get("alt"), cell.source
            for svg in re.findall(r"<svg.*?</svg>", data.get("text/html", ""), re.S):
                assert "<title" in svg, cell.source
                assert "<desc" in svg or 'aria-hidden="true"' in svg, cell.source
    for description in re.findall(r"!\[(.*?)\]\(", text_of(notebook)):
        assert description


def test_links_lead_somewhere(name, notebook):
    text = text_of(notebook)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        path, _, fragment = target.partition("#")
        there = read(name) if not path else None
        if path:
            assert (FOLDER / path).exists(), target
            there = read(path.removesuffix(".ipynb")) if path.endswith(".ipynb") else None
        if fragment and there is not None:
            anchors = {anchor(title) for _, title in headings(there)}
            assert unquote(fragment) in anchors, (target, sorted(anchors))


def test_top_of_the_page_says_what_it_takes(name, notebook):
    top = notebook.cells[0].source
    assert top.startswith("# ")
    assert re.search(r"\d+ minutes? to read", top), top
    assert "runs in about" in top
    if name != "00_tour":
        assert "00_tour.ipynb" in top


def test_length_is_that_of_an_evening(name, notebook):
    words = len(re.sub(r"<[^>]+>|```.*?```", " ", text_of(notebook), flags=re.S).split())
    # The tour is a walk through the finished engine; chapters have more to say.
    least = 700 if name == "00_tour" else 1_500
    assert least <= words <= 3_500, words
