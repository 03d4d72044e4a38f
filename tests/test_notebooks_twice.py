"""Cells may be run twice, and so may a whole notebook: the same result each time."""

import copy

import pytest
from nbclient import NotebookClient

from notebooks import FOLDER, NAMES, comparable, read


@pytest.mark.parametrize("name", NAMES)
def test_each_cell_twice_and_then_all_again(name, tmp_path, monkeypatch):
    monkeypatch.setenv("PAGED_TUTORIAL_DATA", str(tmp_path))
    notebook = read(name)
    committed = [cell for cell in notebook.cells if cell.cell_type == "code"]
    order = [cell for cell in committed for _ in range(2)] + committed
    notebook.cells = copy.deepcopy(order)
    NotebookClient(
        notebook, timeout=900, resources={"metadata": {"path": str(FOLDER)}}, record_timing=False
    ).execute()
    for run, (cell, original) in enumerate(zip(notebook.cells, order, strict=True)):
        if "nbval-ignore-output" not in original.metadata.get("tags", ()):
            assert comparable(cell) == comparable(original), f"run {run}:\n{cell.source}"
