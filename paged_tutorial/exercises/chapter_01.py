"""The exercises of chapter 1: what memory a text takes, and who wastes it."""

from __future__ import annotations

import itertools

from paged_tutorial.page_table import blocks_needed
from paged_tutorial.placement import Buddy
from paged_tutorial.reservation import Paged, Text

from . import answers_01 as answers
from .checking import all_sequences, random_sequences
from .exercise import Exercise, Mutant
from .play import Case, Play, Unattempted, require_function

# -- 1.1 ----------------------------------------------------------------------------------

BYTES = "A token keeps one key and one value, in every layer, for every kv head."


class TokenBytes(Play):
    """One call; the truth is counted head by head."""

    def begin(self, layers: int, heads: int, kv_heads: int, head_dim: int, bytes_: int) -> None:
        shape = (layers, heads, kv_heads, head_dim, bytes_)
        outcome = self.run(f"{self.name}({', '.join(map(str, shape))})", self.thing, *shape)
        vectors = sum(2 for _ in range(layers) for _ in range(kv_heads))
        truth = vectors * head_dim * bytes_
        expected = f"{truth}: {vectors} vectors × {head_dim} numbers × {bytes_} bytes"
        came = outcome.integer(BYTES, expected)
        self.require(came == truth, BYTES, expected, came)


def token_bytes_cases():
    """Small shapes in which no two sizes are equal, then those of known models."""
    yield Case((1, 1, 1, 1, 1))
    yield Case((1, 4, 2, 3, 1))
    yield from (Case(shape) for shape in itertools.product((1, 3), (6,), (1, 2, 6), (5,), (2, 4)))
    known = [(30, 9, 3, 64, 4), (12, 12, 12, 64, 4), (28, 28, 4, 128, 2), (80, 64, 8, 128, 2)]
    yield from map(Case, known)


TOKEN_BYTES = Exercise(
    id="1.1",
    title="Bytes per token",
    minutes=4,
    difficulty=1,
    stub='''
def token_bytes(num_layers, num_heads, num_kv_heads, head_dim, number_bytes):
    """How many bytes of KV cache does one token take?

    num_heads: query heads; number_bytes: 4 for float32, 2 for bfloat16.
    token_bytes(30, 9, 3, 64, 4) is 46,080: SmolLM2 in float32.
    """
    raise NotImplementedError
''',
    hints=(
        "One of the five numbers is not needed at all. Which vectors are read again later?",
        "Queries are used once, by their own token, and forgotten. Keys and values are kept: "
        "two vectors of `head_dim` numbers for each kv head, in each layer.",
    ),
    solution=answers.token_bytes,
    require=lambda thing: require_function(
        thing, "num_layers", "num_heads", "num_kv_heads", "head_dim", "number_bytes"
    ),
    play=TokenBytes,
    cases=token_bytes_cases,
    insight="The width of the model, its feed-forward size and its vocabulary do not occur. That "
    "is why a model of 70 billion weights can take less memory per token than one of 13 billion: "
    "it shares its kv heads among more query heads.",
    mutants=(
        Mutant("query heads", "every kv head", "* num_kv_heads", "* num_heads"),
        Mutant("keys only", "one key and one value", "2 * num_layers", "num_layers"),
        Mutant("one layer", "every layer", "2 * num_layers", "2"),
        Mutant("always two bytes", "one key and one value", "* number_bytes", "* 2"),
        Mutant("no return", "one key and one value", "return 2", "2"),
        Mutant("a float", "one key and one value", "return 2 *", "return 2.0 *"),
    ),
    alternatives=(answers.token_bytes_by_counting,),
)

# -- 1.2 ----------------------------------------------------------------------------------

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

# -- 1.3 ----------------------------------------------------------------------------------

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

# -- 1.4 ----------------------------------------------------------------------------------

GONE = "A piece that is given back is no longer among the pieces."
ONCE = "Each slot is in one piece or free, and free once."
MULTIPLE = "A free piece of size s starts at a multiple of s."
JOINED = "Two free buddies become one piece, again and again as long as the buddy is free."


class GiveBack(Play):
    """Pieces are taken from a row by the package, and given back by the reader."""

    whose = "The"

    def begin(self, num_slots: int) -> None:
        """Make the row, and another one that is done right."""
        self.row, self.right = Buddy(num_slots), Buddy(num_slots)
        self.num_slots, self.names = num_slots, itertools.count()
        self.name_of: dict[int, str] = {}
        self.run(f"row = Buddy({num_slots})", lambda: None)

    def take(self, slots: int) -> None:
        """Take a piece, if there is one."""
        start = self.right.allocate(slots)
        if start is not None:
            self.name_of[start] = chr(ord("A") + next(self.names))
            self.run(f"row.allocate({slots})", self.row.allocate, slots)

    def give(self, which: int) -> None:
        """Give back a piece, counted from the left."""
        starts = sorted(self.right.pieces)
        if which >= len(starts):
            return
        start = starts[which]
        self.right.release(start)
        text = f"{self.name}(row, {start})"
        outcome = self.run(text, self.thing, self.row, start)
        row, free = self.row, _free(self.right)
        self.subject = Row(row, self.num_slots, self.name_of)
        outcome.returned("no exception")
        expected = f"pieces {self.right.pieces}, free {free}"
        came = f"pieces {row.pieces}, free {_free(row)}"
        self.require(row.pieces == self.right.pieces, GONE, expected, came)
        self.require(_slots(row) == _slots(self.right), ONCE, expected, came)
        crooked = any(at % size for size, starts in row.free.items() for at in starts)
        self.require(not crooked, MULTIPLE, expected, came)
        self.require(_free(row) == free, JOINED, expected, came)


class Row:
    """A row as a picture shows it: each slot a block, each piece a request."""

    # No fields to be told: they are not those that the reader's function works on.
    __slots__ = ("block_size", "free", "num_blocks", "tables")

    def __init__(self, row: Buddy, num_slots: int, name_of: dict[int, str]) -> None:
        self.num_blocks, self.block_size, self.free = num_slots, 1, _slots(row)
        self.tables = {
            name_of[start]: list(range(start, start + size)) for start, size in row.pieces.items()
        }


def _free(row: Buddy) -> dict[int, list[int]]:
    """Starts of free pieces by size, without sizes that have none."""
    return {size: sorted(starts) for size, starts in sorted(row.free.items()) if starts}


def _slots(row: Buddy) -> list[int]:
    """All free slots, each as often as it is free."""
    pieces = ((at, size) for size, starts in row.free.items() for at in starts)
    return sorted(slot for at, size in pieces for slot in range(at, at + size))


def give_back_cases():
    """All short sequences on a row of 8, and on one that is no power of two; longer ones."""
    for num_slots in (2, 4, 8, 6):
        takes = [("take", slots) for slots in (1, 2, 3) if slots <= num_slots // 2 + 1]
        gives = [("give", which) for which in range(3)]
        yield from all_sequences((num_slots,), [*takes, *gives], 5)
    moves = [*(("take", slots) for slots in (1, 1, 2, 3, 5)), *(("give", k) for k in range(5))]
    for num_slots in (32, 44):
        yield from random_sequences((num_slots,), moves, 24, 20)


GIVE_BACK_STUB = '''
def give_back(row, start):
    """Give a piece back to a Buddy row, and join it with its buddy as long as that is free.

    row.pieces: start of each piece to its size; row.free: size to the set of starts
    """
    size = row.pieces.pop(start)
    buddy = start + size
    while buddy in row.free[size]:
        row.free[size].remove(buddy)
        size *= 2
        buddy = start + size
    row.free[size].add(start)
'''


def require_other_than_planted(thing) -> None:
    """A function, and not the one with the planted bug."""
    require_function(thing, "row", "start")
    names: dict[str, object] = {}
    exec(GIVE_BACK_STUB, {}, names)
    code, planted = getattr(thing, "__code__", None), names["give_back"].__code__
    if code is not None and (code.co_code, code.co_names) == (planted.co_code, planted.co_names):
        raise Unattempted("`give_back` is as it was planted, bug included: pieces stay apart.")


GIVE_BACK = Exercise(
    id="1.4",
    title="Find the bug: the buddy that is not found",
    minutes=12,
    difficulty=2,
    stub=GIVE_BACK_STUB,
    hints=(
        "Give the two pieces back from left to right instead, and look again.",
        "A piece was cut from one twice as long. It is the lower half, or the upper half. Where "
        "is the other half in each case?",
        "`start ^ size` flips the one bit in which the two halves differ. After joining, the "
        "piece starts where the lower half did.",
    ),
    solution=answers.give_back,
    require=require_other_than_planted,
    play=GiveBack,
    cases=give_back_cases,
    insight="One flipped bit finds the neighbour, without a search: this is why the buddy system, "
    "published in 1965, still lives in operating systems. Its price is a rounding up to powers of "
    "two, the dotted part of the oracle's bar.",
    mutants=(
        Mutant("never joined", "become one piece", "while (start", "while False and (start"),
        Mutant("joined once", "again and again", "size *= 2", "size *= 2\n        break"),
        Mutant("starts at the upper half", "free once", "min(start", "max(start"),
        Mutant(
            "the half is free twice",
            "free once",
            "row.free[size].remove(start ^ size)",
            "pass",
        ),
        Mutant("the piece stays", "no longer among", ".pop(start)", "[start]"),
        Mutant(
            "only the neighbour on the right",
            "become one piece",
            "while (start ^ size) in",
            "while not start & size and (start ^ size) in",
        ),
        Mutant(
            "joined three times at most",
            "again and again",
            "while (start ^ size) in",
            "while size < 8 and (start ^ size) in",
        ),
    ),
    alternatives=(answers.give_back_by_halves,),
)

EXERCISES = (TOKEN_BYTES, ACCOUNT, HOW_MANY_START, GIVE_BACK)
