"""A recording tells what happened, keeps each state, and leaves the object as it was."""

import pytest

from paged_tutorial import BlockPool, PagedEngine, PagedKVCache, Trace, random_model
from paged_tutorial.views import draw_timeline, record, snapshot
from paged_tutorial.views.palette import Cast
from paged_tutorial.views.replay import replay
from paged_tutorial.views.tiles import tiles_of
from paged_tutorial.views.timeline import spans_of

from helpers import finish, make_cache, nan_pool, serve

MODEL = random_model()
PROMPTS = [[1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 9, 9, 9, 9, 9], [5] * 9]


def busy_engine(observer=None):
    """An engine on a pool too small for its requests, and the prompts again afterwards."""
    engine = PagedEngine(MODEL, 8, 4, observer=observer)

    def run():
        for prompts in (PROMPTS, PROMPTS[:1]):
            engine.generate(prompts, max_new_tokens=8)
        engine.add(PROMPTS[0], max_new_tokens=5)
        engine.step()

    return engine, run


def test_the_last_state_of_an_engines_recording_is_the_live_one():
    engine, run = busy_engine()
    with record(engine) as recording:
        run()
    assert len(recording) > 100
    assert recording[-1].snapshot == snapshot(engine)
    assert recording[0].snapshot == snapshot(PagedEngine(MODEL, 8, 4))
    kinds = {step.event.kind for step in recording.steps[1:]}
    assert {"allocate", "evict", "preempt", "recompute", "token", "finish"} <= kinds


def test_no_step_of_a_sound_cache_contradicts_itself():
    engine, run = busy_engine()
    with record(engine) as recording:
        run()
    for step in recording:
        assert not any(tile.wrong for tile in tiles_of(step.snapshot, Cast())), step.sentence


def test_sentences_are_whole_and_tell_what_an_eviction_costs():
    engine, run = busy_engine()
    with record(engine) as recording:
        run()
    for step in recording:
        assert step.sentence[0].isupper() and step.sentence[-1] == "."
        assert "None" not in step.sentence and " 1 new tokens" not in step.sentence
    evictions = [step.sentence for step in recording.only("evict")[1:]]
    assert evictions[0] == (
        "Pool full: block 6, first in the free queue, gives way; "
        "request 2's block 1 must be recomputed."
    )


def test_a_tokens_text_is_told_where_there_is_a_tokenizer():
    class Letters:
        end_of_text = 0

        def decode(self, tokens):
            return "".join(chr(97 + token % 26) for token in tokens)

    engine = PagedEngine(MODEL, 8, 4, tokenizer=Letters())
    with record(engine) as recording:
        engine.generate([[1, 2]], max_new_tokens=1)
    (said,) = [step.sentence for step in recording.only("token")[1:]]
    (token,) = [step.event.tokens for step in recording.only("token")[1:]]
    assert said == f"Request 0 gets its next token, {token}: {chr(97 + token % 26)!r}."


def test_a_block_keeps_the_colour_of_who_filled_it_until_it_is_evicted():
    cache = make_cache(2)
    with record(cache) as recording:
        finish(cache, "A", range(5))
        assert recording[-1].snapshot.owners[0] == "A"
        finish(cache, "B", [7] * 8)
    (evicted,) = recording.only("evict")[1:]
    assert 0 in evicted.snapshot.evicted and 0 not in evicted.snapshot.owners
    assert recording[-1].snapshot.owners[0] == "B" and not recording[-1].snapshot.evicted


def test_an_idle_chat_is_followed():
    cache = make_cache(3)
    idle = {}
    with record(cache, idle=idle) as recording:
        finish(cache, "A", range(8))
        idle["A"] = range(8)
        finish(cache, "B", [7] * 8)
    (view,) = [view for view in recording[-1].snapshot.requests if view.state == "idle"]
    assert view.blocks.count(None) == 1


def test_observers_are_chained_and_given_back():
    trace = Trace()
    engine, run = busy_engine(trace)
    with record(engine) as outer, record(engine) as inner:
        run()
    assert engine.observer is engine.cache.observer is engine.cache.pool.observer is trace
    assert len(outer) == len(inner) > 100
    told = [step.event for step in inner.steps[1:]]
    assert told == [event for event in trace if event.kind != "touch"]
    before = len(outer)
    engine.step()
    assert len(outer) == before


def test_a_trace_alone_gives_the_same_states():
    trace = Trace()
    engine, run = busy_engine(trace)
    with record(engine) as recording:
        run()
    rebuilt = replay(trace, 8, 4)
    live = {id(step.event): step.snapshot for step in recording}
    compared = 0
    for step in rebuilt.steps[1:]:
        # In the middle of an operation the live object is between two states.
        if step.event.kind in ("admit", "release", "register", "compute", "token", "finish"):
            for name in ("reference_counts", "queue", "cached"):
                assert getattr(step.snapshot, name) == getattr(live[id(step.event)], name)
            compared += 1
    assert compared > 50
    tables = {view.request: view.blocks for view in snapshot(engine).requests}
    assert {view.request: view.blocks for view in rebuilt[-1].snapshot.requests} == tables


def test_a_trace_of_an_engine_whose_pool_is_silent_gives_the_same_states_too():
    """A pool of the reader's own reports nothing: what a release frees follows from the tables."""
    trace = Trace()
    engine = PagedEngine(MODEL, pool=nan_pool(MODEL, 12, 4), observer=trace)
    prompts = [[1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 9, 9, 9, 9, 9], [7] * 10]
    names = [engine.add(prompt, max_new_tokens=9) for prompt in prompts]
    for number in range(30):
        engine.step()
        if number == 3:
            engine.fork(names[0])
    assert not engine.busy and engine.metrics["preemptions"]
    assert not trace.of("free")
    rebuilt, live = replay(trace, 12, 4)[-1].snapshot, snapshot(engine)
    for name in ("reference_counts", "queue", "cached"):
        assert getattr(rebuilt, name) == getattr(live, name)


# -- your own class ------------------------------------------------------------------------


class Pool:
    """A reader's first pool, which accepts a double release."""

    def __init__(self, num_blocks):
        self.num_blocks = num_blocks
        self.free = list(range(num_blocks))
        self.ref_counts = {}

    def allocate(self):
        block = self.free.pop(0)
        self.ref_counts[block] = 1
        return block

    def release(self, block):
        self.ref_counts[block] -= 1
        self.free.append(block)

    def release_all(self, blocks):
        for block in blocks:
            self.release(block)


def test_the_calls_of_an_own_class_are_its_steps():
    pool = Pool(3)
    with record(pool) as recording:
        blocks = [pool.allocate(), pool.allocate()]
        pool.release_all(blocks)
        with pytest.raises(KeyError):
            pool.release(2)
    assert [step.sentence for step in recording.steps[1:]] == [
        "allocate() returns 0.",
        "allocate() returns 1.",
        "release_all([0, 1]).",
        "release(2) raises KeyError: 2.",
    ]
    assert [step.highlight for step in recording.steps[1:]] == [(0,), (1,), (0, 1), ()]
    assert recording[-1].snapshot == snapshot(pool)
    assert set(vars(pool)) == {"num_blocks", "free", "ref_counts"}


def test_a_call_that_is_interrupted_is_a_step_and_stays_an_interruption():
    class Endless:
        def wait(self):
            raise KeyboardInterrupt

    with record(Endless()) as recording:
        with pytest.raises(KeyboardInterrupt):
            recording.thing.wait()
    assert recording[-1].sentence == "wait() is interrupted."


def test_the_packages_pool_is_recorded_by_its_calls():
    pool = BlockPool(2, 4)
    with record(pool) as recording:
        pool.release(pool.allocate())
    assert [step.sentence for step in recording.steps[1:]] == [
        "allocate() returns 0.",
        "release(0).",
    ]


def test_an_own_pool_within_an_engine_need_not_report():
    class Silent(BlockPool):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            del self.observer

        def _report(self, kind, block_id):
            pass

    cache = PagedKVCache(Silent(3, 4))
    with record(cache) as recording:
        finish(cache, "A", range(5))
    assert recording[-1].snapshot == snapshot(cache)


def test_a_class_whose_methods_cannot_be_exchanged_is_refused_kindly():
    class Closed:
        __slots__ = ()

        def allocate(self):
            return 0

    with pytest.raises(TypeError, match="leave out __slots__"):
        record(Closed())


# -- over time -----------------------------------------------------------------------------


def test_the_timeline_of_a_recording_shows_who_had_which_block():
    cache = make_cache(2)
    with record(cache) as recording:
        serve(cache, "A", range(5))
        cache.release("A")
        serve(cache, "B", [7] * 3)
    spans = spans_of(recording.steps)
    of_block_0 = [(span.owner, span.kept) for span in spans if span.lane == 0]
    assert of_block_0 == [("A", False), ("A", True)]
    assert [span.owner for span in spans if span.lane == 1] == ["A", "B"]
    assert "block 0: A" in draw_timeline(recording).alt
