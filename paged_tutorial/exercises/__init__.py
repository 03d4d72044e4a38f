"""Exercises: `check` your answer, take a `hint`, read the `solution`, see your `progress`.

check("2.1", my_function)   test it; a wrong answer is shown by its smallest failing case
hint("2.1"), hint("2.1", 2) one step at a time
solution("2.1")             an answer that passes the check, folded
progress()                  what is solved
"""

from .cards import Card, show
from .exercise import find
from .ledger import note_solved, table
from .play import Unusable
from .report import judge

__all__ = ["check", "hint", "progress", "solution"]


def check(exercise_id: str, answer: object) -> None:
    """Test your function or class and show the verdict. It never hangs and never raises."""
    exercise = _find(exercise_id)
    if exercise is None:
        return
    verdict = judge(exercise, answer)
    if verdict.state == "right" and not note_solved(exercise.id):
        verdict.card.say(
            "(Your data folder cannot be written, so `progress()` will not know.)", soft=True
        )
    show(verdict.card)


def hint(exercise_id: str, step: int = 1) -> None:
    """Show one hint; the first says where to look, the last almost what to write."""
    exercise = _find(exercise_id)
    if exercise is None:
        return
    number = len(exercise.hints)
    if step not in range(1, number + 1):
        show(_note(f"Exercise {exercise.id} has hints 1 to {number}; {step!r} is none of them."))
        return
    card = Card("quiet", "→", f"Exercise {exercise.id} · hint {step} of {number}")
    card.say(exercise.hints[step - 1])
    after = f'hint("{exercise.id}", {step + 1})' if step < number else f'solution("{exercise.id}")'
    show(card.say(f"Next: `{after}`", soft=True))


def solution(exercise_id: str) -> None:
    """Show an answer that passes the check. In a notebook it is folded: click to open."""
    exercise = _find(exercise_id)
    if exercise is not None:
        card = Card("quiet", "≡", f"Exercise {exercise.id} · {exercise.title} · one solution")
        show(card.folded("Open the solution", exercise.solution_source().rstrip()))


def progress() -> None:
    """Show all exercises with what you have solved."""
    show(table())


def _find(exercise_id):
    try:
        return find(exercise_id)
    except Unusable as problem:
        show(_note(str(problem)))
        return None


def _note(text: str) -> Card:
    return Card("quiet", "?", text)
