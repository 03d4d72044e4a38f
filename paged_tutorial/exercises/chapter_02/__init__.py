"""The exercises of chapter 2: the block pool."""

from .model import MODEL
from .pool import POOL
from .take import TAKE
from .unused_slots import UNUSED_SLOTS

EXERCISES = (UNUSED_SLOTS, POOL, TAKE, MODEL)
