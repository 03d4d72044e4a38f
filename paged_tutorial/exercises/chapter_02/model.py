"""Exercise 2.4: run SmolLM2 on your pool."""

from __future__ import annotations

import functools

from paged_tutorial import PagedEngine, random_model

from .. import answers_02 as answers
from ..exercise import Exercise, Mutant
from ..play import Case, Unattempted, require_class
from ..plug import PluggedPool
from ..smollm2 import LONG, new_tokens_of, smollm2
from ..telling import tell
from .pool import PoolPlay, pool_cases

OWN_SIZE = "A pool is made of a number of blocks and a block size, and keeps both."
SAME_ANSWER = "On your pool the model says what it says on the package's own."
ALL_BACK = "When all requests are finished, all blocks are free."
QUESTION = "What is the capital of France?"
ANSWER_SO_FAR = ("The capital of France is", "The capital of France is Paris")


class ModelPlay(PoolPlay):
    """As in 2.2, but a free block can be shared; at the end a model runs on the pool."""

    revive = True
    sizes = (4,)

    def allocate(self) -> None:
        """As in 2.2, which has to be solved first."""
        try:
            super().allocate()
        except Unattempted as unattempted:
            sign = f"{unattempted} This class inherits it: solve 2.2, and run its cell again."
            raise Unattempted(sign) from None

    def serve(self, name: str, block_size: int) -> None:
        """Run requests that share a beginning; the second round finds blocks of the first."""
        self.wait(LONG)
        model, rounds, new_tokens = _workload(name)
        truth = _truth(name)
        number = len(self.holders)
        self.calls.clear()
        text = f"pool = {self.name}({number}, {block_size})"
        made = self.run(text, self.thing, number, block_size)
        pool = self.subject = made.returned("a pool", OWN_SIZE)
        made.value = None
        for field, wanted in (("num_blocks", number), ("block_size", block_size)):
            came = getattr(pool, field, None)
            self.require(came == wanted, OWN_SIZE, f"pool.{field} {wanted}", tell(came))
        engine = PagedEngine(model, pool=PluggedPool(pool, model.config))
        for prompts, expected in zip(rounds, truth, strict=True):
            outcome = self.run(
                f"engine.generate(…)  # {len(prompts)} at a time, {name}",
                lambda prompts=prompts: new_tokens_of(engine, prompts, new_tokens),
                seconds=LONG,
            )
            answers = outcome.returned("answers")
            self.require(
                answers == expected, SAME_ANSWER, f"tokens {expected}", f"tokens {answers}"
            )
            free = self.peek("pool.num_free", lambda: pool.num_free)
            self.require(free == number, ALL_BACK, f"num_free {number}", f"num_free {free}")


@functools.cache
def _workload(name: str):
    """(model, rounds of prompts as tokens, tokens to generate)"""
    if name == "tiny":
        start = list(range(9))
        return random_model(), [[start + [20], start + [30, 31], [40] * 5], [start + [50]]], 6
    model, tokenizer = smollm2()
    # One token a round, so that a busy machine has few steps to make.
    prompts = [tokenizer.chat(QUESTION) + tokenizer.encode(text) for text in ANSWER_SO_FAR]
    return model, [[prompt] for prompt in prompts], 1


@functools.cache
def _truth(name: str) -> list[list[list[int]]]:
    """The answers of the workload on the package's own pool, all prompts in one batch."""
    model, rounds, new_tokens = _workload(name)
    prompts = [prompt for prompts in rounds for prompt in prompts]
    answers = iter(new_tokens_of(PagedEngine(model, 16), prompts, new_tokens))
    return [[next(answers) for _ in prompts] for prompts in rounds]


def model_cases():
    """Moves first, since they fail with a smaller case; then a tiny model; then SmolLM2."""
    yield from pool_cases()
    yield Case((9,), (("serve", "tiny", 4),))
    # The first round fills three blocks, the second brings them back and needs a fourth.
    yield Case((4,), (("serve", "SmolLM2", 7),))


MODEL = Exercise(
    id="2.4",
    title="Run SmolLM2 on your pool",
    minutes=20,
    difficulty=3,
    stub='''
class PoolForTheModel(MyPool):
    """Your pool, but a free block can be brought back."""

    def share(self, block):
        """One more holder. A free block leaves the free list, its content intact.

        Only a number that is no block is refused, as before.
        """
        raise NotImplementedError
''',
    hints=(
        "Two cases: somebody holds the block, or nobody does. In both it has one holder more "
        "afterwards. What else must be true of a block that is held?",
        "A block with count 0 sits in your free list. If it stays there while it is held, "
        "`allocate` will hand it to somebody else.",
        "`self.free.remove(block)` takes it out of a list. It searches; chapter 4 does without.",
    ),
    solution=answers.PoolForTheModel,
    require=lambda thing: require_class(thing, "PoolForTheModel(num_blocks, block_size)"),
    play=ModelPlay,
    cases=model_cases,
    insight="On your bookkeeping SmolLM2 completed “The capital of France is” with “ Paris”, and, "
    "when asked again, with “.”: token for token what it writes alone. The second time it found "
    "three blocks of the first and brought them back. Which free block you hand out cannot "
    "change an answer, only what can still be found.",
    mutants=(
        Mutant(
            "a block that is brought back stays free",
            "brings it back",
            "self.free.remove(block)",
            "pass",
        ),
        Mutant(
            "bringing back is not counted",
            "number of its holders",
            "+= 1",
            "+= self.reference_counts[block] == 0",
        ),
        Mutant(
            "the wrong block leaves the list",
            "brings it back",
            "self.free.remove(block)",
            "self.free.pop(); self.free.pop()",
        ),
        Mutant(
            "a free block is refused",
            "brings it back",
            "self.free.remove(block)",
            "raise ValueError(f'nobody holds block {block}')",
        ),
        Mutant(
            "any number is a block",
            "numbered from 0",
            'raise ValueError(f"there is no block {block}")',
            "return",
        ),
        Mutant(
            "the block size is not kept",
            "and keeps both",
            "    def share",
            "    def __init__(self, num_blocks, block_size=16):\n"
            "        super().__init__(num_blocks)\n\n    def share",
        ),
        Mutant(
            "a block size cannot be given",
            "in an unexpected exception",
            "    def share",
            "    def __init__(self, num_blocks):\n"
            "        super().__init__(num_blocks)\n\n    def share",
        ),
    ),
    alternatives=(answers.PoolOfThePackage, answers.PoolOfItsOwn),
)
