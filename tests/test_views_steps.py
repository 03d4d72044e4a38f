"""Watching an engine and drawing what was seen, against the engine's own plans."""

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paged_tutorial import PagedEngine, random_model
from paged_tutorial.views import what_if
from paged_tutorial.views.steps import draw_positions, draw_steps
from paged_tutorial.views.watching import EngineStep, runs, watch

MODEL = random_model()


def engine_with(lengths, num_blocks=12, **options):
    """A tiny engine in blocks of 4 with requests A, B, … of these (prompt, new) lengths."""
    engine = PagedEngine(MODEL, num_blocks, 4, **options)
    for number, (length, most) in enumerate(lengths):
        prompt = [(7 * number + 3 * position) % 101 for position in range(length)]
        engine.add(prompt, request_id="ABCDEF"[number], max_new_tokens=most)
    return engine


def run(engine):
    with watch(engine) as steps:
        while engine.busy:
            engine.step()
    return steps


def texts(picture):
    tree = ElementTree.fromstring(picture.svg)
    return [node.text for node in tree.iter() if node.tag.endswith("}text")]


REQUESTS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)), min_size=1, max_size=6)


@settings(max_examples=40, deadline=None)
@given(REQUESTS, st.integers(11, 30), st.integers(1, 6), st.integers(1, 40))
def test_what_is_watched_is_what_the_scheduler_planned(lengths, num_blocks, batch, chunk):
    engine = engine_with(lengths, num_blocks, max_batch_size=batch, max_step_tokens=chunk)
    schedule, truth = engine.scheduler.schedule, []

    def listen():
        plan = schedule()
        waiting = [request.request_id for request in engine.scheduler.waiting]
        came_before = {r.request_id for r in engine.scheduler.waiting if r.preemptions}
        used = {b for h in engine.cache.holdings.values() for b in h.table.block_ids}
        rows = {request.request_id: tuple(positions) for request, positions in plan}
        truth.append((rows, waiting, came_before, len(used)))
        return plan

    engine.scheduler.schedule = listen
    steps = run(engine)
    assert len(steps) == len(truth) == engine.metrics["steps"]
    for step, (rows, waiting, came_before, used) in zip(steps, truth, strict=True):
        assert step.computed == rows
        assert list(step.waiting) == waiting
        assert step.preempted == came_before
        assert (step.used, step.num_blocks) == (used, num_blocks)
        assert step.rows == sum(map(len, rows.values()))
    assert "batch" not in vars(engine.cache)


def test_watching_ends_with_the_block_and_changes_nothing():
    lengths = [(9, 6), (14, 8), (5, 9)]
    watched = engine_with(lengths, 11)
    steps = run(watched)
    plain = engine_with(lengths, 11)
    while plain.busy:
        plain.step()
    for name in "ABC":
        assert watched.completions[name].tokens == plain.completions[name].tokens
    before = len(steps)
    watched.generate([[1, 2, 3]], max_new_tokens=2)
    assert len(steps) == before


def test_a_request_that_comes_back_under_its_name_is_not_called_preempted():
    engine = engine_with([(5, 2)])
    with watch(engine) as steps:
        while engine.busy:
            engine.step()
        engine.add([1] * 40, request_id="B", max_new_tokens=3)
        engine.step()
        engine.add([2] * 20, request_id="A", max_new_tokens=2)
        while engine.busy:
            engine.step()
    waited = [step for step in steps if "A" in step.waiting]
    assert waited and not any(step.preempted for step in waited)


def test_two_may_watch_one_engine():
    engine = engine_with([(3, 1)])
    engine.cache.batch = before = engine.cache.batch
    with watch(engine) as outer:
        with watch(engine) as inner:
            engine.step()
    assert len(outer) == len(inner) == 1
    assert engine.cache.batch is before


def test_an_engine_of_your_own_needs_a_cache_and_a_line():
    engine = engine_with([(3, 1)])
    own = SimpleNamespace(cache=engine.cache, waiting=[SimpleNamespace(request_id="Z")])
    with watch(own) as steps:
        engine.step()
    assert steps[0].computed == {"A": (0, 1, 2)}
    assert steps[0].waiting == ("Z",)


@given(st.sets(st.integers(0, 40)))
def test_runs_say_exactly_the_positions(positions):
    said = runs(sorted(positions))
    told = set()
    for part in [] if said == "nothing" else said.split(", "):
        first, *last = map(int, part.split("–"))
        told |= set(range(first, (last or [first])[0] + 1))
    assert told == positions


def step_of(computed, lengths):
    return EngineStep(computed, lengths, (), frozenset(), 3, 8)


def test_a_row_says_what_is_computed_and_what_is_read():
    repair = step_of({"C": (4, 5, 9), "A": (2,)}, {"C": 12, "A": 3})
    picture = draw_positions([("repair", repair, "C"), ("decode", repair, "A")], 4, "Two", "Both.")
    found = texts(picture)
    assert "computes 4–5, 9, reads 0–3, 6–8" in found
    assert "computes 2, reads 0–1" in found
    assert found.count("3 of 4") == 1 and found.count("1 of 4") == 1
    assert "repair, request C: computes 4–5, 9, reads 0–3, 6–8; 3 of 4 rows." in picture.alt
    # 12 + 3 positions, and three squares of the key.
    assert len(re.findall(r'height="17"', picture.svg)) == 15


def test_a_run_has_a_square_for_each_request_and_step():
    engine = engine_with([(9, 6), (14, 8), (5, 9)], 11, max_step_tokens=6)
    steps = run(engine)
    picture = draw_steps(steps, "Three requests", "Nothing is lost.")
    squares = sum(len(step.computed) for step in steps)
    assert len(re.findall(r'height="20"', picture.svg)) == squares
    numbers = [len(p) for step in steps for p in step.computed.values() if len(p) > 1]
    found = texts(picture)
    # Numbers of steps stand below; those of positions stand in the squares.
    for number in set(numbers):
        assert found.count(str(number)) >= numbers.count(number)
    assert f"{len(steps)} steps of 3 requests" in picture.alt
    assert "Nothing is lost." in picture.alt


def test_a_square_too_narrow_for_its_number_is_filled_and_one_position_never_looks_like_many():
    # A prompt of 30 and 3 new tokens, then as many steps as make the squares too narrow.
    for most, narrow in ((3, False), (60, True)):
        steps = run(engine_with([(30, 3), (2, most)], 40))
        picture = draw_steps(steps, "One long prompt")
        squares = re.findall(r"<rect[^>]*height=\"20\"[^>]*>", picture.svg)
        fills = Counter(re.search(r"fill=\"([^\"]+)\"", square)[1] for square in squares)
        assert len(fills) == (3 if narrow else 2), fills  # two owners, and what is filled
        assert ("more than one" in texts(picture)) is narrow
        assert narrow or "30" in texts(picture)


def test_preempted_requests_are_told_and_drawn():
    engine = engine_with([(16, 12), (16, 12)], 11)
    steps = run(engine)
    assert engine.metrics["preemptions"]
    lost = sum("B" in step.preempted for step in steps)
    picture = draw_steps(steps, "Two")
    assert f"B runs in {sum('B' in s.computed for s in steps)}" in picture.alt
    assert f"{lost} of them preempted" in picture.alt


def test_no_steps_cannot_be_drawn():
    with pytest.raises(ValueError, match="did not run"):
        draw_steps([], "Nothing")


def test_long_runs_keep_the_width():
    wide = [draw_steps(run(engine_with([(4, n)] * 2, 40)), "Long").width for n in (3, 60)]
    assert wide[0] == wide[1]


def test_a_very_long_run_can_be_drawn_too():
    steps = [step_of({"A": (0,)}, {"A": 1})] * 15_000
    assert draw_steps(steps, "Many").alt.startswith("Many. 15000 steps of 1 requests.")


def test_the_widget_rebuilds_the_engine_from_its_sliders():
    def serve(num_blocks=16, batch_size=3, chunk=8):
        engine = engine_with([(9, 6), (14, 8), (5, 9)], num_blocks,
                             max_batch_size=batch_size, max_step_tokens=chunk)  # fmt: skip
        return draw_steps(run(engine), f"{engine.metrics['steps']} steps")

    widget = what_if(serve, num_blocks=(6, 30), batch_size=(1, 3), chunk=(4, 28, 4))
    seen = {widget.view.value}
    for control, value in (("num_blocks", 6), ("batch_size", 1), ("chunk", 28), ("chunk", 4)):
        widget.controls[control].value = value
        assert "That does not work" not in widget.view.value
        ElementTree.fromstring(widget.view.value)
        seen.add(widget.view.value)
    assert len(seen) == 5
