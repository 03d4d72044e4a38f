"""How values, exceptions and objects are told to the reader: short, without addresses or paths."""

from __future__ import annotations

import inspect
import linecache
import re
import sysconfig
import traceback
from collections import deque
from pathlib import Path

ADDRESS = re.compile(" at 0x[0-9A-Fa-f]+")
LIBRARIES = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib"))
PLAIN = (int, str, list, tuple, dict, set, frozenset, deque)


def tell(value: object) -> str:
    """A value in a few words, without addresses in memory."""
    kind = type(value).__name__
    if inspect.isclass(value) or inspect.isroutine(value):
        return f"{getattr(value, '__name__', kind)}, a {kind}"
    try:
        written = repr(value)
    except Exception:
        return f"an object of {kind} that cannot be shown"
    if " at 0x" in written:
        return f"a {kind}"
    written = " ".join(written.split())
    return written if len(written) <= 120 else f"{written[:117]}…"


def tell_error(error: BaseException) -> str:
    """An exception with its message, without addresses in memory."""
    message = ADDRESS.sub("", message_of(error))
    message = message if len(message) <= 400 else f"{message[:397]}…"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def message_of(error: BaseException) -> str:
    """The message of an exception in one line; nothing if it cannot be made."""
    try:
        return " ".join(str(error).split())
    except Exception:
        return ""


def names(error: BaseException, what: object) -> bool:
    """Whether the message of an exception has this in it; 1 is not in "block 10"."""
    return bool(re.search(rf"(?<!\d)0*{re.escape(str(what))}(?!\d)", message_of(error)))


def advice_on(value: object) -> str:
    """What to do about a value of the wrong type."""
    if value is None:
        return "None comes from a function without `return`."
    if inspect.isgenerator(value):
        return "A generator computes nothing until somebody asks. Return list(…) of it."
    if inspect.iscoroutine(value):
        value.close()
        return "An `async` function returns a promise. Write a plain `def`."
    if isinstance(value, float):
        return "This is a float. `//` divides whole numbers into a whole number."
    return ""


def where(error: BaseException) -> str:
    """The line of the reader's code in which an exception arose, or which led to it; no paths."""
    ours = str(Path(__file__).parents[1])
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        code = frame.f_code
        an_answer = Path(code.co_filename).name.startswith("answers")
        if code.co_filename.startswith((ours, *LIBRARIES, "<frozen")) and not an_answer:
            continue
        text = linecache.getline(code.co_filename, line).strip()
        return f"It arose in {code.co_name}, at: {text}" if text else f"It arose in {code.co_name}."
    return ""


def name_of(error: BaseException) -> str:
    """The function in which an exception arose."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_name


def state_of(subject: object) -> str:
    """The plain fields that the reader gave an object, in one line."""
    fields = vars(subject) if hasattr(subject, "__dict__") else {}
    if _is_package(type(subject)):
        return ""  # the picture says what is to be known of it
    if any(map(_is_package, type(subject).__mro__)):
        fields = {name: value for name, value in fields.items() if not name.startswith("_")}
    plain = {name: tell(value) for name, value in fields.items() if isinstance(value, PLAIN)}
    return ", ".join(f"{name} = {text}" for name, text in plain.items() if len(text) <= 100)


def _is_package(kind: type) -> bool:
    """Whether a class belongs to the package, answers to exercises aside."""
    package, _, module = kind.__module__.partition(".")
    return package == "paged_tutorial" and not module.startswith("exercises")
