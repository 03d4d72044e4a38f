"""All exercises of all chapters: solutions pass, stubs are unattempted, mistakes are named."""

import inspect
import json
import time
from pathlib import Path

import pytest

import paged_tutorial
from paged_tutorial.exercises.checking import attempt
from paged_tutorial.exercises.exercise import chapters, find, of_chapter
from paged_tutorial.exercises.report import judge

EXERCISES = [exercise for number in chapters() for exercise in of_chapter(number)]
MUTANTS = [(exercise, mutant) for exercise in EXERCISES for mutant in exercise.mutants]
ANSWERS = [(e, answer) for e in EXERCISES for answer in (e.solution, *e.alternatives)]


def timed_judge(exercise, answer, name):
    start = time.perf_counter()
    verdict = judge(exercise, answer)
    print(f"{exercise.id:5} {time.perf_counter() - start:5.2f} s  {verdict.state:11}  {name}")
    return verdict


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_an_exercise_is_complete(exercise):
    assert find(exercise.id) is exercise
    assert exercise.minutes > 0 and exercise.difficulty in (1, 2, 3)
    assert 2 <= len(exercise.hints) <= 3
    assert len(exercise.mutants) >= 4
    assert exercise.alternatives
    assert exercise.insight.endswith(".")
    assert exercise.title and exercise.stub.startswith("\n")


def test_ids_are_in_order_and_belong_to_their_chapter():
    for number in chapters():
        ids = [exercise.id for exercise in of_chapter(number)]
        assert ids == [f"{number}.{k}" for k in range(1, len(ids) + 1)]


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_the_notebook_has_the_stub_its_heading_and_its_check(exercise):
    folder = Path(__file__).parents[1] / "notebooks"
    (path,) = folder.glob(f"{int(exercise.id.split('.')[0]):02d}_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code, prose = (
        ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]
        for kind in ("code", "markdown")
    )
    stub = next(n for n, text in enumerate(code) if exercise.stub.strip() in text)
    assert code[stub + 1].startswith(f'check("{exercise.id}", {exercise.solution.__name__})')
    heading = f"### Exercise {exercise.id} · {exercise.title}\n{exercise.minutes} minutes · "
    assert any(heading + exercise.dots in text for text in prose)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda e: e.id)
def test_the_stub_is_unattempted(exercise):
    names = dict(vars(paged_tutorial)) | vars(inspect.getmodule(exercise.solution))
    exec(exercise.stub, names)
    assert timed_judge(exercise, names[exercise.solution.__name__], "stub").state == "unattempted"


@pytest.mark.parametrize(
    ("exercise", "answer"), ANSWERS, ids=[f"{e.id}-{a.__name__}" for e, a in ANSWERS]
)
def test_right_answers_pass(exercise, answer):
    verdict = timed_judge(exercise, answer, answer.__name__)
    assert verdict.state == "right", repr(verdict.card)
    assert exercise.insight in repr(verdict.card)


@pytest.mark.parametrize(
    ("exercise", "mutant"),
    MUTANTS,
    ids=[f"{e.id}-{m.mistake.replace(' ', '-')}" for e, m in MUTANTS],
)
def test_a_mistake_is_rejected_by_the_rule_it_breaks_and_by_a_minimal_case(exercise, mutant):
    wrong = exercise.mutated(mutant)
    verdict = timed_judge(exercise, wrong, mutant.mistake)
    assert verdict.state == "wrong"
    assert mutant.rule in verdict.failure.broken.rule, repr(verdict.card)
    text = repr(verdict.card)
    assert f"Rule broken: {verdict.failure.broken.rule}" in text
    assert "← here" in text and "expected:" in text and "came:" in text
    assert "Traceback" not in text
    case = verdict.failure.case
    for index in range(len(case.moves)):
        assert attempt(exercise.play, wrong, case.without(index)) is None
