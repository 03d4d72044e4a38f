"""Exercise 6.1: what must be computed?."""

from __future__ import annotations

from .. import answers_06 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_function
from .common import subsets

MISSING = "A position whose block is not in the pool must be computed."
PRESENT = "A position whose block is in the pool is read, and not computed."
LAST = "The block of the last token is always computed: without a query there is no answer."
PREFIX = "With holes=False everything from the first missing position on is computed."
ASCENDING = "The positions come in ascending order, each once."


class ToComputePlay(Play):
    """One call; the truth position by position."""

    def begin(self, num_tokens: int, block_size: int, resident: tuple, *holes: bool) -> None:
        """resident: logical blocks, all of them full; holes: left out, or one truth value."""
        said = f", holes={holes[0]}" if holes else ""
        text = f"{self.name}({num_tokens}, {block_size}, {set(resident) or 'set()'}{said})"
        given, holes = holes, all(holes)
        last = (num_tokens - 1) // block_size
        missing = [p for p in range(num_tokens) if p // block_size not in {*resident} - {last}]
        wanted = missing if holes else list(range(missing[0], num_tokens))
        outcome = self.run(text, self.thing, num_tokens, block_size, set(resident), *given)
        found = outcome.list_of_integers(ASCENDING, str(wanted))
        rule = self._rule(found, wanted, missing, last, block_size, holes)
        self.require(found == wanted, rule, wanted, found)

    @staticmethod
    def _rule(found, wanted, missing, last, block_size, holes) -> str:
        """Which rule a wrong list breaks."""
        lacking, more = {*wanted} - {*found}, {*found} - {*wanted}
        if not lacking and not more:
            return ASCENDING
        if any(position // block_size == last for position in lacking):
            return LAST
        if lacking & {*missing}:
            return MISSING
        return PRESENT if more or holes else PREFIX


def to_compute_cases():
    """All sets of resident blocks of short texts, with holes and without."""
    for holes in (True, False):
        for num_tokens, block_size in ((1, 2), (2, 2), (3, 2), (4, 2), (6, 2), (7, 2), (9, 3)):
            for resident in subsets(num_tokens // block_size):
                yield Case((num_tokens, block_size, resident, holes))
    yield Case((6, 2, (1,)))


TO_COMPUTE = Exercise(
    id="6.1",
    title="What must be computed?",
    minutes=8,
    difficulty=1,
    stub='''
def to_compute(num_tokens, block_size, resident, holes=True):
    """The positions of a text that the model must run on, in ascending order.

    resident: the set of the logical blocks that are in the pool; all of them are full
    holes: with False, nothing behind the first missing position is used

    The last token is always computed, and with it its whole block: somebody else may hold
    that block too, and a slot that is shared is never written.
    """
    raise NotImplementedError
''',
    hints=(
        "Position p lies in block p // block_size. Which block does the last token lie in? Take "
        "it out of `resident` first.",
        "With holes it is one list comprehension over all positions.",
        "Without holes: find the first position that is missing. All from there on are computed. "
        "There always is one, since the last token's block counts as missing.",
    ),
    solution=answers.to_compute,
    require=lambda thing: require_function(thing, "num_tokens", "block_size", "resident", "holes"),
    play=ToComputePlay,
    cases=to_compute_cases,
    insight="Without holes a text is worth what stands before the first gap, however much lies "
    "behind it. `cache.missing` gives this list; the next question is how to compute it.",
    mutants=(
        Mutant("a resident last block is used", "last token", " and block != last_block", ""),
        Mutant(
            "only the last token",
            "last token",
            "last_block = (num_tokens - 1) // block_size",
            "last_block = num_tokens // block_size",
        ),
        Mutant("holes are filled either way", "holes=False", "(holes or complete)", "True"),
        Mutant("never with holes", "read, and not", "(holes or complete)", "complete"),
        Mutant(
            "the ones that are there",
            "last token",
            "append(position)",
            "append(position) if found else None",
        ),
        Mutant("blocks instead of positions", "last token", "append(position)", "append(block)"),
        Mutant("no holes by default", "read, and not", "holes=True", "holes=False"),
        Mutant("from the back", "ascending", "return positions", "return positions[::-1]"),
        Mutant("no return", "ascending", "return positions", "positions"),
    ),
    alternatives=(answers.to_compute_by_blocks,),
)
