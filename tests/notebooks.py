"""What the notebook tests share: the notebooks, and their outputs in comparable form."""

from pathlib import Path

import nbformat

FOLDER = Path(__file__).parent.parent / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))
NAMES = [path.stem for path in PATHS]
UNCOMPARED = {"image/png", "application/vnd.jupyter.widget-view+json"}


def read(name):
    """A notebook by its name without the ending."""
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def comparable(cell):
    """The outputs of a cell: text of each stream in one piece, data by kind, pixels aside."""
    streams, data = {}, []
    for output in cell.outputs:
        if output.output_type == "stream":
            streams[output.name] = streams.get(output.name, "") + output.text
        elif output.output_type == "error":
            data.append({"error": output.evalue})
        else:
            data.append({kind: v for kind, v in output.data.items() if kind not in UNCOMPARED})
    return streams, data
