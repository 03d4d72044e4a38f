"""The exercises of chapter 7: the paged engine."""

from .draw import DRAW
from .memory import MEMORY
from .plan import PLAN
from .preempt import PREEMPT

EXERCISES = (PLAN, PREEMPT, DRAW, MEMORY)
