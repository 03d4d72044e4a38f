"""Exercise 7.2: find the bugs: a victim treated badly."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field
from types import SimpleNamespace

from paged_tutorial import BlockPool, PagedKVCache

from .. import answers_07 as answers
from ..exercise import Exercise, Mutant
from ..planted import require_mended
from ..play import Case, Play
from ..telling import tell

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
    require=lambda thing: require_mended(
        thing, PREEMPT_STUB, "`preempt` is as it was planted, bugs included."
    ),
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
