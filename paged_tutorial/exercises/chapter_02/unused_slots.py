"""Exercise 2.1: how many slots stay empty?."""

from __future__ import annotations

import itertools

from .. import answers_02 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_function

UNUSED = "Unused slots are what the last block has left: 0 to block size − 1."


class UnusedSlots(Play):
    """One call; the truth is found by adding blocks until the text fits."""

    def begin(self, num_tokens: int, block_size: int) -> None:
        text = f"{self.name}({num_tokens}, {block_size})"
        outcome = self.run(text, self.thing, num_tokens, block_size)
        room = 0
        while room < num_tokens:
            room += block_size
        truth = room - num_tokens
        noun = "token takes" if num_tokens == 1 else "tokens take"
        filled = f"{num_tokens} {noun} {room // block_size} × {block_size} slots"
        came = outcome.integer(UNUSED, f"{truth}, a whole number: {filled}")
        self.require(came == truth, UNUSED, f"{truth}: {filled}", came)


def unused_slots_cases():
    """Small texts and small blocks first; then large ones, and the odd ones out."""
    small = sorted(itertools.product(range(1, 10), range(2, 6)), key=sum)
    large = itertools.product((15, 16, 17, 499, 8192), (8, 16, 128))
    odd = [(0, 4), (1, 1), (5, 1), (0, 1)]
    return (Case(pair) for pair in [*small, *large, *odd])


UNUSED_SLOTS = Exercise(
    id="2.1",
    title="How many slots stay empty?",
    minutes=4,
    difficulty=1,
    stub='''
def unused_slots(num_tokens, block_size):
    """How many slots of its last block does a text leave empty?

    unused_slots(5, 4) is 3: two blocks of four, three slots unused.
    unused_slots(0, 4) is 0: no tokens, no block.
    """
    raise NotImplementedError
''',
    hints=(
        "How many blocks does the text need? That is `num_tokens / block_size`, rounded up.",
        "All slots of those blocks, minus the tokens, stay empty. Try 8 tokens in blocks of 4.",
        "In Python `-7 % 4` is 1: the remainder takes the sign of the divisor.",
    ),
    solution=answers.unused_slots,
    require=lambda thing: require_function(thing, "num_tokens", "block_size"),
    play=UnusedSlots,
    cases=unused_slots_cases,
    insight="However long a text gets, it wastes less than one block. If every remainder is "
    "equally likely, that is (block size − 1) / 2 slots on average: 7.5 for blocks of 16.",
    mutants=(
        Mutant(
            "a full last block counts as empty",
            "last block",
            "-num_tokens % block_size",
            "block_size - num_tokens % block_size",
        ),
        Mutant("the used slots", "last block", "-num_tokens %", "num_tokens %"),
        Mutant(
            "a float", "last block", "-num_tokens % block_size", "float(-num_tokens % block_size)"
        ),
        Mutant("no return", "last block", "return -num", "-num"),
        Mutant("block size fixed at 16", "last block", "% block_size", "% 16"),
        Mutant(
            "printed, not returned",
            "last block",
            "return -num_tokens % block_size",
            "print(-num_tokens % block_size)",
        ),
    ),
    alternatives=(answers.unused_slots_by_blocks,),
)
