"""Pieces, blocks and the simulation, against plain and slow versions of the same."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial import DenseKV, random_model
from paged_tutorial.model import ModelConfig
from paged_tutorial.placement import Buddy, FirstFit, power_of_two
from paged_tutorial.reservation import Contiguous, Paged, Text, memories
from paged_tutorial.shapes import SHAPES, ModelShape
from paged_tutorial.simulation import Usage, serve
from paged_tutorial.views.usage import draw_usage
from paged_tutorial.workload import Arrival, generate

from helpers import quick

# -- where a piece goes -------------------------------------------------------------------


def test_power_of_two():
    assert power_of_two(0) == 1
    assert [power_of_two(n) for n in (1, 2, 3, 4, 5, 8, 9, 2048)] == [1, 2, 4, 4, 8, 8, 16, 2048]


def free_slots(row):
    if isinstance(row, FirstFit):
        gaps = row.gaps
    else:
        gaps = [(start, size) for size, starts in row.free.items() for start in starts]
    return sorted(slot for start, size in gaps for slot in range(start, start + size))


@quick
@given(
    st.sampled_from([FirstFit, Buddy]),
    st.integers(1, 40),
    st.lists(st.tuples(st.booleans(), st.integers(1, 20)), max_size=40),
)
def test_a_row_of_slots_against_a_list_of_owners(kind, num_slots, moves):
    row, owners, number = kind(num_slots), [None] * num_slots, 0
    pieces = {}
    for takes, amount in moves:
        if takes:
            start = row.allocate(amount)
            size = power_of_two(amount) if kind is Buddy else amount
            step = size if kind is Buddy else 1
            # First fit: the first place of all. Buddy: only places at multiples of the size.
            places = [
                at
                for at in range(0, num_slots - size + 1, step)
                if not any(owner is not None for owner in owners[at : at + size])
            ]
            if start is None:
                assert not places
                continue
            assert start in places
            assert kind is Buddy or start == places[0]
            owners[start : start + size] = [number] * size
            pieces[number] = start, size
            number += 1
        elif pieces:
            start, size = pieces.pop(sorted(pieces)[amount % len(pieces)])
            row.release(start)
            owners[start : start + size] = [None] * size
        assert free_slots(row) == [slot for slot, owner in enumerate(owners) if owner is None]
        assert row.pieces == dict(pieces.values())
    for start, _ in pieces.values():
        row.release(start)
    fresh = kind(num_slots)
    if kind is FirstFit:
        assert row.gaps == fresh.gaps
    else:
        assert {size: starts for size, starts in row.free.items() if starts} == dict(fresh.free)


def test_buddies_join_only_with_the_half_they_were_cut_from():
    row = Buddy(8)
    starts = [row.allocate(2) for _ in range(4)]
    assert starts == [0, 2, 4, 6]
    row.release(2)
    row.release(4)  # neighbours, not buddies
    assert row.allocate(4) is None
    row.release(0)
    assert row.allocate(4) == 0


def test_first_fit_refuses_what_is_free_but_scattered():
    row = FirstFit(10)
    starts = [row.allocate(slots) for slots in (3, 4, 3)]
    row.release(starts[0])
    row.release(starts[2])
    assert row.allocate(4) is None
    row.release(starts[1])
    assert row.allocate(10) == 0


# -- memories -----------------------------------------------------------------------------


def test_reservations_ask_for_what_the_paper_says():
    four = memories(15_696)
    text = Text(tokens=100, end=125)  # 25 tokens of answer: 32 are reserved
    needs = {name: memory.needs(text) for name, memory in four.items()}
    assert needs == {"maximum": 2048, "power of two": 132, "oracle": 125, "paged": 112}


def test_refused_admission_changes_nothing():
    for memory in (Paged(8, 4), Contiguous(8, lambda now, end: end)):
        first, second = Text(3, 5), Text(4, 6)
        assert memory.admit(first)
        before = (memory.taken, first.slots, second.slots)
        assert not memory.admit(second)
        assert (memory.taken, first.slots, second.slots) == before
        memory.release(first)
        assert memory.taken == 0
        assert memory.admit(second)


def test_a_paged_memory_counts_whole_blocks():
    memory = Paged(11, 4)  # two blocks; three slots are left over
    text = Text(3, 20)
    assert memory.admit(text) and text.slots == 4 and memory.taken == 4
    assert memory.grow(text) and text.slots == 8
    assert not memory.grow(text) and (text.slots, memory.taken) == (8, 8)
    memory.release(text)
    assert (memory.taken, memory.free_blocks) == (0, 2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Paged(0), "num_slots must be at least 1"),
        (lambda: Paged(8, 0), "block_size must be at least 1"),
        (lambda: Contiguous(0, max), "num_slots must be at least 1"),
    ],
)
def test_bad_sizes_are_named(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# -- the simulation -----------------------------------------------------------------------


def slow_serve(arrivals, num_slots, way, block_size, max_tokens):
    """Step by step, with each number counted anew. way: "paged", or slots(now, end)."""
    texts = []
    for a in arrivals:
        now = min(a.prompt_tokens, max_tokens - 1)
        end = max(now + 1, min(a.total_tokens, max_tokens))
        texts.append(SimpleNamespace(now=now, end=end, slots=0, start=None))
    waiting, running, finished = list(texts), [], 0
    row, blocks = FirstFit(num_slots), num_slots // block_size
    steps, rows, preemptions = 0, [], 0

    def wants(text):
        if way == "paged":
            return -(-(text.now + 1) // block_size) * block_size
        return way(text.now, text.end)

    def free_blocks():
        return blocks - sum(text.slots for text in running) // block_size

    def admitted(text):
        if way == "paged":
            return wants(text) // block_size <= free_blocks()
        text.start = row.allocate(wants(text))
        return text.start is not None

    def leave(text):
        running.remove(text)
        if way != "paged":
            row.release(text.start)
        text.slots = 0

    while waiting or running:
        while waiting and admitted(waiting[0]):
            text = waiting.pop(0)
            text.slots = wants(text)
            running.append(text)
        assert running
        steps += 1
        for text in running:
            text.now += 1
        if waiting and finished >= len(texts) // 4:
            held = sum(text.slots for text in running)
            later = sum(min(text.slots, text.end) - text.now for text in running)
            tokens = sum(text.now for text in running)
            never = held - later - tokens
            free = num_slots - held
            scattered = free if wants(waiting[0]) <= free else 0
            rows.append((tokens, later, never, free, scattered, len(running)))
        for text in [text for text in running if text.now == text.end]:
            leave(text)
            finished += 1
        # Those whose slots are full ask in the order in which they got their last block.
        full = [text for text in running if text.now == text.slots]
        if way == "paged" and free_blocks() < len(full):
            return None  # preemption is compared by its sums only, below
        for text in full:
            text.slots += block_size
    return steps, rows, preemptions


short_arrivals = st.lists(
    st.builds(Arrival, st.just(0.0), st.integers(1, 12), st.integers(0, 12)),
    min_size=1,
    max_size=14,
)


@quick
@given(short_arrivals, st.sampled_from(["paged", "oracle", "maximum"]), st.integers(1, 5))
def test_events_give_the_sums_of_single_steps(arrivals, name, block_size):
    num_slots, max_tokens = 60, 20
    ways = {"paged": "paged", "oracle": lambda now, end: end, "maximum": lambda now, end: 20}
    expected = slow_serve(arrivals, num_slots, ways[name], block_size, max_tokens)
    if name == "paged":
        memory = Paged(num_slots, block_size)
    else:
        memory = Contiguous(num_slots, ways[name], FirstFit)
    usage = serve(arrivals, memory, max_tokens)
    assert memory.taken == 0
    if expected is None:
        assert usage.preemptions > 0
        return
    steps, rows, _ = expected
    assert (usage.steps, usage.measured, usage.preemptions) == (steps, len(rows), 0)
    found = (usage.tokens, usage.later, usage.never, usage.free, usage.scattered)
    for value, column in zip(found, list(zip(*rows, strict=True)) or [[0]] * 6, strict=False):
        assert value * num_slots * max(1, len(rows)) == pytest.approx(sum(column))
    assert usage.running * len(rows) == pytest.approx(sum(row[5] for row in rows))


@quick
@given(short_arrivals, st.integers(1, 5), st.integers(24, 60))
def test_every_request_ends_however_short_the_memory(arrivals, block_size, num_slots):
    memory = Paged(num_slots, block_size)
    usage = serve(arrivals, memory, max_tokens=18)
    assert (memory.taken, memory.free_blocks) == (0, num_slots // block_size)
    shares = (usage.tokens, usage.later, usage.never, usage.free)
    assert all(0 <= share <= 1 for share in shares)
    assert sum(shares) == pytest.approx(1 if usage.measured else 0)


def test_the_newest_is_preempted_and_keeps_its_tokens():
    # Two blocks of 4: each text starts with one; at 4 tokens the older one needs another.
    usage = serve([Arrival(0, 2, 4), Arrival(0, 2, 4)], Paged(8, 4))
    # 2 steps together, 2 more for the first, then 2 for the second: nothing is done twice.
    assert (usage.preemptions, usage.steps) == (1, 6)


def test_what_never_fits_is_refused():
    with pytest.raises(ValueError, match="a request for 12 slots does not fit even alone"):
        serve([Arrival(0, 9, 3)], Paged(8, 4))
    with pytest.raises(ValueError, match="a request of 12 tokens does not fit even alone"):
        serve([Arrival(0, 3, 9)], Paged(8, 4))
    with pytest.raises(ValueError, match="a request for 2048 slots does not fit even alone"):
        serve([Arrival(0, 3, 9)], memories(1000)["maximum"])
    with pytest.raises(ValueError, match="max_tokens must be at least 2"):
        serve([Arrival(0, 3, 9)], Paged(8, 4), max_tokens=1)


def test_nobody_comes():
    usage = serve([], Paged(8, 4))
    assert (usage.steps, usage.running, usage.tokens) == (0, 0.0, 0.0)


def test_the_four_ways_against_the_measurements_of_the_paper():
    """Kwon et al., SOSP 2023, figure 2 and 13. The simulation is not fitted to them."""
    arrivals = generate("ShareGPT", 1000)
    use = {name: serve(arrivals, memory) for name, memory in memories(15_696).items()}
    assert use["maximum"].running == 7
    assert use["maximum"].tokens == pytest.approx(0.204, abs=0.03)
    assert use["maximum"].later == pytest.approx(0.133, abs=0.03)
    assert use["maximum"].never == pytest.approx(0.573, abs=0.03)
    assert use["maximum"].free == pytest.approx(0.089, abs=0.01)
    assert use["power of two"].tokens == pytest.approx(0.268, abs=0.06)  # the one that differs
    assert use["oracle"].tokens == pytest.approx(0.382, abs=0.03)
    assert use["oracle"].later == pytest.approx(0.252, abs=0.03)
    assert use["paged"].tokens == pytest.approx(0.963, abs=0.03)
    assert use["paged"].running == pytest.approx(30.42, rel=0.1)
    held = [use[name].tokens for name in ("maximum", "power of two", "oracle", "paged")]
    assert held == sorted(held)


def test_small_blocks_waste_less():
    arrivals = generate("Alpaca", 1000)
    waste = []
    for block_size in (1, 4, 16, 64, 256):
        usage = serve(arrivals, Paged(16_384, block_size))
        waste.append(usage.later + usage.never)
    assert waste == sorted(waste)
    assert waste[0] < 0.02


# -- shapes -------------------------------------------------------------------------------


def test_bytes_per_token_are_those_of_the_arrays():
    config = random_model(num_layers=3, num_heads=8, num_kv_heads=2, head_dim=6).config
    shape = ModelShape("tiny", 3, 8, 2, 6, 1000, "float32", "")
    memory = DenseKV(config, 10)
    assert shape.token_bytes * 10 == memory.keys.nbytes + memory.values.nbytes
    assert shape.token_bytes == config.kv_bytes_per_token


# layers, width, heads, kv heads, head size, feed-forward size, vocabulary; tied output; biases
LLAMA_LIKE = {
    "SmolLM2-135M": ((30, 576, 9, 3, 64, 1536, 49_152), True, 0),
    "Qwen2.5-7B": ((28, 3584, 28, 4, 128, 18_944, 152_064), False, 28 * (28 + 2 * 4) * 128),
    "Mistral-7B": ((32, 4096, 32, 8, 128, 14_336, 32_000), False, 0),
    "Llama-3-8B": ((32, 4096, 32, 8, 128, 14_336, 128_256), False, 0),
    "Llama-3-70B": ((80, 8192, 64, 8, 128, 28_672, 128_256), False, 0),
}


@pytest.mark.parametrize("name", LLAMA_LIKE)
def test_parameters_are_those_of_the_matrices(name):
    sizes, tied, biases = LLAMA_LIKE[name]
    config = ModelConfig(*sizes, context_length=8192)
    counted = sum(
        shape[0] * (shape[1] if len(shape) == 2 else 1)
        for shape in config.parameter_shapes().values()
    )
    counted += biases + (0 if tied else config.vocabulary_size * config.hidden_size)
    shape = next(shape for shape in SHAPES if shape.name == name)
    assert shape.parameters == counted
    assert (shape.num_layers, shape.num_heads, shape.num_kv_heads, shape.head_dim) == (
        config.num_layers,
        config.num_heads,
        config.num_kv_heads,
        config.head_dim,
    )


def test_known_bytes_per_token():
    known = {shape.name: shape.token_bytes for shape in SHAPES}
    assert known == {
        "GPT-2": 73_728,
        "SmolLM2-135M": 23_040,
        "Qwen2.5-7B": 57_344,
        "Mistral-7B": 131_072,
        "Llama-3-8B": 131_072,
        "Llama-3-70B": 327_680,
    }


def test_tokens_that_fit_beside_the_weights():
    shape = ModelShape("tiny", 1, 1, 1, 1, 100, "float16", "")  # 200 bytes, 4 a token
    assert [shape.tokens_that_fit(n) for n in (0, 200, 203, 204, 1000)] == [0, 0, 0, 1, 200]


# -- the picture --------------------------------------------------------------------------


def test_the_picture_says_its_numbers():
    usage = Usage(100, measured=1, slots_held=90, slots_tokens=50, slots_used_in_the_end=70)
    usage.requests = 3
    picture = draw_usage({"mine & yours": usage}, title="A finding", caption="Simulation.")
    assert "mine &amp; yours" in picture.svg
    for words in ("50.0% hold tokens", "20.0% set aside for later", "20.0% set aside for nothing",
                  "10.0% free", "3.0 requests at once", "A finding", "Simulation."):  # fmt: skip
        assert words in picture.alt
    assert "50.0%" in picture.svg
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_usage({})
