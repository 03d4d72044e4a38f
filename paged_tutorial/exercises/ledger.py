"""Which exercises are solved: one small file in the user's data folder.

The folder is PAGED_TUTORIAL_DATA if that is set. A folder that cannot be written costs the
reader the table of `progress()` and nothing else.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from .cards import Card
from .exercise import chapters, of_chapter


def data_file() -> Path:
    """Where the solved exercises are kept."""
    chosen = os.environ.get("PAGED_TUTORIAL_DATA")
    if chosen:
        return Path(chosen) / "solved.json"
    from platformdirs import user_data_path

    return user_data_path("paged_tutorial") / "solved.json"


def solved() -> set[str]:
    """Ids of the solved exercises. A file that cannot be read counts as none."""
    try:
        entries = json.loads(data_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return set()
    entries = entries if isinstance(entries, list) else []
    return {entry for entry in entries if isinstance(entry, str)}


def note_solved(exercise_id: str) -> bool:
    """Remember that an exercise is solved. False if the file cannot be written."""
    known = solved()
    if exercise_id in known:
        return True
    path = data_file()
    partial = path.with_suffix(f".{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(sorted(known | {exercise_id})), encoding="utf-8")
        partial.replace(path)
    except OSError:
        return False
    return True


def table() -> Card:
    """The course as a table."""
    known, rows, done = solved(), [], 0
    for number in chapters():
        for exercise in of_chapter(number):
            here = exercise.id in known
            done += here
            rows.append(
                [exercise.id, exercise.title, f"{exercise.minutes} min", exercise.dots]
                + ["✓ solved" if here else "–"]
            )
    card = Card("quiet", "▤", f"Your progress: {done} of {len(rows)} exercises solved")
    return card.table(["exercise", "title", "time", "difficulty", "state"], rows)
