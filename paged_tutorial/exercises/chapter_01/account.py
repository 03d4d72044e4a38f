"""Exercise 1.2: what are the slots good for?."""

from __future__ import annotations

import itertools

from .. import answers_01 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Play, require_function

THREE = "account returns three whole numbers that add up to all slots set aside."
HOLDS = "First comes how many slots hold a token now."
LATER = "Set aside for later are the slots that this request will fill before it ends."
NEVER = "Set aside for nothing are the slots that stay empty to the end."


class Account(Play):
    """One call; the truth is counted slot by slot."""

    def begin(self, now: int, end: int, slots: int) -> None:
        outcome = self.run(f"{self.name}({now}, {end}, {slots})", self.thing, now, end, slots)
        later = len([slot for slot in range(slots) if now <= slot < end])
        truth = [now, later, slots - now - later]
        expected = f"({truth[0]}, {truth[1]}, {truth[2]})"
        came = outcome.list_of_integers(THREE, expected)
        told = outcome.came()
        self.require(len(came) == 3, THREE, expected, told)
        for rule, right, found in zip((HOLDS, LATER, NEVER), truth, came, strict=True):
            self.require(right == found, rule, expected, told)


def account_cases():
    """All small requests; first those whose slots are enough, then those that must grow."""
    triples = [
        (now, end, slots)
        for now, end, slots in itertools.product(range(6), range(1, 8), range(1, 9))
        if now <= end and now <= slots
    ]
    yield from map(Case, sorted(triples, key=lambda t: (t[1] > t[2], sum(t))))
    yield from map(Case, [(161, 499, 2048), (161, 499, 176), (499, 499, 512)])


ACCOUNT = Exercise(
    id="1.2",
    title="What are the slots good for?",
    minutes=6,
    difficulty=1,
    stub='''
def account(now, end, slots):
    """What are the slots of a request good for? Three numbers.

    It has `now` tokens, will have `end`, and `slots` slots are set
    aside for it. Return how many of those hold tokens, are set aside
    for later, and for nothing. account(3, 5, 8) is (3, 2, 3).

    In a paged memory, slots may be fewer than end. The rest is not
    set aside yet, so it counts nowhere: account(3, 5, 4) is (3, 1, 0).
    """
    raise NotImplementedError
''',
    hints=(
        "Draw a row of slots. Mark where the text ends now, and where it will end.",
        "The text will end at `end`, or at the last slot, whichever comes first.",
        "`min(end, slots)` slots will have been used in the end. All three numbers follow.",
    ),
    solution=answers.account,
    require=lambda thing: require_function(thing, "now", "end", "slots"),
    play=Account,
    cases=account_cases,
    insight="Only the third number is waste that an oracle would avoid. The second is memory that "
    "somebody else could have used until then, and that no oracle gives back: for that, memory "
    "must be handed out late.",
    mutants=(
        Mutant(
            "all that is empty will be filled",
            "for later",
            "used_in_the_end = min(end, slots)",
            "used_in_the_end = slots",
        ),
        Mutant(
            "it has more slots than were set aside",
            "for later",
            "min(end, slots)",
            "end",
        ),
        Mutant(
            "the whole text, not what is missing",
            "for later",
            "used_in_the_end - now",
            "used_in_the_end",
        ),
        Mutant("slots not used yet", "for nothing", "slots - used_in_the_end", "slots - now"),
        Mutant(
            "a request without tokens is taken to have one",
            "for later",
            "used_in_the_end - now",
            "used_in_the_end - max(now, 1)",
        ),
        Mutant("two numbers", "three whole numbers", ", slots - used_in_the_end", ""),
        Mutant("the end for now", "hold a token now", "return now", "return used_in_the_end"),
    ),
    alternatives=(answers.account_by_slots,),
)
