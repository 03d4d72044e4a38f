"""The exercises of chapter 4: the LRU manager."""

from .cache import CACHE
from .policy import POLICY
from .recent import RECENT

EXERCISES = (CACHE, RECENT, POLICY)
