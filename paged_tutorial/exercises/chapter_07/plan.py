"""Exercise 7.1: plan a step."""

from __future__ import annotations

import operator

import numpy as np

from .. import answers_07 as answers
from ..exercise import Exercise, Mutant
from ..play import Broken, Case, Outcome, Play, require_function
from ..telling import advice_on

TRIPLES = "A plan is a list of (request, positions, gets_token)."
ONCE = "A request stands in the list once, with all the positions that it takes."
IN_ORDER = "Who came first is served first, and who takes nothing is not in the list."
FIRST = "Each takes the first of its missing positions: the later ones rest on them."
WHOLE_STEP = "The budget is that of the whole step: what one has taken, the others cannot."
USED_UP = "As long as budget is left, the next in line takes what is left of it."
NO_LIMIT = "Without a budget everything that is missing is computed."
TOKEN = "A request gets a token if and only if it took all that it misses."


class PlanPlay(Play):
    """One step; the truth is found by handing out the budget one position at a time."""

    def begin(self, missing: dict, budget: int | None) -> None:
        """missing: {request: positions}"""
        left = sum(map(len, missing.values())) if budget is None else budget
        truth: dict = {}
        for who, positions in missing.items():
            for position in positions:
                if left:
                    truth.setdefault(who, []).append(position)
                    left -= 1
        plan = [(who, chosen, chosen == missing[who]) for who, chosen in truth.items()]
        text = f"{self.name}({missing}, budget={budget})"
        outcome = self.run(text, self.thing, {w: list(p) for w, p in missing.items()}, budget)
        found = self._triples(outcome, str(plan))
        takes = {who: positions for who, positions, _ in found}
        number = sum(len(positions) for _, positions, _ in found)
        wanted, came = str(plan), str(found)
        self.require(takes.keys() <= missing.keys(), TRIPLES, wanted, came)
        if budget is None:
            self.require(number == sum(map(len, missing.values())), NO_LIMIT, wanted, came)
        else:
            self.require(number <= budget, WHOLE_STEP, wanted, came)
        self.require(len(takes) == len(found), ONCE, wanted, came)
        for who, positions in takes.items():
            known = list(missing.get(who, ()))
            self.require(positions == known[: len(positions)], FIRST, wanted, came)
        self.require(all(takes.values()), IN_ORDER, wanted, came)
        order = [who for who in missing if who in takes]
        self.require(list(takes) == order, IN_ORDER, wanted, came)
        self.require(number == sum(map(len, truth.values())), USED_UP, wanted, came)
        self.require(takes == truth, IN_ORDER, wanted, came)
        self.require(found == plan, TOKEN, wanted, came)

    def _triples(self, outcome: Outcome, expected: str) -> list[tuple]:
        value = outcome.returned(expected)
        try:
            lists = [value, *(positions for _, positions, _ in value)]
            if not all(isinstance(one, (list, tuple, range, np.ndarray)) for one in lists):
                raise TypeError("what can be read only once, or in any order, is no list")
            {who for who, _, _ in value}  # a request has a name, and no list is one
            return [(w, [operator.index(p) for p in ps], bool(token)) for w, ps, token in value]
        except (TypeError, ValueError):
            raise Broken(TRIPLES, expected, outcome.came(), advice_on(value)) from None


def plan_cases():
    """One request, then two, then three, each with every budget that makes a difference."""
    groups = [
        {"A": [4]},
        {"A": [0, 1, 2]},
        {"A": [5], "B": [0, 1]},
        {"A": [], "B": [3]},
        {"B": [9], "A": [4]},
        {"A": [0, 1], "B": [7], "C": [2, 3, 8]},
        {"B": [9], "A": [4, 5, 6, 7], "D": [1], "C": [0]},
    ]
    for missing in groups:
        total = sum(map(len, missing.values()))
        for budget in (None, *range(total + 2, -1, -1)):
            yield Case((missing, budget))


PLAN = Exercise(
    id="7.1",
    title="Plan a step",
    minutes=8,
    difficulty=1,
    stub='''
def plan_step(missing, budget):
    """What the next step computes: a list of (request, positions, gets_token).

    missing: {request: its positions to compute, ascending}; who came first stands first
    budget: positions in the whole step at most, or None for no limit
    In this order each takes its first missing positions, as many as are left of the budget.
    Who takes none is not in the list. gets_token: whether it took all that it misses.
    """
    raise NotImplementedError
''',
    hints=(
        "Keep a number `left`, and take from it whatever a request takes.",
        "`positions[:left]` are the first few; with `left = None` they are all of them.",
        "Only if something was taken: append. `len(chosen) == len(positions)` says whether it "
        "was all.",
    ),
    solution=answers.plan_step,
    require=lambda thing: require_function(thing, "missing", "budget"),
    play=PlanPlay,
    cases=plan_cases,
    insight="You have written the heart of an engine's scheduler. Prefill and decode do not occur "
    "in it: there are positions that are missing, and a budget.",
    mutants=(
        Mutant(
            "each request has the whole budget", "of the whole step", "left -= len(chosen)", "pass"
        ),
        Mutant(
            "the last positions",
            "the first of its",
            "chosen = positions[:left]",
            "chosen = positions if left is None else positions[max(0, len(positions) - left) :]",
        ),
        Mutant("who takes nothing is listed", "not in the list", "if chosen:", "if True:"),
        Mutant(
            "a prompt that does not fit is put off",
            "takes what is left",
            "if chosen:",
            "if chosen and len(chosen) < len(positions):\n            continue\n        if chosen:",
        ),
        Mutant(
            "position by position",
            "stands in the list once",
            "plan.append((request, chosen, len(chosen) == len(positions)))",
            "plan += [(request, [one], one == positions[-1]) for one in chosen]",
        ),
        Mutant("a generator", "is a list", "return plan", "return (one for one in plan)"),
        Mutant(
            "positions that can be read once",
            "is a list",
            "plan.append((request, chosen,",
            "plan.append((request, iter(chosen),",
        ),
        Mutant(
            "positions instead of the request",
            "is a list of (request",
            "plan.append((request,",
            "plan.append((positions[0],",
        ),
        Mutant(
            "everybody gets a token",
            "if and only if",
            "len(chosen) == len(positions)",
            "True",
        ),
        Mutant(
            "only single positions give a token",
            "if and only if",
            "len(chosen) == len(positions)",
            "len(chosen) == 1",
        ),
        Mutant(
            "None is taken for 0",
            "Without a budget",
            "plan, left = [], budget",
            "plan, left = [], budget or 0",
        ),
        Mutant(
            "0 is taken for None",
            "of the whole step",
            "plan, left = [], budget",
            "plan, left = [], budget or None",
        ),
        Mutant(
            "in alphabetical order",
            "came first",
            "in missing.items()",
            "in sorted(missing.items())",
        ),
        Mutant(
            "short ones first",
            "came first",
            "in missing.items()",
            "in sorted(missing.items(), key=lambda entry: len(entry[1]))",
        ),
    ),
    alternatives=(answers.plan_step_by_position,),
)
