"""What reserving memory in one piece costs, against paging: four ways to serve one workload.

In English: requests wait in line for slots, the room for the keys and values of one token.
Each step gives every running request one token. A contiguous memory needs the whole text's
room when the request starts, as one piece; what it does not know it reserves too much of,
and what is free may lie in the wrong places. A paged memory gives one block at a time, to
anybody, from anywhere; when none is left, the newest request goes back into the line.

This is a simulation of bookkeeping alone: no model runs, and a step is a step, however
many requests are in it. Kwon et al., SOSP 2023, figure 2, is the measurement it is after.
Buddy system: Knowlton (1965); Knuth, The Art of Computer Programming 1, section 2.5.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from .checks import check_integer
from .page_table import blocks_needed
from .workload import Arrival


def power_of_two(number: int) -> int:
    """The smallest power of two that is not less than `number`."""
    return 1 << (number - 1).bit_length()


class FirstFit:
    """A row of slots, given out in pieces: the first gap that is long enough."""

    def __init__(self, num_slots: int) -> None:
        self.gaps = [(0, num_slots)]  # (start, slots), in order, never two side by side
        self.pieces: dict[int, int] = {}  # start: slots

    def allocate(self, slots: int) -> int | None:
        """The start of a piece of this many slots, or None if no gap is long enough."""
        for index, (start, size) in enumerate(self.gaps):
            if size >= slots:
                left = [(start + slots, size - slots)] if size > slots else []
                self.gaps[index : index + 1] = left
                self.pieces[start] = slots
                return start
        return None

    def release(self, start: int) -> None:
        """Give a piece back; gaps that now touch become one."""
        merged: list[tuple[int, int]] = []
        for at, size in sorted([*self.gaps, (start, self.pieces.pop(start))]):
            if merged and sum(merged[-1]) == at:
                at, size = merged[-1][0], merged.pop()[1] + size
            merged.append((at, size))
        self.gaps = merged


class Buddy:
    """A row of slots, halved until a piece fits: all sizes are powers of two.

    A piece of size s starts at a multiple of s, so the other half it was cut from, its
    buddy, starts at `start ^ s`. Two free buddies become one piece again.
    """

    def __init__(self, num_slots: int) -> None:
        self.free: dict[int, set[int]] = defaultdict(set)  # size: starts
        self.pieces: dict[int, int] = {}
        start = 0
        while start < num_slots:  # a row of any length is a row of shrinking powers of two
            size = 1 << (num_slots - start).bit_length() - 1
            self.free[size].add(start)
            start += size

    def allocate(self, slots: int) -> int | None:
        """The start of a piece of the next power of two, or None if there is none."""
        wanted = power_of_two(slots)
        fitting = [size for size, starts in self.free.items() if starts and size >= wanted]
        if not fitting:
            return None
        size = min(fitting)
        start = min(self.free[size])
        self.free[size].remove(start)
        while size > wanted:
            size //= 2
            self.free[size].add(start + size)
        self.pieces[start] = size
        return start

    def release(self, start: int) -> None:
        """Give a piece back, and join it with its buddy as long as that is free."""
        size = self.pieces.pop(start)
        while (start ^ size) in self.free[size]:
            self.free[size].remove(start ^ size)
            start = min(start, start ^ size)
            size *= 2
        self.free[size].add(start)


@dataclass(slots=True, eq=False)
class Text:
    """A request on its way: tokens now and at the end; the slots it has, and from where."""

    tokens: int
    end: int
    slots: int = 0
    start: int = 0
    since: int = 0


class Memory(Protocol):
    """What `serve` needs of a memory of `num_slots`, of which `taken` are set aside."""

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
