"""The exercise machine: what it makes of right, wrong, endless and strange answers."""

import itertools
import json
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import paged_tutorial
from paged_tutorial import BlockPool, exercises
from paged_tutorial.exercises import answers_02, cards, exercise, ledger, report
from paged_tutorial.exercises.cards import Card
from paged_tutorial.exercises.checking import (
    all_sequences,
    attempt,
    examine,
    random_sequences,
    shrink,
)
from paged_tutorial.exercises.exercise import Exercise
from paged_tutorial.exercises.limits import KEPT_CHARACTERS, Guard, TimeUp
from paged_tutorial.exercises.planted import require_mended
from paged_tutorial.exercises.play import (
    ENDS,
    NO_ACCIDENT,
    SAME_INPUT,
    Case,
    Play,
    Unattempted,
    require_class,
    require_function,
)
from paged_tutorial.exercises.telling import names, state_of, where
from paged_tutorial.policy import Policy

SUM = "The result is the sum of the numbers."
TOP = "The stack gives back what was put on it last."


class SumPlay(Play):
    def begin(self, numbers):
        numbers = list(numbers)
        truth = sum(numbers)
        outcome = self.run(f"{self.name}({numbers})", self.thing, numbers)
        came = outcome.integer(SUM, str(truth))
        self.require(came == truth, SUM, truth, came)


class SquaresPlay(Play):
    def begin(self, number):
        outcome = self.run(f"{self.name}({number})", self.thing, number)
        truth = [n * n for n in range(number)]
        came = outcome.list_of_integers(SUM, str(truth))
        self.require(came == truth, SUM, truth, came)


class StackPlay(Play):
    def begin(self):
        self.stack = self.subject = self.run("s = Stack()", self.thing).returned("a stack")
        self.truth = []

    def push(self, number):
        self.run(f"s.push({number})", lambda: self.stack.push(number)).returned("no exception")
        self.truth.append(number)

    def pop(self):
        outcome = self.run("s.pop()", lambda: self.stack.pop())
        if not self.truth:
            outcome.raised(IndexError, TOP)
            return
        self.require(outcome.returned("a number") == self.truth[-1], TOP, self.truth[-1], "another")
        self.truth.pop()


def total(numbers):
    return sum(numbers)


def squares(number):
    return [n * n for n in range(number)]


class Stack:
    def __init__(self):
        self.held = []

    def push(self, number):
        self.held.append(number)

    def pop(self):
        return self.held.pop()


def stack_cases():
    yield from all_sequences((), [("push", 1), ("push", 2), ("pop",)], 2)
    yield from random_sequences((), [("push", 1), ("push", 2), ("push", 3), ("pop",)], 30, 40)


def sum_cases():
    return (Case((ns,)) for n in range(4) for ns in itertools.product(range(-2, 3), repeat=n))


def make(play=SumPlay, solution=total, cases=sum_cases, require=None, **changes):
    fields = dict(
        id="99.1",
        title="A toy",
        minutes=3,
        difficulty=2,
        stub="",
        hints=("Look.", "Look closer.", "Here."),
        solution=solution,
        require=require or (lambda thing: require_function(thing, "numbers")),
        play=play,
        cases=cases,
        insight="So it is.",
        mutants=(),
    )
    return Exercise(**(fields | changes))


STACK = make(StackPlay, Stack, stack_cases, lambda thing: require_class(thing, "Stack()"))
SQUARES = make(SquaresPlay, squares, lambda: (Case((n,)) for n in range(5)))


def told(verdict):
    """What the reader sees. Whatever it is, it must hold no trace of ours and no path."""
    bundle = verdict.card._repr_mimebundle_()
    for text in bundle.values():
        for unwanted in ("Traceback", "site-packages", str(Path(paged_tutorial.__file__).parent)):
            assert unwanted not in text
        assert " at 0x" not in text
    return bundle["text/plain"]


# -- right, unattempted, unusable ----------------------------------------------------------


def test_a_right_answer_gets_its_insight():
    verdict = report.judge(make(), total)
    assert verdict.state == "right"
    assert "So it is." in told(verdict)


def test_a_stub_is_unattempted_and_its_function_is_named():
    def my_total(numbers):
        raise NotImplementedError

    verdict = report.judge(make(), my_total)
    assert verdict.state == "unattempted"
    assert "`my_total` still raises NotImplementedError" in told(verdict)


def test_a_half_written_class_is_told_which_method_is_left():
    class Half(Stack):
        def pop(self):
            raise NotImplementedError("later")

    verdict = report.judge(STACK, Half)
    assert verdict.state == "unattempted"
    assert "`pop`" in told(verdict)


@pytest.mark.parametrize(
    ("toy", "answer", "words"),
    [
        (make(), None, "checks a function"),
        (make(), 3, "checks a function"),
        (make(), Stack, "checks a function"),
        (make(), lambda: 3, "called as <lambda>(numbers), and that fails"),
        (make(), lambda a, b: 3, "missing a required argument"),
        (STACK, total, "checks a class"),
        (STACK, Stack(), "checks a class"),
        (STACK, None, "checks a class"),
    ],
)
def test_what_is_no_answer_is_refused_with_what_is_wanted(toy, answer, words):
    verdict = report.judge(toy, answer)
    assert verdict.state == "unusable"
    assert words in told(verdict)


# -- wrong ---------------------------------------------------------------------------------


def test_the_smallest_failing_case_is_shown_with_rule_expected_and_came():
    verdict = report.judge(make(), lambda numbers: sum(numbers) if len(numbers) < 2 else 0)
    assert verdict.state == "wrong"
    assert verdict.failure.case == Case(((-2, -2),))
    text = told(verdict)
    assert f"Rule broken: {SUM}" in text
    assert "<lambda>([-2, -2])  → 0   ← here" in text
    assert "expected:   -4" in text and "came:       0" in text


@pytest.mark.parametrize(
    ("answer", "came", "advice"),
    [
        (lambda numbers: None, "None", "without `return`"),
        (lambda numbers: float(sum(numbers)), "0.0", "float"),
        (lambda numbers: (n for n in numbers), "a generator", "list("),
        (lambda numbers: "0", "'0'", ""),
        (lambda numbers: False, "False", ""),
        (lambda numbers: np.float32(0), "np.float32(0.0)", ""),
        (lambda numbers: object(), "a object", ""),
    ],
)
def test_a_wrong_type_is_named_with_advice(answer, came, advice):
    verdict = report.judge(make(), answer)
    text = told(verdict)
    assert verdict.state == "wrong" and f"came:       {came}\n" in text
    assert advice in text


def test_an_async_function_is_told_to_be_plain(recwarn):
    async def answer(numbers):
        return sum(numbers)

    assert "Write a plain `def`" in told(report.judge(make(), answer))
    assert not recwarn.list


@pytest.mark.parametrize("kind", [list, tuple, lambda numbers: np.array(numbers, int)])
def test_lists_tuples_and_arrays_of_whole_numbers_are_lists(kind):
    assert report.judge(SQUARES, lambda number: kind(squares(number))).state == "right"


def test_a_generator_instead_of_a_list_is_told_so():
    verdict = report.judge(SQUARES, lambda number: (n * n for n in range(number)))
    text = told(verdict)
    assert "a generator" in text and "Return list(…) of it" in text


def test_a_generator_that_should_have_done_something_is_told_so():
    class Lazy(Stack):
        def push(self, number):
            yield super().push(number)

    text = told(report.judge(STACK, Lazy))
    assert "A generator computes nothing until somebody asks" in text


def test_integers_of_numpy_are_whole_numbers():
    assert report.judge(make(), lambda numbers: np.int64(sum(numbers))).state == "right"


def test_an_exception_is_told_with_the_reader_s_line_and_no_path():
    def answer(numbers):
        return numbers[0] + sum(numbers[1:])  # no first one

    verdict = report.judge(make(), answer)
    text = told(verdict)
    assert f"Rule broken: {NO_ACCIDENT}" in text or f"Rule broken: {SUM}" in text
    assert "IndexError: list index out of range" in text
    assert "at: return numbers[0] + sum(numbers[1:])" in text
    assert __file__ not in text


def test_an_exception_in_a_library_is_told_with_the_reader_s_line():
    def answer(numbers):
        return np.repeat(numbers, [1, 2, 3, 4]).sum()

    text = told(report.judge(make(), answer))
    assert "It arose in answer, at: return np.repeat(numbers, [1, 2, 3, 4]).sum()" in text


def test_a_slip_of_the_pen_is_an_accident_and_breaks_no_other_rule():
    def answer(numbers):
        return sum(nubmers)  # noqa: F821

    assert report.judge(make(), answer).failure.broken.rule == NO_ACCIDENT


def test_a_changed_argument_is_noticed():
    def answer(numbers):
        result = sum(numbers)
        numbers.sort()
        return result

    verdict = report.judge(make(), answer)
    assert verdict.failure.broken.rule == SAME_INPUT
    assert "[-1, -2]" in told(verdict) and "Work on a copy" in told(verdict)


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(3), RecursionError("deep")])
def test_any_exception_is_caught(error):
    def answer(numbers):
        raise error

    verdict = report.judge(make(), answer)
    assert verdict.state == "wrong" and type(error).__name__ in told(verdict)


def test_endless_recursion_is_told():
    def answer(numbers):
        return answer(numbers)

    assert "RecursionError" in told(report.judge(make(), answer))


def test_what_the_reader_prints_is_shown_for_the_failing_case_only(capsys):
    def answer(numbers):
        print("numbers are", numbers)
        return len(numbers)

    text = told(report.judge(make(), answer))
    assert "numbers are [-2]" in text and text.count("numbers are") == 1
    assert capsys.readouterr() == ("", "")


def test_the_fields_told_are_those_the_reader_gave():
    class Own:
        def __init__(self):
            self._order, self.blocks = [3, 1], {1: "a"}

    class OwnPolicy(Policy):
        def __init__(self):
            super().__init__()
            self.seen = {2: 5}

    assert state_of(Own()) == "_order = [3, 1], blocks = {1: 'a'}"
    assert state_of(OwnPolicy()) == "history = {}, seen = {2: 5}"
    assert state_of(BlockPool(2)) == ""
    assert "free" in state_of(answers_02.MyPool(2, 4))


PLANTED = """
def step(number, by=1):
    \"\"\"The next number.\"\"\"
    return sum(one + 2 for one in [number]) + by
"""


def defined(source):
    names = {}
    exec(source, names)
    return names["step"]


@pytest.mark.parametrize(
    "old, new",
    [
        ("", ""),
        ("number", "n"),
        ("The next number.", "Mine."),
        ('    """The next number."""\n', ""),
    ],
)
def test_a_planted_bug_with_other_names_or_words_is_unattempted(old, new):
    with pytest.raises(Unattempted, match="as it was"):
        require_mended(defined(PLANTED.replace(old, new)), PLANTED, "as it was")


@pytest.mark.parametrize(
    "old, new",
    [("2", "3"), ("2", "2.0"), ("by=1", "by=0"), ("sum(", "max("), (" + by", ""), ("+ 2", "- 2")],
)
def test_an_answer_that_does_anything_else_than_the_planted_one_is_checked(old, new):
    require_mended(defined(PLANTED.replace(old, new)), PLANTED, "as it was")
    require_mended(print, PLANTED, "as it was")


def test_a_planted_class_is_compared_method_by_method():
    planted = "class step:\n    def a(self): return 1\n    def b(self): return 2\n"
    with pytest.raises(Unattempted):
        require_mended(defined(planted), planted, "as it was")
    require_mended(defined(planted.replace("2", "3")), planted, "as it was")


def test_an_object_that_cannot_be_shown_or_drawn_does_no_harm():
    class Sullen(Stack):
        num_blocks = "many"

        def __repr__(self):
            raise RuntimeError("no")

        def pop(self):
            return self

    verdict = report.judge(STACK, Sullen)
    assert verdict.state == "wrong"
    told(verdict)


class Grudging(int):
    """A number that will not be compared."""

    def __eq__(self, other):
        raise RuntimeError("not with me")

    __hash__ = int.__hash__


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Mute(), "Mute"),
        (ValueError(f"not {object()}"), "ValueError: not <object object>"),
        (KeyError("x" * 10_000), "KeyError: 'xxx"),
    ],
)
def test_any_message_of_an_exception_is_told_short_and_without_addresses(error, said):
    def answer(numbers):
        raise error

    text = told(report.judge(make(), answer))
    assert f"came:       {said}" in text
    assert len(text) < 2_000


@pytest.mark.parametrize(
    ("message", "what", "there"),
    [
        ("block 10", 0, False),
        ("block 10", 10, True),
        ("101 is no block", 1, False),
        ("there is no block -1.", -1, True),
        ("block-1", 1, True),
        ("block 007", 7, True),
        ("block 000", 0, True),
        ("nobody holds it", 1, False),
    ],
)
def test_a_number_is_named_by_a_message_only_if_it_stands_there_whole(message, what, there):
    assert names(ValueError(message), what) is there


def test_the_reader_s_line_is_found_wherever_the_course_lies(monkeypatch):
    """A folder named answers, somewhere above, makes no difference."""
    course = Path("answers", "paged_tutorial")
    own = str(course / "exercises" / "telling.py")
    monkeypatch.setattr("paged_tutorial.exercises.telling.__file__", own)
    names = {}
    ours, theirs = "def pop():\n    [].pop()\n", "def answer():\n    pop()\n"
    exec(compile(ours, str(course / "lru.py"), "exec"), names)
    exec(compile(theirs, str(course.parent / "notebook.py"), "exec"), names)
    with pytest.raises(IndexError) as caught:
        names["answer"]()
    assert where(caught.value) == "It arose in answer."


def test_an_answer_that_raises_when_it_is_looked_at_is_told_and_not_raised():
    class Odd(Stack):
        def pop(self):
            return Grudging(super().pop())

    verdict = report.judge(STACK, Odd)
    assert verdict.failure.broken.rule == NO_ACCIDENT
    text = told(verdict)
    assert "RuntimeError: not with me" in text and "It arose in __eq__" in text


@pytest.mark.parametrize("many", [[], [0, 1]])
def test_an_array_in_place_of_the_number_of_free_blocks_is_told(many):
    class Indices(answers_02.MyPool):
        @property
        def num_free(self):
            return np.array(many, int)

    text = told(report.judge(exercise.find("2.2"), Indices))
    assert f"came:       num_free array({many}" in text


def test_a_generator_in_place_of_the_number_of_free_blocks_is_told_without_its_address():
    class Later(answers_02.MyPool):
        @property
        def num_free(self):
            return (block for block in self.free)

    assert "came:       num_free a generator" in told(report.judge(exercise.find("2.2"), Later))


# -- endless -------------------------------------------------------------------------------


def forever(numbers):
    while len(numbers) > 1:
        pass
    return sum(numbers)


def stubborn(numbers):
    end = time.monotonic() + 4  # so that the test leaves nothing behind
    while len(numbers) > 1 and time.monotonic() < end:
        try:
            time.sleep(0.001)
        except BaseException:
            pass
    return sum(numbers)


def asleep(numbers):
    if len(numbers) > 1:
        time.sleep(4)
    return sum(numbers)


@pytest.mark.parametrize("answer", [forever, stubborn, asleep])
def test_an_endless_answer_is_stopped_and_its_call_shown(answer):
    verdict = report.judge(make(), answer)
    assert verdict.failure.broken.rule == ENDS
    text = told(verdict)
    assert f"{answer.__name__}([-2, -2])  → no answer   ← here" in text
    assert ("restart the kernel" in text) == (answer is not forever)


@pytest.mark.parametrize(("stall", "state"), [(0.1, "right"), (1.0, "unusable")])
def test_a_machine_that_stalls_before_the_first_case_is_no_fault_of_the_answer(
    stall, state, monkeypatch
):
    monkeypatch.setattr("paged_tutorial.exercises.checking.LIMITS", (0.05, 0.5))

    def cases():
        end = time.monotonic() + stall
        while time.monotonic() < end:
            pass
        yield Case(((1, 2),))

    verdict = report.judge(make(cases=cases), total)
    assert verdict.state == state
    assert ("too busy" in told(verdict)) == (state == "unusable")


def test_a_stopped_worker_is_gone():
    before = threading.active_count()
    with pytest.raises(TimeUp):
        Guard(0.1).run(lambda: forever([1, 2]))
    assert threading.active_count() == before


def test_a_guard_hands_over_value_error_and_print():
    guard = Guard(5)
    assert guard.run(lambda: (print("x" * 5_000), 7)[1]) == 7
    assert guard.printed == "x" * KEPT_CHARACTERS
    with pytest.raises(ZeroDivisionError):
        guard.run(lambda: 1 / 0)
    assert sys.stdout is not None and print("still here") is None


# -- minimality ----------------------------------------------------------------------------


class ForgetsThirds(Stack):
    """Wrong only when three are on it and two come off: found by a long random case."""

    def pop(self):
        if len(self.held) == 3:
            self.held.pop(0)
        return self.held.pop()


class SharedBetweenAll(Stack):
    held = []

    def __init__(self):
        pass


def test_a_long_failing_case_is_reduced_until_every_move_is_needed():
    failure = examine(StackPlay, ForgetsThirds, stack_cases)
    moves = failure.case.moves
    assert len(moves) == 6 and [name for name, *_ in moves].count("push") == 3
    for index in range(len(moves)):
        assert attempt(StackPlay, ForgetsThirds, failure.case.without(index)) is None


def test_shrinking_keeps_the_failure_of_the_case_it_shows():
    def fails(case):
        return case if {("a",), ("b",)} <= set(case.moves) else None

    class Told:
        def __init__(self, case):
            self.case = case

    start = Told(Case((), (("a",), ("c",), ("b",), ("c",), ("a",))))
    smallest = shrink(start, lambda case: Told(case) if fails(case) else None)
    assert smallest.case.moves in ((("a",), ("b",)), (("b",), ("a",)))


def test_state_shared_by_all_objects_is_found():
    SharedBetweenAll.held.clear()
    assert report.judge(STACK, SharedBetweenAll).state == "wrong"


def test_all_sequences_come_shortest_first_and_random_ones_repeat():
    lengths = [len(case.moves) for case in all_sequences((), [("a",), ("b",)], 3)]
    assert lengths == [0, 1, 1, *[2] * 4, *[3] * 8]
    first, second = (list(random_sequences((1,), [("a",), ("b",)], 9, 5)) for _ in range(2))
    assert first == second and {len(case.moves) for case in first} == {9}


def test_reports_are_the_same_each_time():
    first, second = (report.judge(STACK, ForgetsThirds).card for _ in range(2))
    assert first._repr_mimebundle_() == second._repr_mimebundle_()


# -- what the reader calls -----------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch, tmp_path):
    """Cards that are shown, as text; with progress kept in a temporary folder."""
    monkeypatch.setenv("PAGED_TUTORIAL_DATA", str(tmp_path / "data"))
    cards_shown = []
    monkeypatch.setattr(exercises, "show", lambda card: cards_shown.append(repr(card)))
    return cards_shown


def test_check_shows_and_remembers_what_is_solved(shown, tmp_path):
    exercises.check("2.1", lambda num_tokens, block_size: 0)
    assert "not yet" in shown[-1] and ledger.solved() == set()
    exercises.check("2.1", exercise.find("2.1").solution)
    assert "right" in shown[-1] and ledger.solved() == {"2.1"}
    exercises.check("2.1", lambda num_tokens, block_size: 0)
    assert ledger.solved() == {"2.1"}
    exercises.progress()
    assert "1 of" in shown[-1] and "✓ solved" in shown[-1]
    assert json.loads((tmp_path / "data" / "solved.json").read_text()) == ["2.1"]


@pytest.mark.parametrize("call", [exercises.check, exercises.hint])
@pytest.mark.parametrize("number", ["2.99", "77.1", "2", None, 2.1, "../2.1", "chapter"])
def test_an_unknown_exercise_is_answered_with_those_there_are(call, number, shown):
    call(number, 1)
    if number == 2.1:  # a number instead of text is understood
        assert "Exercise 2.1" in shown[-1]
    else:
        assert "There is no exercise" in shown[-1]


def test_hints_come_one_at_a_time_and_the_same_each_time(shown):
    exercises.hint("2.2")
    exercises.hint("2.2")
    exercises.hint("2.2", 2)
    exercises.hint("2.2", 3)
    assert shown[0] == shown[1]
    assert len(set(shown)) == 3
    assert "hint 1 of 3" in shown[0] and 'hint("2.2", 2)' in shown[0]
    assert 'solution("2.2")' in shown[-1]


@pytest.mark.parametrize("step", [0, 4, -1, "2", None, 1.5])
def test_a_hint_that_is_not_there_is_answered(step, shown):
    exercises.hint("2.2", step)
    assert "hints 1 to 3" in shown[-1]


def test_the_solution_shown_is_the_tested_source(shown):
    exercises.solution("2.1")
    assert exercise.find("2.1").solution_source().strip() in shown[-1]


@pytest.mark.parametrize("content", ["", "{", "3", '{"a": 1}', "[1, null]"])
def test_a_damaged_ledger_counts_as_nothing_solved(content, shown, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "solved.json").write_text(content)
    exercises.progress()
    assert "0 of" in shown[-1]
    assert ledger.note_solved("2.3") and ledger.solved() == {"2.3"}


def test_a_folder_that_cannot_be_written_is_told_and_no_more(shown, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PAGED_TUTORIAL_DATA", str(tmp_path / "file" / "data"))
    exercises.check("2.1", exercise.find("2.1").solution)
    assert "right" in shown[-1] and "cannot be written" in shown[-1]


def test_without_the_variable_the_user_s_data_folder_is_taken(monkeypatch):
    monkeypatch.delenv("PAGED_TUTORIAL_DATA", raising=False)
    assert ledger.data_file().parts[-2:] == ("paged_tutorial", "solved.json") or (
        "paged_tutorial" in ledger.data_file().parts
    )


# -- cards ---------------------------------------------------------------------------------


def test_a_card_says_the_same_as_text_and_as_html_and_escapes_it():
    card = Card("wrong", "✗", "a <b> & c").say("see `x < y`").row("came", "<None>").code("if a<b:")
    card.table(["n", "m"], [["1", "<2>"]]).folded("open", "<code>")
    bundle = card._repr_mimebundle_()
    assert "see `x < y`" in bundle["text/plain"] and "<None>" in bundle["text/plain"]
    for raw in ("a <b>", "<None>", "a<b", "<2>", "<code>"):
        assert raw not in bundle["text/html"].replace("<code style", "")


def test_a_card_brings_its_own_ground_and_ink():
    html = Card("right", "✓", "x").say("y")._repr_mimebundle_()["text/html"]
    assert f"background:{cards.GROUND}" in html and f"color:{cards.INK}" in html


@pytest.mark.parametrize("ink", [cards.INK, cards.SOFT, *cards.EDGES.values()])
@pytest.mark.parametrize("ground", [cards.GROUND, cards.PALE])
def test_inks_have_enough_contrast(ink, ground):
    def brightness(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert (brightness(ground) + 0.05) / (brightness(ink) + 0.05) >= 4.5
