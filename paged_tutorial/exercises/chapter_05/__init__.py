"""The exercises of chapter 5: paged attention."""

from .attend import ATTEND
from .merge import MERGE
from .paged import PAGED
from .window import WINDOW

EXERCISES = (MERGE, ATTEND, WINDOW, PAGED)
