"""Four ways to set memory aside for a text whose length nobody knows.

In English: a slot is room for the keys and values of one token. A contiguous memory must
give a request all its slots at the start, in one piece, so it reserves for tokens that come
late or never, and what is free may lie in the wrong places. A paged memory gives one block
at a time, to anybody, from anywhere.

Kept as numbers only: nothing is stored here. `simulation` lets requests run on it.
The four ways are those of Kwon et al., "PagedAttention", SOSP 2023, section 6.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .checks import check_integer
from .page_table import blocks_needed
from .placement import Buddy, power_of_two


@dataclass(slots=True, eq=False)
class Text:
    """A request on its way: tokens when it started, or starts again, and at the end; the slots
    it has, the first of them; the step in which it started, and when to look at it again."""

    tokens: int
    end: int
    slots: int = 0
    start: int = 0
    since: int = 0
    due: int = 0


class Memory(Protocol):
    """What `simulation.serve` needs of a memory of `num_slots`, of which `taken` are set aside."""

    num_slots: int
    taken: int

    def needs(self, text: Text) -> int: ...
    def admit(self, text: Text) -> bool: ...
    def grow(self, text: Text) -> bool: ...
    def release(self, text: Text) -> None: ...


class Contiguous:
    """One piece a request, reserved when it starts.

    reserve: slots to ask for, given tokens now and at the end; place: Buddy or FirstFit
    """

    def __init__(
        self, num_slots: int, reserve: Callable[[int, int], int], place: type = Buddy
    ) -> None:
        self.num_slots = check_integer("num_slots", num_slots, 1)
        self.reserve, self.row, self.taken = reserve, place(num_slots), 0

    def needs(self, text: Text) -> int:
        """Slots to ask for."""
        return self.reserve(text.tokens, text.end)

    def admit(self, text: Text) -> bool:
        """Set a piece aside; False, and nothing changed, if none is long enough."""
        start = self.row.allocate(self.needs(text))
        if start is None:
            return False
        text.start, text.slots = start, self.row.pieces[start]
        self.taken += text.slots
        return True

    def grow(self, text: Text) -> bool:
        """A piece cannot grow: what lies behind it belongs to somebody else."""
        return False

    def release(self, text: Text) -> None:
        """Give the piece back."""
        self.row.release(text.start)
        self.taken -= text.slots


class Paged:
    """Blocks, one at a time. Any free block fits anybody, so counting them is enough."""

    def __init__(self, num_slots: int, block_size: int = 16) -> None:
        self.num_slots = check_integer("num_slots", num_slots, 1)
        self.block_size = check_integer("block_size", block_size, 1)
        self.free_blocks, self.taken = num_slots // block_size, 0

    def needs(self, text: Text) -> int:
        """Slots of the blocks that hold the text as it is, and the next token."""
        return blocks_needed(text.tokens + 1, self.block_size) * self.block_size

    def admit(self, text: Text) -> bool:
        """Set the blocks aside; False, and nothing changed, if they are too few."""
        return self._take(text, self.needs(text) // self.block_size)

    def grow(self, text: Text) -> bool:
        """One more block, if there is one."""
        return self._take(text, 1)

    def release(self, text: Text) -> None:
        """Give all blocks back."""
        self._take(text, -text.slots // self.block_size)

    def _take(self, text: Text, blocks: int) -> bool:
        if blocks > self.free_blocks:
            return False
        self.free_blocks -= blocks
        text.slots += blocks * self.block_size
        self.taken += blocks * self.block_size
        return True


def memories(num_slots: int, block_size: int = 16, max_tokens: int = 2048) -> dict[str, Memory]:
    """The four ways of the paper: three reservations, placed by the buddy system, and blocks.

    maximum: the longest text the model can hold. power of two: the prompt, and the true
    length of the answer rounded up to a power of two. oracle: exactly what will be needed.
    """
    return {
        "maximum": Contiguous(num_slots, lambda now, end: max_tokens),
        "power of two": Contiguous(num_slots, lambda now, end: now + power_of_two(end - now)),
        "oracle": Contiguous(num_slots, lambda now, end: end),
        "paged": Paged(num_slots, block_size),
    }
