"""Run the reader's code so that it always comes to an end, and says nothing meanwhile.

In English: the code runs in a worker thread. The thread says whenever it starts something
new; when it has said nothing for too long, an exception is planted in it. That works on
every platform and inside a Jupyter kernel, where signals do not. Code that hides from
the exception, or sits in a system call, is left behind: the report comes all the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import threading
import time

PAUSE = 0.01
GRACE = 0.5
KEPT_CHARACTERS = 2_000


class TimeUp(BaseException):
    """Planted in a worker that takes too long. `except Exception` does not catch it."""


class Guard:
    """Runs one function in a worker thread. `seconds` is how long it may be silent."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.printed = ""
        self.left_behind = False  # the worker could not be stopped
        self._deadline = 0.0

    def alive(self, seconds: float | None = None) -> None:
        """The worker starts something new, which may take `seconds`."""
        self._deadline = time.monotonic() + (self.seconds if seconds is None else seconds)

    def run(self, function):
        """The function's result. Raises TimeUp, or whatever the function raises."""
        outcome: dict[str, object] = {}

        def work() -> None:
            with contextlib.suppress(TimeUp):  # planted once more, after the work has ended
                try:
                    outcome["value"] = function()
                except BaseException as error:  # handed over to the caller's thread
                    outcome["error"] = error

        worker = threading.Thread(target=work, name="exercise", daemon=True)
        said = _Capped()
        self.alive()
        # A redirection ends with the `with`, even if the worker has to be left behind.
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            worker.start()
            try:
                while worker.is_alive() and time.monotonic() < self._deadline:
                    worker.join(PAUSE)
            finally:
                late = worker.is_alive()
                if late:
                    _stop(worker)
        self.printed = said.getvalue()
        self.left_behind = worker.is_alive()
        if late or "value" not in outcome and "error" not in outcome:
            raise TimeUp
        if "error" in outcome:
            raise outcome["error"]
        return outcome["value"]


def _stop(worker: threading.Thread) -> None:
    """Plant TimeUp until the worker ends, for a while."""
    plant = ctypes.pythonapi.PyThreadState_SetAsyncExc
    end = time.monotonic() + GRACE
    while worker.is_alive() and time.monotonic() < end:
        plant(ctypes.c_ulong(worker.ident), ctypes.py_object(TimeUp))
        worker.join(10 * PAUSE)


class _Capped(io.StringIO):
    """Keeps the first characters that are written and forgets the rest."""

    def write(self, text: str) -> int:
        room = KEPT_CHARACTERS - self.tell()
        if room > 0:
            super().write(text[:room])
        return len(text)
