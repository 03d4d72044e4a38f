"""What an exercise is, and where they are found: a package for each chapter, loaded on demand."""

from __future__ import annotations

import importlib
import inspect
import linecache
import pkgutil
import re
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .play import Case, Play, Unusable

CHAPTER = re.compile(r"chapter_(\d\d)")


@dataclass(frozen=True)
class Mutant:
    """A mistake that people make: the solution with `old` replaced by `new`.

    rule: part of the sentence that must name the broken rule
    """

    mistake: str
    rule: str
    old: str
    new: str


@dataclass(frozen=True)
class Exercise:
    """One exercise. `stub` is the text of its cell; `solution` and `alternatives` are real code.

    require: raises Unusable for something that is no answer at all
    play: the moves and the rules; cases: smallest first
    insight: what a right answer shows, in a sentence that leads on
    """

    id: str
    title: str
    minutes: int
    difficulty: int
    stub: str
    hints: tuple[str, ...]
    solution: Callable
    require: Callable[[object], None]
    play: type[Play]
    cases: Callable[[], Iterable[Case]]
    insight: str
    mutants: tuple[Mutant, ...]
    alternatives: tuple[Callable, ...] = field(default=())

    @property
    def dots(self) -> str:
        """The difficulty, one to three dots."""
        return "●" * self.difficulty + "○" * (3 - self.difficulty)

    @property
    def heading(self) -> str:
        """Number, title, minutes and difficulty in one line."""
        return f"Exercise {self.id} · {self.title} · {self.minutes} minutes · {self.dots}"

    def solution_source(self) -> str:
        """The text of the solution."""
        return textwrap.dedent(inspect.getsource(self.solution))

    def build(self, source: str):
        """The function or class that a piece of text in the style of the solution defines."""
        filename = f"<exercise {self.id}>"
        names = dict(vars(inspect.getmodule(self.solution)))
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        exec(compile(source, filename, "exec"), names)
        return names[self.solution.__name__]

    def mutated(self, mutant: Mutant):
        """The solution with one mistake planted."""
        source = self.solution_source()
        if source.count(mutant.old) != 1:
            raise ValueError(f"{mutant.old!r} must stand once in the solution of {self.id}")
        return self.build(source.replace(mutant.old, mutant.new))


def chapters() -> list[int]:
    """The numbers of the chapters that have exercises."""
    import paged_tutorial.exercises as package

    found = (CHAPTER.fullmatch(module.name) for module in pkgutil.iter_modules(package.__path__))
    return sorted(int(match[1]) for match in found if match)


def of_chapter(number: int) -> tuple[Exercise, ...]:
    """The exercises of a chapter in order."""
    return importlib.import_module(f"paged_tutorial.exercises.chapter_{number:02d}").EXERCISES


def find(exercise_id) -> Exercise:
    """The exercise with this id, such as "2.1". Raises Unusable if there is none."""
    chapter = re.fullmatch(r"(\d{1,2})\.\d+", str(exercise_id).strip())
    if chapter and int(chapter[1]) in chapters():
        exercises = of_chapter(int(chapter[1]))
        for exercise in exercises:
            if exercise.id == str(exercise_id).strip():
                return exercise
        known = ", ".join(exercise.id for exercise in exercises)
        raise Unusable(f"There is no exercise {exercise_id}. Chapter {chapter[1]} has {known}.")
    known = ", ".join(map(str, chapters()))
    raise Unusable(f"There is no exercise {exercise_id!r}. Chapters with exercises: {known}.")
