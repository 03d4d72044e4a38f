"""The exercises of chapter 6: recompute."""

from .come_back import COME_BACK
from .cost_aware import COST_AWARE
from .repair import REPAIR
from .to_compute import TO_COMPUTE

EXERCISES = (TO_COMPUTE, REPAIR, COST_AWARE, COME_BACK)
