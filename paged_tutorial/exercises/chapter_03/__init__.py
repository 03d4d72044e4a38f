"""The exercises of chapter 3: the page table."""

from .grow import GROW
from .ragged import RAGGED
from .slot_of import SLOT_OF
from .table import TABLE

EXERCISES = (SLOT_OF, RAGGED, GROW, TABLE)
