"""Exercise 1.3: predict who starts."""

from __future__ import annotations

import itertools

from paged_tutorial.page_table import blocks_needed
from paged_tutorial.reservation import Paged, Text

from .. import answers_01 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_function

IN_ORDER = "Requests start in order: behind one that does not fit, everybody waits."
ROOM = "A request starts if there are blocks for its whole prompt and one more token."


class HowManyStart(Play):
    """One call; the truth is what the package's paged memory admits."""

    def begin(self, num_slots: int, block_size: int, prompts: list[int]) -> None:
        text = f"{self.name}({prompts}, {num_slots}, {block_size})"
        outcome = self.run(text, self.thing, list(prompts), num_slots, block_size)
        memory, truth = Paged(num_slots, block_size), 0
        while truth < len(prompts) and memory.admit(Text(prompts[truth], prompts[truth] + 1)):
            truth += 1
        needs = [blocks_needed(prompt + 1, block_size) for prompt in prompts]
        expected = f"{truth}: they need {needs} blocks, of {num_slots // block_size}"
        came = outcome.integer(ROOM, expected)
        free, overtaking = num_slots // block_size, 0
        for blocks in needs:
            if blocks <= free:
                free, overtaking = free - blocks, overtaking + 1
        rule = IN_ORDER if came == overtaking else ROOM
        self.require(came == truth, rule, expected, came)


def how_many_start_cases():
    """Short lines of short prompts in small memories, then longer ones."""
    yield Case((8, 4, []))
    for length in (1, 2, 3):
        for prompts in itertools.product((1, 3, 4, 7, 8), repeat=length):
            for num_slots, block_size in ((8, 4), (11, 4), (12, 4), (12, 1)):
                yield Case((num_slots, block_size, list(prompts)))
    yield Case((15_696, 16, [161] * 200))


HOW_MANY_START = Exercise(
    id="1.3",
    title="Predict who starts",
    minutes=10,
    difficulty=2,
    stub='''
def how_many_start(prompts, num_slots, block_size):
    """How many of the waiting requests start?

    prompts: tokens of each prompt, first come first; num_slots: the
    slots of an empty paged memory. A request needs whole blocks for
    its prompt and its first new token, or it waits.
    how_many_start([3, 9, 2], 12, 4) is 1.
    """
    raise NotImplementedError
''',
    hints=(
        "Count in blocks. How many whole blocks has the memory? How many does a prompt of 4 "
        "need if a block has 4 slots, and the next token must go somewhere?",
        "In the example the first prompt takes one of three blocks. The second needs three and "
        "two are left, so it waits. The third would fit. May it overtake?",
        "Loop over the prompts, subtract what each needs, and `break` at the first that does "
        "not fit.",
    ),
    solution=answers.how_many_start,
    require=lambda thing: require_function(thing, "prompts", "num_slots", "block_size"),
    play=HowManyStart,
    cases=how_many_start_cases,
    insight="Fair, and wasteful: one long prompt at the head of the line keeps free blocks idle. "
    "Letting others overtake fills them, and may starve the long one. Chapter 11 measures both.",
    mutants=(
        Mutant("short ones overtake", "in order", "break", "continue"),
        Mutant("no room for the next token", "one more token", "prompt + 1", "prompt"),
        Mutant(
            "slots instead of blocks",
            "one more token",
            "blocks_needed(prompt + 1, block_size)",
            "(prompt + 1) / block_size",
        ),
        Mutant(
            "rounded down",
            "one more token",
            "blocks_needed(prompt + 1, block_size)",
            "(prompt + 1) // block_size",
        ),
        Mutant("the last block is never given", "one more token", "needs > free", "needs >= free"),
        Mutant("nothing is used up", "one more token", "free -= needs", "free -= 0"),
    ),
    alternatives=(answers.how_many_start_at_once,),
)
