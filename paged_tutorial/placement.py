"""Where a piece of memory goes when it must lie in one piece: first fit, and the buddy system.

In English: first fit looks through the gaps and takes the first that is long enough; what is
free ends up in gaps of every length. The buddy system allows powers of two only, which
wastes the rest of each piece and makes two neighbours easy to join again.

Knowlton, "A Fast Storage Allocator" (1965); Knuth, The Art of Computer Programming 1, 2.5.
"""

from __future__ import annotations

from collections import defaultdict


def power_of_two(number: int) -> int:
    """The smallest power of two that is not less than `number`."""
    return 1 << max(0, number - 1).bit_length()


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
