"""The exercises of chapter 7: the paged engine."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter, deque
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from paged_tutorial import (
    Batch,
    BlockPool,
    OutOfBlocksError,
    PagedEngine,
    PagedKVCache,
    dense_attention,
    random_model,
)

from . import answers_07 as answers
from .chapter_02 import whole
from .checking import all_sequences, random_sequences
from .exercise import Exercise, Mutant
from .play import (
    NO_ACCIDENT,
    Broken,
    Case,
    Outcome,
    Play,
    Unattempted,
    require_class,
    require_function,
)
from .smollm2 import smollm2
from .telling import advice_on, tell, where

# -- 7.1 ----------------------------------------------------------------------------------

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

# -- 7.2 ----------------------------------------------------------------------------------

NEWEST = "The newest of those who run gives way: the last of engine.running, and nobody else."
ALL_BLOCKS = "The victim gives all its blocks back to the cache."
HEAD = "The victim waits at the head of the line: it came before all who wait there."
ITSELF = "The request itself waits, and no copy of it: whoever asked holds on to it."
KEEPS = "The victim keeps what it has said: that was sent to somebody, and is paid for."
SAME_ASK = "What a request asked for stays as it was: its prompt, and its new tokens at most."
LEAK = "Nobody holds the others any more, and they are not free either. release() gives them back."
UNFINISHED = "The victim comes back later: nobody has finished."
LINE = "engine.waiting stays a deque: admit takes from its front with popleft()."


@dataclass(eq=False)
class Chat:
    """A request as in the notebook."""

    request_id: str
    prompt: list[int]
    most: int = 12
    generated: list[int] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        """Prompt and what has been said."""
        return self.prompt + self.generated


def _name_of(chat) -> str:
    """The name of a request, or what stands there instead."""
    return chat.request_id if isinstance(chat, Chat) else tell(chat)


class PreemptPlay(Play):
    """Some run and have said something, some wait; one after the other has to go."""

    whose = "The engine's"

    def begin(self, running: str, waiting: str) -> None:
        """running, waiting: names, in the order in which they came."""
        cache = PagedKVCache(BlockPool(16, 2))
        chats = [
            Chat(name, [n, n + 1, n + 2], generated=[50 + n, 60 + n])
            for n, name in enumerate(running)
        ]
        for chat in chats:
            cache.admit(chat.request_id, chat.tokens)
            cache.commit(chat.request_id, cache.missing(chat.request_id))
        line = deque(Chat(name, [90]) for name in waiting)
        self.engine = SimpleNamespace(
            cache=cache, running=chats, waiting=line, finished=[], budget=None
        )
        self.subject = cache
        text = f"engine = …  # running {list(running)}, waiting {list(waiting)}"
        self.run(f"{text}, each has said 2 tokens", lambda: None)

    def preempt(self) -> None:
        """One has to go."""
        engine = self.engine
        running, waiting = list(engine.running), list(engine.waiting)
        said = {chat: list(chat.generated) for chat in (*running, *waiting)}
        asked = {chat: (list(chat.prompt), chat.most) for chat in said}
        self.run(f"{self.name}(engine)", self.thing, engine).returned("no exception")
        victim = running[-1]
        names = [chat.request_id for chat in running[:-1]]
        now = [_name_of(chat) for chat in engine.running]
        self.require(now == names, NEWEST, f"running {names}", f"running {now}")
        held = list(engine.cache.holdings)
        self.require(held == names, ALL_BLOCKS, f"blocks held by {names}", f"by {held}")
        tables = [engine.cache.holdings[name].table.block_ids for name in names]
        wanted, pool = len(set().union(*tables)), engine.cache.pool
        used = pool.num_blocks - pool.num_free
        self.require(used == wanted, ALL_BLOCKS, f"{wanted} blocks in use", f"{used}", LEAK)
        self.require(
            victim.generated == said[victim],
            KEEPS,
            f"{victim.request_id} has said {said[victim]}",
            f"{victim.generated}",
        )
        names = [chat.request_id for chat in (victim, *waiting)]
        now = [_name_of(chat) for chat in engine.waiting]
        kind = type(engine.waiting).__name__
        self.require(hasattr(engine.waiting, "popleft"), LINE, "a deque", f"a {kind}")
        self.require(now == names, HEAD, f"waiting {names}", f"waiting {now}")
        itself = engine.waiting[0] is victim
        self.require(itself, ITSELF, f"{victim.request_id} as it ran", "another object")
        same = all(chat.generated == said[chat] for chat in said)
        self.require(same, KEEPS, "the others as they were", "somebody else's tokens changed")
        done = [_name_of(chat) for chat in engine.finished]
        self.require(not done, UNFINISHED, "finished []", f"finished {done}")
        for chat, (prompt, most) in asked.items():
            wanted = f"{chat.request_id}: prompt {prompt}, most {most}"
            came = f"{chat.request_id}: prompt {chat.prompt}, most {chat.most}"
            self.require(wanted == came, SAME_ASK, wanted, came)


def preempt_cases():
    """One to three who run, none to two who wait, one or several victims.

    Not all are in alphabetical order, which is not the order in which they came.
    """
    for running, waiting in itertools.product(("A", "AB", "ABC", "BCA"), ("", "Y", "ZY")):
        for victims in range(1, len(running) + 1):
            yield Case((running, waiting), (("preempt",),) * victims)


PREEMPT_STUB = '''
def preempt(engine):
    """The newest of those who run gives all its blocks back, and waits."""
    victim = engine.running.pop()
    engine.cache.release(victim.request_id)
    victim.generated.clear()
    engine.waiting.append(victim)
'''


def require_other_than_planted(thing) -> None:
    """A function, and not the one with the planted bugs."""
    require_function(thing, "engine")
    names: dict[str, object] = {}
    exec(PREEMPT_STUB, {}, names)
    code, planted = getattr(thing, "__code__", None), names["preempt"].__code__
    if code is not None and (code.co_code, code.co_names) == (planted.co_code, planted.co_names):
        raise Unattempted("`preempt` is as it was planted, bugs included.")


PREEMPT = Exercise(
    id="7.2",
    title="Find the bugs: a victim treated badly",
    minutes=10,
    difficulty=2,
    stub=PREEMPT_STUB,
    hints=(
        "More tokens are drawn than stand in the answers. Whose were drawn twice, and which line "
        "made that necessary?",
        "The questions came in alphabetical order. B came second. Where in the line does it wait "
        "once it has been preempted, and who passes it?",
        "Take one line out, and put the victim in at the other end of the deque.",
    ),
    solution=answers.preempt,
    require=require_other_than_planted,
    play=PreemptPlay,
    cases=preempt_cases,
    insight="Preemption costs time, never words. With greedy decoding a forgotten token comes out "
    "the same again, which is why no comparison of answers finds this bug; whoever reads the "
    "answer as it is written sees it start anew.",
    mutants=(
        Mutant("to the back of the line", "head of the line", "appendleft", "append"),
        Mutant(
            "the oldest gives way",
            "newest of those",
            "engine.running.pop()",
            "engine.running.pop(0)",
        ),
        Mutant(
            "the last by name gives way",
            "newest of those",
            "victim = engine.running.pop()",
            "victim = max(engine.running, key=lambda one: one.request_id)\n"
            "    engine.running.remove(victim)",
        ),
        Mutant(
            "a copy waits",
            "no copy of it",
            "engine.waiting.appendleft(victim)",
            "engine.waiting.appendleft(type(victim)(**vars(victim)))",
        ),
        Mutant(
            "only its name waits",
            "head of the line",
            "engine.waiting.appendleft(victim)",
            "engine.waiting.appendleft(victim.request_id)",
        ),
        Mutant(
            "the blocks stay",
            "gives all its blocks",
            "engine.cache.release(victim.request_id)",
            "pass",
        ),
        Mutant(
            "starts anew",
            "keeps what it has said",
            "    engine.waiting",
            "    victim.generated = []\n    engine.waiting",
        ),
        Mutant(
            "the last word is dropped",
            "keeps what it has said",
            "    engine.waiting",
            "    victim.generated.pop()\n    engine.waiting",
        ),
        Mutant(
            "sent away for good", "head of the line", "engine.waiting.appendleft(victim)", "pass"
        ),
        Mutant(
            "only taken from the list of holders",
            "gives all its blocks",
            "engine.cache.release(",
            "engine.cache.holdings.pop(",
        ),
        Mutant(
            "may say less than it asked for",
            "asked for stays",
            "    engine.waiting",
            "    victim.most -= len(victim.generated)\n    engine.waiting",
        ),
        Mutant(
            "counted as finished too",
            "nobody has finished",
            "    engine.waiting",
            "    engine.finished.append(victim)\n    engine.waiting",
        ),
        Mutant(
            "the line is sorted",
            "head of the line",
            "engine.waiting.appendleft(victim)",
            "engine.waiting = type(engine.waiting)(\n"
            "        sorted([victim, *engine.waiting], key=lambda one: one.request_id)\n    )",
        ),
        Mutant(
            "the line becomes a list",
            "stays a deque",
            "engine.waiting.appendleft(victim)",
            "engine.waiting = [victim, *engine.waiting]",
        ),
        Mutant(
            "still listed as running",
            "newest of those",
            "engine.running.pop()",
            "engine.running[-1]",
        ),
    ),
    alternatives=(answers.preempt_by_index,),
)

# -- 7.3 ----------------------------------------------------------------------------------

DRAWN = "Above temperature 0 the token is drawn: other seeds and positions, other tokens."
GREEDY = "Temperature 0 takes the most likely token."
WHOLE_NUMBER = "A token is a whole number."
SAME_DRAW = "Equal arguments give an equal token, whatever was drawn in between."
OWN_DRAW = "Each seed draws for itself: seed 1 at position 2 is not seed 2 at position 1."
NEXT_DRAW = "Each position has a draw of its own."
KEPT = "Top-p keeps the fewest tokens that reach top_p together: the one that crosses it stays."
TEMPERATURE = "Logits are divided by the temperature, and top-p cuts what comes of that."
SHARES = "Of the tokens kept, each comes as often as its probability says."
LARGE = "Logits of any size are right: no exp overflows."
DRAWS = 400


def shares_of(logits, temperature: float, top_p: float) -> dict[int, float]:
    """The truth: the tokens kept, each with its probability."""
    scaled = np.asarray(logits, np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    kept: dict[int, float] = {}
    for token in np.argsort(-weights, kind="stable").tolist():
        if sum(kept.values()) >= top_p * weights.sum():
            break
        kept[token] = float(weights[token])
    return {token: weight / sum(kept.values()) for token, weight in kept.items()}


class DrawPlay(Play):
    """Single draws, then many, which are counted."""

    def begin(self) -> None:
        """Nothing yet."""

    def greedy(self, logits) -> None:
        """Temperature 0."""
        best = int(np.argmax(logits))
        found = self._draw(logits, 0.0, 0.9, 3, 5, GREEDY, f"{best}, the most likely")
        self.require(found == best, GREEDY, best, found)

    def again(self, seed: int, position: int) -> None:
        """The same arguments, with another draw in between."""
        first = self._many([(seed, position)])[0]
        self._many([(seed + 1, position)])
        second = self._many([(seed, position)])[0]
        expected = f"{first}, as before"
        self.require(first == second, SAME_DRAW, expected, second)

    def apart(self) -> None:
        """Among a thousand equally likely tokens, equal draws are no accident."""
        pairs = [(seed, position) for seed in (1, 2, 3) for position in (4, 5, 6)]
        found = dict(zip(pairs, self._many(pairs), strict=True))
        came = f"{found[1, 4]} each time"
        self.require(len(set(found.values())) > 1, DRAWN, "different tokens", came)
        for seed in (1, 2):
            ahead = [found[seed, position + 1] for position in (4, 5)]
            behind = [found[seed + 1, position] for position in (4, 5)]
            expected = f"seed {seed + 1} draws for itself"
            came = (
                f"{ahead} with seed {seed} at positions 5 and 6, {behind} with {seed + 1} at 4, 5"
            )
            self.require(ahead != behind, OWN_DRAW, expected, came)
            same = [found[seed, p] for p in (4, 5, 6)] == [found[seed + 1, p] for p in (4, 5, 6)]
            self.require(not same, OWN_DRAW, "other tokens for another seed", "the same three")
        three = [found[1, p] for p in (4, 5, 6)]
        self.require(len(set(three)) > 1, NEXT_DRAW, "several tokens", f"{three}")

    def swapped(self, *pairs) -> None:
        """Seed and position may not be mixed so that it does not matter which is which."""
        there = self._many(pairs)
        back = self._many([(position, seed) for seed, position in pairs])
        came = f"{there}, and with seed and position exchanged {back}"
        self.require(there != back, OWN_DRAW, "other tokens when they are exchanged", came)

    def later(self, start: int, stop: int) -> None:
        """A text may be so long that some number × seed + position comes twice."""
        zeros = [0.0] * 100
        there, back = (
            [
                self._draw(zeros, 1.0, 1.0, seed, p, WHOLE_NUMBER, "a token of 0 to 99")
                for p in chosen
            ]
            for seed, chosen in ((1, range(5)), (0, range(start, stop)))
        )
        self.calls.clear()
        self.run(self._text(zeros, 1.0, 1.0, 1, "0 to 4"), lambda: there)
        for index in range(len(back) - 4):
            said = f"{start + index} to {start + index + 4}"
            if back[index : index + 5] == there:
                self.run(self._text(zeros, 1.0, 1.0, 0, said), lambda: there)
                self.require(False, OWN_DRAW, "other tokens with seed 0", f"{there} again")

    def zero(self) -> None:
        """Seed 0 and position 0 are like any other."""
        three = self._many([(0, position) for position in (4, 5, 6)])
        self.require(len(set(three)) > 1, NEXT_DRAW, "several tokens", f"{three}")
        three = self._many([(seed, 0) for seed in (4, 5, 6)])
        self.require(len(set(three)) > 1, OWN_DRAW, "several tokens", f"{three}")

    def fewest(self, logits, top_p: float) -> None:
        """Equally likely tokens that reach top_p exactly: how many are kept, not which."""
        truth = len(shares_of(logits, 1.0, top_p))
        expected = f"{truth} different tokens: they reach {top_p} exactly"
        draws = [
            self._draw(logits, 1.0, top_p, 7, position, KEPT, expected) for position in range(DRAWS)
        ]
        text = self._text(logits, 1.0, top_p, 7, f"0 to {DRAWS - 1}")
        self.calls[-DRAWS:] = [Outcome(text, f"{sorted(set(draws))}", ended=True)]
        self.require(len(set(draws)) == truth, KEPT, expected, f"{sorted(set(draws))}")

    def often(self, rule: str, logits, temperature: float, top_p: float) -> None:
        """Draw at many positions and count."""
        truth = shares_of(logits, temperature, top_p)
        kept = ", ".join(f"{token} in {share:.0%}" for token, share in sorted(truth.items()))
        draws = [
            self._draw(logits, temperature, top_p, 7, position, rule, f"draws of {kept}")
            for position in range(DRAWS)
        ]
        self.calls[-DRAWS:] = [
            Outcome(f"{self._text(logits, temperature, top_p, 7, f'0 to {DRAWS - 1}')}", ended=True)
        ]
        counts = Counter(draws)
        came = ", ".join(f"{token} in {n / DRAWS:.0%}" for token, n in sorted(counts.items()))
        self.calls[-1].value = came
        self.require(counts.keys() <= truth.keys(), rule, kept, came)
        for token, share in truth.items():
            # Five standard deviations, and never less than one draw.
            room = 5 * (share * (1 - share) / DRAWS) ** 0.5 + 1 / DRAWS
            self.require(abs(counts[token] / DRAWS - share) <= room, rule, kept, came)

    def _many(self, pairs) -> list[int]:
        logits = np.zeros(1000, np.float32)
        return [
            self._draw(logits, 1.0, 1.0, seed, position, WHOLE_NUMBER, "a token of 0 to 999")
            for seed, position in pairs
        ]

    def _draw(self, logits, temperature, top_p, seed, position, rule, expected) -> int:
        logits = np.asarray(logits, np.float32)
        text = self._text(logits, temperature, top_p, seed, position)
        with np.errstate(all="ignore"):
            outcome = self.run(text, self.thing, logits, temperature, top_p, seed, position)
        if outcome.error is not None:
            rule = NO_ACCIDENT if rule is WHOLE_NUMBER else rule
            raise Broken(rule, expected, outcome.came(), where(outcome.error))
        token = outcome.integer(WHOLE_NUMBER, expected)
        self.require(0 <= token < len(logits), WHOLE_NUMBER, expected, token)
        return token

    def _text(self, logits, temperature, top_p, seed, position) -> str:
        told = [round(float(number), 2) for number in logits[:4]]
        told = f"{told}" if len(logits) <= 4 else f"{len(logits)} zeros"
        rest = f"temperature={temperature}, top_p={top_p}, seed={seed}, position={position}"
        return f"{self.name}({told}, {rest})"


def draw_cases():
    """Each brings one new difficulty, and the rule that goes with it."""
    halves = np.log([0.5, 0.3, 0.2]).tolist()
    for logits in ([0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [0.0, 1.0, 2.0], [-2.0, -3.0], [9.0]):
        yield Case((), (("greedy", logits),))
    yield Case((), (("again", 1, 2),))
    yield Case((), (("apart",),))
    yield Case((), (("swapped", (1, 2), (4, 9), (3, 8)),))
    yield Case((), (("zero",),))
    for some in ((1, 1100), (4096, 4101), (10_000, 10_005)):
        yield Case((), (("later", *some),))
    yield Case((), (("often", SHARES, halves, 1.0, 1.0),))
    yield Case((), (("often", KEPT, halves, 1.0, 0.4),))
    yield Case((), (("often", KEPT, halves, 1.0, 0.6),))
    yield Case((), (("often", KEPT, halves[::-1], 1.0, 0.6),))
    yield Case((), (("fewest", [0.0, 0.0, 0.0, 0.0], 0.5),))
    yield Case((), (("often", TEMPERATURE, halves, 0.5, 1.0),))
    yield Case((), (("often", TEMPERATURE, halves, 2.0, 1.0),))
    # At temperature 1 two tokens reach 0.75; at 3, where all are nearly equal, it takes three.
    yield Case((), (("often", TEMPERATURE, halves, 3.0, 0.75),))
    yield Case((), (("often", LARGE, [1000.0, 1001.0], 1.0, 1.0),))
    for logits, temperature in (([4000.0, 4001.0], 0.5), ([-4000.0, -4001.0], 2.0)):
        yield Case((), (("often", LARGE, logits, temperature, 1.0),))
    yield Case((), (("often", LARGE, [0.0, 4000.0, -4000.0], 1.0, 1.0),))


DRAW = Exercise(
    id="7.3",
    title="Draw a token",
    minutes=15,
    difficulty=2,
    stub='''
def draw_token(logits, temperature, top_p, seed, position):
    """The next token, given logits (vocabulary_size,) at a position.

    temperature 0: the most likely one. Else divide the logits by it and take the softmax;
    keep the most likely tokens, as few as reach top_p together; draw one of them by its
    probability. The draw depends on seed and position and on nothing else, and each pair of
    them has a draw of its own.
    """
    raise NotImplementedError
''',
    hints=(
        "Sort by probability, falling, and add up: `np.cumsum`. How many entries does it take to "
        "reach top_p? The one that crosses it is one of them.",
        "What is kept adds up to less than 1. Divide by its sum before you draw.",
        "`np.random.default_rng([seed, position])` makes a generator for this one draw.",
    ),
    solution=answers.draw_token,
    require=lambda thing: require_function(
        thing, "logits", "temperature", "top_p", "seed", "position"
    ),
    play=DrawPlay,
    cases=draw_cases,
    insight="Since seed and position are all the draw knows, it does not matter who else is in the "
    "batch, or whether the request was preempted on the way. Randomness is an input like any "
    "other.",
    mutants=(
        Mutant(
            "a generator for all",
            "whatever was drawn",
            "np.random.default_rng([seed, position])",
            "vars(np).setdefault('_all_draws', np.random.default_rng(0))",
        ),
        Mutant(
            "seed and position are added",
            "draws for itself",
            "[seed, position]",
            "seed + position",
        ),
        Mutant(
            "a seed has room for a thousand positions",
            "draws for itself",
            "[seed, position]",
            "1000 * seed + position",
        ),
        Mutant(
            "a number made of seed and position",
            "draws for itself",
            "[seed, position]",
            "31 * seed + position",
        ),
        Mutant(
            "the first token is never the most likely",
            "Temperature 0",
            "int(np.argmax(logits))",
            "int(np.argmax(logits[1:])) + 1",
        ),
        Mutant(
            "temperature 0 always gives the same token",
            "Temperature 0",
            "int(np.argmax(logits))",
            "1",
        ),
        Mutant("the lowest is subtracted", "no exp overflows", "scaled.max()", "scaled.min()"),
        Mutant(
            "the highest before the temperature is subtracted",
            "no exp overflows",
            "scaled.max()",
            "np.max(logits)",
        ),
        Mutant("the position is forgotten", "draw of its own", "[seed, position]", "seed"),
        Mutant("always the most likely", "the token is drawn", "if temperature == 0:", "if True:"),
        Mutant(
            "seed and position are mixed evenly",
            "draws for itself",
            "[seed, position]",
            "seed ^ position",
        ),
        Mutant(
            "seed 0 has one draw for all",
            "draw of its own",
            "[seed, position]",
            "seed * (1000 + position)",
        ),
        Mutant(
            "a token more when top_p is reached exactly",
            "crosses it stays",
            "(cumulative, top_p) + 1",
            "(cumulative, top_p, side='right') + 1",
        ),
        Mutant(
            "the token that crosses is cut off",
            "crosses it stays",
            "np.searchsorted(cumulative, top_p) + 1",
            "max(1, np.searchsorted(cumulative, top_p))",
        ),
        Mutant(
            "one token too many",
            "crosses it stays",
            "np.searchsorted(cumulative, top_p) + 1",
            "np.searchsorted(cumulative, top_p) + 2",
        ),
        Mutant(
            "not divided by the sum",
            "crosses it stays",
            " / probabilities[kept].sum()",
            "",
        ),
        Mutant(
            "all kept are equally likely",
            "as its probability says",
            ", p=probabilities[kept] / probabilities[kept].sum()",
            "",
        ),
        Mutant(
            "top-p before temperature",
            "top-p cuts what comes",
            "cumulative = np.cumsum(probabilities[order])",
            "plain = np.exp(logits - logits.max())\n"
            "    cumulative = np.cumsum(plain[order]) / plain.sum()",
        ),
        Mutant(
            "multiplied by the temperature",
            "divided by the temperature",
            "np.float64) / temperature",
            "np.float64) * temperature",
        ),
        Mutant(
            "exp without a maximum",
            "no exp overflows",
            "np.exp(scaled - scaled.max())",
            "np.exp(scaled)",
        ),
        Mutant("no case for temperature 0", "Temperature 0", "temperature == 0", "False"),
        Mutant(
            "probabilities not sorted",
            "crosses it stays",
            "np.argsort(-probabilities)",
            "np.arange(len(probabilities))",
        ),
    ),
    alternatives=(answers.draw_token_by_hand,),
)

# -- 7.4 ----------------------------------------------------------------------------------

NEW = "A new memory has all its blocks free, and keeps its number of blocks and its block size."
FRONT = "allocate hands out the front of the queue, which then is held once."
EMPTY = "An empty queue says so with OutOfBlocksError(1, 0): one is needed, none is free."
SHARED = "share adds a holder; a block in the queue leaves it, its content as it was."
LAST = "The last holder to leave puts the block into the queue, and no other does."
ENDS = "A block that can still be hit goes to the back of the queue, any other to the front."
TWO_ARRAYS = "keys and values are two arrays: (layers, blocks, block size, kv heads, head_dim)."
LIKE_QUERIES = "attention returns an array in the shape of the queries."
UNTOUCHED = "attention only reads: queries, keys and values stay as they were."
ANY_SIZE = "Scores of any size are right: no exp overflows."
ATTENTION = "attention equals attention over the same keys and values in one run."
SAME_ANSWER = "On your memory the model writes the tokens that it writes on the package's."
FOUND = "On your memory as many tokens are found as on the package's."
LONG = 120.0  # seconds for a model on a busy machine
QUESTION = "What is the capital of France?"


class MemoryPlay(Play):
    """The bookkeeping beside that of the package, then attention, then models."""

    def begin(self, num_blocks: int, *sizes: int) -> None:
        """Both memories; sizes: block size, layers, kv heads and head_dim."""
        size, layers, kv_heads, head_dim = sizes or (4, 2, 2, 4)
        shape = dict(num_layers=layers, num_kv_heads=kv_heads, head_dim=head_dim)
        self.truth = BlockPool(num_blocks, size, **shape)
        self.memory = self.subject = self._made(num_blocks, size, layers, kv_heads, head_dim)
        self._compare(NEW)

    def _made(self, *shape: int):
        """A memory of this shape."""
        made = self.run(f"memory = {self.name}{shape}", self.thing, *shape)
        memory = made.returned("a memory")
        made.value = None
        for name, wanted in (("num_blocks", shape[0]), ("block_size", shape[1])):
            came = getattr(memory, name, None)
            self.require(came == wanted, NEW, f"memory.{name} {wanted}", tell(came))
        return memory

    def allocate(self) -> None:
        """One block, or none left."""
        outcome = self.run("memory.allocate()", lambda: self.memory.allocate())
        if not self.truth.num_free:
            outcome.raised(OutOfBlocksError, EMPTY)
            needed, free_then = outcome.error.needed, outcome.error.free
            came = f"needed {needed}, free {free_then}"
            self.require((needed, free_then) == (1, 0), EMPTY, "needed 1, free 0", came)
            self._compare(EMPTY)
            return
        wanted = self.truth.allocate()
        # Which block comes is decided by where the blocks went when they were released.
        rule = ENDS if any(call.text.startswith("memory.release") for call in self.calls) else FRONT
        found = outcome.integer(rule, str(wanted))
        self.require(found == wanted, rule, wanted, found)
        self._compare(FRONT)

    def share(self, block: int) -> None:
        """One holder more."""
        self.run(f"memory.share({block})", lambda: self.memory.share(block)).returned("nothing")
        self.truth.share(block)
        self._compare(SHARED)

    def release(self, block: int, cached: bool) -> None:
        """One holder less, if there is one."""
        if not self.truth.reference_counts[block]:
            return
        text = f"memory.release({block}, cached={cached})"
        self.run(text, lambda: self.memory.release(block, cached=cached)).returned("nothing")
        self.truth.release(block, cached)
        self._compare(LAST)

    def _compare(self, rule: str) -> None:
        memory, truth = self.memory, self.truth
        counts = self.peek(
            "memory.reference_counts",
            lambda: [whole(memory.reference_counts[b]) for b in range(truth.num_blocks)],
        )
        wanted = truth.reference_counts
        self.require(counts == wanted, rule, f"reference counts {wanted}", counts)
        free = self.peek("memory.num_free", lambda: memory.num_free)
        a_number = isinstance(free, (int, np.integer)) and not isinstance(free, bool)
        right = a_number and free == truth.num_free
        self.require(right, rule, f"num_free {truth.num_free}", tell(free))

    def arrays(self) -> None:
        """Shapes, and that one is not the other."""
        keys, values = self.peek("memory.keys", lambda: (self.memory.keys, self.memory.values))
        shape = self.truth.keys.shape
        came = f"{np.shape(keys)} and {np.shape(values)}"
        right = np.shape(keys) == np.shape(values) == shape
        self.require(right, TWO_ARRAYS, f"{shape} twice", came)
        apart = not np.shares_memory(keys, values)
        self.require(apart, TWO_ARRAYS, "two arrays", "one array under two names")

    def attend(self, heads: int, kv_heads: int, chosen, size=1.0, rule=ATTENTION) -> None:
        """chosen: the positions of each request's queries; size: of queries."""
        random = np.random.default_rng(7)
        blocks = np.full((2, 9, 4, kv_heads, 4), np.nan, np.float32)
        free, tables, parts = list(range(8)), [], []
        for positions in chosen:
            at = np.arange(max(positions) + 1)
            table = np.array([free.pop() for _ in range(at[-1] // 4 + 1)])
            both = random.normal(size=(2, len(at), kv_heads, 4)).astype(np.float32)
            blocks[:, table[at // 4], at % 4] = both
            queries = size * random.normal(size=(len(positions), heads, 4)).astype(np.float32)
            parts.append((queries, dense_attention(queries, *both, positions)))
            tables.append(table)
        queries, truth = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        flat = np.array([position for positions in chosen for position in positions])
        batch = Batch(flat, np.cumsum([0, *map(len, chosen)]), tables)
        text = f"memory.attention(…)  # positions {chosen}, {heads} heads on {kv_heads}"
        if size != 1:
            text += f", queries of about {size:g}"
        before = [queries.copy(), blocks.copy()]
        with np.errstate(all="ignore"):
            outcome = self.run(text, lambda: self.memory.attention(queries, *blocks, batch))
        found = outcome.returned("an array like the queries", rule)
        kind = "array" if isinstance(found, np.ndarray) else type(found).__name__
        wanted, came = f"array {truth.shape}", f"{kind} {np.shape(found)}"
        self.require(wanted == came, LIKE_QUERIES, wanted, came)
        same = all(map(_same_numbers, before, (queries, blocks)))
        self.require(same, UNTOUCHED, "no change", "other numbers afterwards")
        for index in np.argwhere(~np.isclose(found, truth, rtol=1e-4, atol=1e-4))[:1]:
            row, head, _ = index.tolist()
            expected, came = (
                [round(float(number), 3) for number in array[row, head]] for array in (truth, found)
            )
            where = f"row {row}, head {head}: "
            self.require(False, rule, f"{where}{expected}", f"{where}{came}")

    def serve(self, name: str) -> None:
        """Two rounds of requests; the second finds what the first has left."""
        self.wait(LONG)
        model, rounds, num_blocks = _workload(name)
        config, expected = model.config, _expected(name)
        shape = (num_blocks, 4, config.num_layers, config.num_kv_heads, config.head_dim)
        self.calls.clear()
        memory = self.subject = self._made(*shape)
        engine = PagedEngine(model, pool=memory, attention=memory.attention)
        for (prompts, new_tokens), (tokens, found) in zip(rounds, expected, strict=True):
            outcome = self.run(
                f"engine.generate(…)  # {len(prompts)} at a time, {name}",
                functools.partial(_generate, engine, prompts, new_tokens),
                seconds=LONG,
            )
            came = outcome.returned("answers", SAME_ANSWER)
            self.require(came[0] == tokens, SAME_ANSWER, f"tokens {tokens}", f"tokens {came[0]}")
            self.require(came[1] == found, FOUND, f"{found} found", f"{came[1]} found")


def _same_numbers(before, after) -> bool:
    return np.array_equal(before, after, equal_nan=True)


def _generate(engine, prompts, new_tokens) -> tuple[list[list[int]], list[int]]:
    done = engine.generate(prompts, max_new_tokens=new_tokens, stop_tokens=())
    return [one.tokens for one in done], [one.cached_tokens for one in done]


@functools.cache
def _workload(name: str):
    """Model, rounds of (prompts, new tokens for each), blocks of 4."""
    if name == "tiny":
        start = list(range(9))
        first, second = [start + [20], start + [30, 31], [40] * 5], [[40] * 6, start + [50]]
        return random_model(), [(first, 6), (second, 6), ([start], 6)], 9
    model, tokenizer = smollm2()
    question = tokenizer.chat(QUESTION)
    return model, [([question], 7), ([question], 2)], 12


@functools.cache
def _expected(name: str):
    model, rounds, num_blocks = _workload(name)
    engine = PagedEngine(model, num_blocks, 4)
    return [_generate(engine, prompts, new_tokens) for prompts, new_tokens in rounds]


def memory_cases():
    """Bookkeeping first, since it fails with the smaller case; then attention; then models."""
    moves = [("allocate",), *(("release", b, c) for b in (0, 1) for c in (False, True))]
    yield from all_sequences((2,), [*moves, ("share", 0)], 3)
    moves = [("allocate",)] * 4 + [("share", b) for b in range(4)]
    moves += [("release", b, c) for b in range(4) for c in (False, True)]
    yield from random_sequences((4,), moves, 24, 40)
    yield Case((3,), (("arrays",),))
    yield Case((3, 5, 2, 1, 6), (("arrays",),))
    for heads, kv_heads, chosen in (
        (1, 1, [[0]]),
        (1, 1, [[2]]),
        (1, 1, [[5]]),
        (6, 2, [[6]]),
        (6, 2, [[1, 4]]),
        (6, 2, [[8], [0, 1, 2], [3, 6]]),
    ):
        yield Case((3,), (("attend", heads, kv_heads, chosen),))
    yield Case((3,), (("attend", 6, 2, [[6], [3]], 1000.0, ANY_SIZE),))
    yield Case((9,), (("serve", "tiny"),))
    yield Case((12,), (("serve", "SmolLM2"),))


MEMORY = Exercise(
    id="7.4",
    title="Run SmolLM2 on a memory of your own",
    minutes=30,
    difficulty=3,
    stub='''
class MyMemory:
    """Block pool, free queue and paged attention in one, for PagedEngine."""

    def __init__(self, num_blocks, block_size, num_layers, num_kv_heads, head_dim):
        self.num_blocks, self.block_size = num_blocks, block_size
        shape = (num_layers, num_blocks, block_size, num_kv_heads, head_dim)
        self.keys = np.zeros(shape, np.float32)
        self.values = np.zeros(shape, np.float32)
        self.reference_counts = [0] * num_blocks
        self.queue = OrderedDict.fromkeys(range(num_blocks))  # free; the front goes next

    @property
    def num_free(self):
        return len(self.queue)

    def allocate(self):
        """The block at the front, held once. OutOfBlocksError(1, 0) if there is none."""
        raise NotImplementedError

    def share(self, block):
        """One holder more. A block in the queue leaves it."""
        raise NotImplementedError

    def release(self, block, cached):
        """One holder less. The last one puts it to the back if cached, else to the front."""
        raise NotImplementedError

    def attention(self, queries, key_blocks, value_blocks, batch):
        """As my_paged_attention in exercise 5.4."""
        raise NotImplementedError
''',
    hints=(
        "The pool is exercise 2.4 and the queue is chapter 4: `popitem(last=False)` takes the "
        "front, `pop(block, None)` takes a block out of the middle, `move_to_end(block, "
        "last=cached)` puts it where it belongs.",
        "Your function of exercise 5.4 becomes a method when you add `self`, or call it: "
        "`return my_paged_attention(queries, key_blocks, value_blocks, batch)`.",
        "For each request: `np.concatenate(key_blocks[table])` is the request's keys in one run, "
        "(slots, kv_heads, head_dim). Cut them after the query's position.",
    ),
    solution=answers.MyMemory,
    require=lambda thing: require_class(thing, "MyMemory(num_blocks, block_size, …)"),
    play=MemoryPlay,
    cases=memory_cases,
    insight="SmolLM2 wrote “The capital of France is Paris.” on your pool, your queue and your "
    "attention, token for token; asked again, it found its prompt in your blocks. The engine "
    "needs no more of a memory than this.",
    mutants=(
        Mutant(
            "the back of the queue first",
            "front of the queue",
            "popitem(last=False)",
            "popitem(last=True)",
        ),
        Mutant(
            "cached blocks to the front",
            "can still be hit goes to the back",
            "last=cached",
            "last=not cached",
        ),
        Mutant(
            "all to the back",
            "can still be hit goes to the back",
            "last=cached",
            "last=True",
        ),
        Mutant("brought back and still free", "share adds", "self.queue.pop(block, None)", "pass"),
        Mutant(
            "the first to leave frees the block",
            "last holder to leave",
            "if self.reference_counts[block] == 0:",
            "if True:",
        ),
        Mutant("allocate does not count", "held once", "[block] = 1", "[block] = 0"),
        Mutant(
            "one array under two names",
            "two arrays",
            "self.values = np.zeros(shape, np.float32)",
            "self.values = self.keys",
        ),
        Mutant(
            "always blocks of four",
            "keeps its number of blocks and its block size",
            "self.block_size = num_blocks, block_size",
            "self.block_size = num_blocks, 4",
        ),
        Mutant(
            "arrays for blocks of four",
            "two arrays",
            "num_blocks, block_size, num_kv_heads, head_dim)\n        self.keys",
            "num_blocks, 4, num_kv_heads, head_dim)\n        self.keys",
        ),
        Mutant(
            "needed and free exchanged",
            "empty queue",
            "OutOfBlocksError(1, 0)",
            "OutOfBlocksError(0, 1)",
        ),
        Mutant(
            "one queue for all memories",
            "A new memory",
            "self.queue = OrderedDict.fromkeys(range(num_blocks))",
            "self.queue = vars(MyMemory).get('_all') or OrderedDict.fromkeys(range(num_blocks))\n"
            "        MyMemory._all = self.queue",
        ),
        Mutant(
            "an empty queue speaks for itself", "empty queue", "if not self.queue:", "if False:"
        ),
        Mutant(
            "the whole last block is seen",
            "in one run",
            "slice(0, position + 1)",
            "slice(0, None)",
        ),
        Mutant(
            "the token does not see itself",
            "in one run",
            "slice(0, position + 1)",
            "slice(0, max(1, position))",
        ),
        Mutant(
            "kv heads are dealt like cards",
            "in one run",
            "keys = np.repeat(np.concatenate(key_blocks[table]), group, axis=1)",
            "keys = np.tile(np.concatenate(key_blocks[table]), (1, group, 1))",
        ),
        Mutant(
            "no maximum", "no exp overflows", "scores - scores.max(axis=1, keepdims=True)", "scores"
        ),
        Mutant(
            "heads in one row",
            "the shape of the queries",
            "return output",
            "return output.reshape(len(output), -1)",
        ),
        Mutant(
            "the answer is written over the queries",
            "only reads",
            "output = np.zeros_like(queries)",
            "output = queries",
        ),
        Mutant(
            "the blocks as they lie",
            "in one run",
            "np.concatenate(value_blocks[table])",
            "np.concatenate(value_blocks[np.sort(table)])",
        ),
    ),
    alternatives=(answers.MemoryOfThePackage,),
)

EXERCISES = (PLAN, PREEMPT, DRAW, MEMORY)
