"""Pictures: every state can be told without colour, and every picture is sound."""

import itertools
import re
import shutil
import time
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial import BlockPool, LRUManager, OutOfBlocksError, PageTable
from paged_tutorial.views import (
    Span,
    draw,
    draw_page_table,
    draw_pool,
    draw_queue,
    draw_store,
    draw_timeline,
    snapshot,
)
from paged_tutorial.views.legend import ENTRIES
from paged_tutorial.views.palette import COLOURS, NEUTRAL, Cast
from paged_tutorial.views.svg import Picture
from paged_tutorial.views.tiles import LARGE, SMALL, Tile, draw_tile

from helpers import append, finish, make_cache, quick, serve

SVG = "{http://www.w3.org/2000/svg}"


def every_state():
    """A picture with all that a picture can show."""
    cache = make_cache(12)
    serve(cache, "A", range(10))
    serve(cache, "B", [*range(8), 50, 51, 52, 53, 54])
    finish(cache, "C", range(100, 112))
    serve(cache, "D", range(200, 203))
    cache.admit("E", [5, 6, 7, 8, 9])
    return draw(
        cache,
        "Everything <at once> & more",
        "Block 3 & its neighbours.",
        highlight=[3, ("B", 3)],
        idle={"C": [*range(100, 112), 3]},
        store=[("C", 1), ("A", 3)],
    )


def many_pictures():
    """Pictures of very different sizes and kinds, by name."""
    cache = make_cache(12)
    serve(cache, "chat one", range(10))
    serve(cache, "chat two", range(30))
    wide = make_cache(256, 16)
    for number in range(9):
        serve(wide, 1000 + number, range(number * 1000, number * 1000 + 400))
    wide.release(1003)
    huge = BlockPool(3000, 16)
    spans = [Span("first", 0, 4, "A"), Span("second", 2.5, 9, "B", kept=True)]
    memory = [(0, 0, 8, "A", 30), (30, 2, 5, "B", 20), (50, 1, 9, "C", 10)]
    return {
        "every state": every_state(),
        "names": draw(cache, "A title that is so long that it must be broken into two lines " * 2),
        "256 blocks": draw(wide, caption="One sentence. " * 12, highlight=range(0, 250, 3)),
        "3000 blocks": draw(huge),
        "one block": draw(BlockPool(1, 1)),
        "a table of many": draw_page_table(wide, 1001, "Long"),
        "a position": draw_page_table(cache, "chat two", position=9),
        "queue": draw_queue(cache),
        "pool": draw_pool(cache),
        "store": draw_store(cache, store=[("A", 0)]),
        "lives": draw_timeline(spans, "Lives", time="s", marks=[(3, "now"), (8, "later")]),
        "memory": draw_timeline(memory, lane="slot", time="s"),
    }


PICTURES = many_pictures()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_sound_xml_with_words_and_ids_of_its_own(name):
    picture = PICTURES[name]
    root = ElementTree.fromstring(picture.svg)
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title.text.strip() and description.text.strip()
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"url\(#(.*?)\)", picture.svg) + re.findall('href="#(.*?)"', picture.svg))
    assert used <= set(ids)
    assert "@" not in re.sub(">[^<]*<", "><", picture.svg)
    # Ground and ink are given, so that the theme of the page does not matter.
    ground = root.find(f"{SVG}rect")
    assert ground.get("fill") == "#FFFFFF" and ground.get("width") == root.get("width")
    assert float(root.get("width")) <= 800


def test_the_same_object_gives_the_same_picture_and_another_one_other_ids():
    assert every_state().svg == every_state().svg
    first, second = draw(BlockPool(4)), draw(BlockPool(5))
    ids = [set(re.findall(r'id="(.*?)"', picture.svg)) for picture in (first, second)]
    assert not ids[0] & ids[1]


def test_drawing_changes_nothing():
    cache = make_cache(6)
    serve(cache, "A", range(10))
    before = snapshot(cache)
    draw(cache, idle={"C": range(9)})
    assert snapshot(cache) == before


def test_a_notebook_gets_html_for_screen_readers_and_svg_for_static_pages():
    picture = every_state()
    bundle = picture._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["text/html"].startswith("<div") and picture.svg in bundle["text/html"]
    assert "Request A: 10 tokens; blocks 0, 1, 2." in picture.alt
    assert 'data-step="7"' in picture.html(step=7)


def grey(svg):
    """The drawing without its colours. "none" stays: hollow is not a colour."""
    return re.sub(r"url\(#@\w+\)", "pattern", re.sub(r"#[0-9A-Fa-f]{6}", "ink", svg))


STATES = {
    "free": Tile(7, "free", "", NEUTRAL, 0, 4, 0),
    "filling": Tile(7, "held", "A", Cast().style("A"), 1, 4, 0b11),
    "full": Tile(7, "held", "A", Cast().style("A"), 1, 4, 0b1111),
    "of B": Tile(7, "held", "B", Cast().style("B"), 1, 4, 0b1111),
    "of nobody known": Tile(7, "held", "", NEUTRAL, 1, 4, None),
    "shared": Tile(7, "held", "A", Cast().style("A"), 2, 4, 0b1111),
    "shared by three": Tile(7, "held", "A", Cast().style("A"), 3, 4, 0b1111),
    "awaiting": Tile(7, "held", "A", Cast().style("A"), 1, 4, 0b1, 0b110),
    "cached": Tile(7, "cached", "A", Cast().style("A"), 0, 4, 0b1111),
    "cached of nobody known": Tile(7, "cached", "", NEUTRAL, 0, 4, 0b1111),
    "evicted": Tile(7, "evicted", "", NEUTRAL, 0, 4),
    "wrong": Tile(7, "free", "", NEUTRAL, 0, 4, 0, wrong=True),
}


@pytest.mark.parametrize("shape", [LARGE, SMALL])
def test_no_two_states_differ_by_colour_alone(shape):
    for one, other in itertools.combinations(STATES, 2):
        assert grey(draw_tile(STATES[one], shape)) != grey(draw_tile(STATES[other], shape)), (
            one,
            other,
        )


def test_requests_differ_by_colour_letter_and_pattern():
    cast = Cast("ABCDEFG")
    styles = [cast.style(request) for request in "ABCDEFG"]
    assert len({style.solid for style in styles}) == len({style.strokes for style in styles}) == 7
    labels = [cast.label(name) for name in ("A", 7, "chat-1", "chat-2", "Bob", "alice", "anna")]
    assert labels[:5] == ["A", "R7", "C1", "C2", "Bob"]
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(
    "names", [("C1", "chat-1"), ("R3", 3, "r-3"), ("a-2", "A1", "A2", "a_2"), (3, "R3", "row 3")]
)
def test_no_two_requests_have_one_label(names):
    cast = Cast(names)
    labels = [cast.label(name) for name in names]
    assert len(set(labels)) == len(names)
    assert [cast.request_of(label) for label in labels] == list(names)


def test_a_request_keeps_its_look_whoever_else_is_there():
    assert Cast(["B"]).style("B") == Cast("ABC").style("B")
    assert Cast([3]).style(3) == Cast(range(9)).style(3)


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(
    ("solid", "ink", "tint"), [*COLOURS, (NEUTRAL.solid, "#3E4C59", "#E4E7EB")]
)
def test_letters_stand_out_from_their_tiles(solid, ink, tint):
    for ground in (tint, "#FFFFFF"):
        assert (luminance(ground) + 0.05) / (luminance(ink) + 0.05) >= 4.5


def test_the_legend_names_the_states_shown_and_no_others():
    def entries(picture):
        return {key for key, (words, _) in ENTRIES.items() if f">{words}</text>" in picture.svg}

    assert entries(draw(BlockPool(4))) == {"free"}
    assert entries(every_state()) == {
        *("free", "held", "shared", "awaiting", "cached", "missing", "now")
    }


# -- your own class ------------------------------------------------------------------------


class Own:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"num_blocks": 4},
        {"free": [3, 1]},
        {"free_list": {2, 0}, "num_blocks": 3},
        {"ref_counts": {0: 2}, "num_blocks": 3, "free_blocks": (1, 2)},
        {"reference_counts": [1, 0, 2], "queue": iter([1])},
        {"reference_counts": np.array([1, 0]), "free": np.array([1])},
        {"page_tables": {"A": [2, 0], "B": PageTable(4, [1])}, "block_size": 4},
        {"tables": {"A": [2, 0, None]}, "lengths": {"A": 9}, "block_size": 4, "num_blocks": 8},
        {"num_blocks": -3, "block_size": "four", "free": [None, "x", 99, -1], "tables": 3},
        {"tables": {"A": [77, -5]}, "num_blocks": 2, "cached": [0, 1, 12], "block_size": 0},
        {"num_blocks": 2, "reference_counts": [5], "tables": {("t", 1): "ab", None: 4}},
        {"tables": {"A": [0]}, "lengths": {"A": 10**6}, "block_size": 4, "num_blocks": 1},
    ],
)
def test_of_your_own_class_that_is_drawn_which_is_there(attributes):
    ElementTree.fromstring(draw(Own(**attributes)).svg)


def test_the_own_class_is_drawn_like_ours():
    pool = BlockPool(5, 4)
    pool.release(pool.allocate())
    pool.share(pool.allocate())
    own = Own(num_blocks=5, block_size=4, reference_counts=[1, 0, 0, 0, 0], queue=[1, 2, 3, 4])
    own.reference_counts, own.queue = list(pool.reference_counts), list(pool.queue)
    assert draw(own).svg == draw(pool).svg


def test_a_property_that_raises_does_not_spoil_the_picture():
    class Broken(Own):
        @property
        def queue(self):
            raise RuntimeError("not yet")

    assert "3 blocks" in draw(Broken(num_blocks=3)).alt


def test_what_contradicts_itself_is_marked():
    both = Own(num_blocks=3, ref_counts=[1, 0, 0], free=[0, 1, 2])
    assert "contradiction with itself: block 0" in draw(both).alt
    neither = Own(num_blocks=3, ref_counts=[1, 0, 0], free=[1])
    assert "contradiction with itself: block 2" in draw(neither).alt
    sound = Own(num_blocks=3, ref_counts=[1, 0, 0], free=[1, 2])
    assert "contradiction" not in draw(sound).alt


@pytest.mark.parametrize("huge", [10**30, np.iinfo(np.int64).max])
@pytest.mark.parametrize(
    "own",
    [
        lambda huge: dict(block_size=4, block_ids=[2, huge]),
        lambda huge: dict(block_size=4, free=[2, huge]),
        lambda huge: dict(block_size=4, tables={"A": [2, huge]}),
        lambda huge: dict(num_blocks=huge, free=[2]),
        lambda huge: dict(num_blocks=huge, reference_counts={2: 0}, free=[2]),
        lambda huge: dict(block_size=huge, free=[2]),
    ],
)
def test_a_number_that_is_no_block_is_drawn_and_does_not_fill_the_memory(own, huge):
    picture = draw(SimpleNamespace(**own(huge)))
    assert "Block pool. 3 blocks" in picture.alt


def test_only_a_queue_is_said_to_hand_out_its_first_block():
    assert "handed out next" in draw(Own(num_blocks=2, queue=[1, 0])).svg
    assert "handed out next" not in draw(Own(num_blocks=2, free=[1, 0])).svg
    assert "handed out next" in draw_queue(LRUManager([2, 0, 1])).svg


# -- page tables and timelines -------------------------------------------------------------


def test_the_translation_of_a_position_is_told():
    picture = draw_page_table(PageTable(4, [7, 3]), position=5)
    assert "its slot is 3 × 4 + 1 = 13" in picture.alt
    assert "logical 0 is block 7; logical 1 is block 3" in picture.alt


def test_an_unknown_request_or_position_is_a_clear_error():
    with pytest.raises(ValueError, match="no page table of 'B'; requests with one: 'A'"):
        draw_page_table(Own(tables={"A": [0]}, num_blocks=1), "B")
    with pytest.raises(ValueError, match="position 8 is not covered"):
        draw_page_table(PageTable(4, [7, 3]), position=8)


def test_a_timeline_of_very_many_lanes_says_what_it_leaves_out():
    picture = draw_timeline([(f"chat {number}", 0, number, number) for number in range(350)])
    ElementTree.fromstring(picture.svg)
    assert "50 more are not shown" in picture.svg


def test_a_timeline_of_pieces_far_apart_does_not_fill_the_memory():
    picture = draw_timeline([(0, 0, 1, "A"), (10**12, 0, 1, "B")])
    assert f"{10**12 + 1 - 300} more are not shown" in picture.svg


def test_a_timeline_without_lives_is_a_clear_error():
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_timeline([])


@quick
@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(-5, 400), st.text(max_size=30)),
            st.floats(-1e6, 1e6),
            st.floats(0, 1e6),
            st.one_of(st.none(), st.integers(), st.text(max_size=8)),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_any_lifetimes_can_be_drawn(lives):
    spans = [(lane, start, start + length, owner) for lane, start, length, owner in lives]
    ElementTree.fromstring(draw_timeline(spans).svg)


operations = st.lists(
    st.tuples(
        st.sampled_from(["admit", "compute", "append", "fork", "release", "evict"]),
        st.sampled_from([*"ABC", 0, 12, "chat-1", ("a", 1)]),
        st.lists(st.integers(0, 2), min_size=1, max_size=11),
    ),
    max_size=25,
)


@quick
@given(operations, st.integers(1, 9), st.sampled_from([1, 2, 4, 16, 40]))
def test_any_state_that_can_be_reached_can_be_drawn(steps, num_blocks, block_size):
    cache = make_cache(num_blocks, block_size)
    for what, request, tokens in steps:
        try:
            if what == "admit":
                cache.admit(request, tokens * 3)
            elif what == "compute":
                cache.commit(request, cache.missing(request)[: len(tokens)])
            elif what == "append":
                append(cache, request, tokens)
            elif what == "fork":
                cache.fork(request, f"{request}'")
            elif what == "release":
                cache.release(request)
            else:
                cache.evict(len(tokens) % num_blocks)
        except (KeyError, ValueError, OutOfBlocksError):
            pass
        idle = {"idle": [*tokens, *tokens]}
        ElementTree.fromstring(draw(cache, idle=idle, highlight=[0, (request, 0)]).svg)
    if cache.holdings:
        ElementTree.fromstring(draw_page_table(cache).svg)


# -- speed, and how it really looks --------------------------------------------------------


def test_speed_is_printed(capsys):
    cache = make_cache(256, 16)
    for number in range(7):
        serve(cache, "ABCDEFG"[number], range(number * 1000, number * 1000 + 341))
    cache.release("C")
    times = []
    for _ in range(50):
        start = time.perf_counter()
        picture = draw(cache, "256 blocks")
        times.append(time.perf_counter() - start)
    with capsys.disabled():
        best, size = min(times) * 1000, len(picture.svg) / 1000
        print(f"\n[benchmark] drawing 256 blocks: {best:.1f} ms, {size:.0f} kB (limit 10 ms)")


# Every text within the picture, and no two on each other.
MEASURE = """() => {
  const svg = document.querySelector('svg'), frame = svg.getBoundingClientRect(), found = [];
  const texts = [...svg.querySelectorAll('text')].filter(t => !t.closest('defs') && t.textContent);
  const boxes = texts.map(t => [t.textContent, t.getBoundingClientRect()]);
  boxes.forEach(([words, box], i) => {
    if (box.left < frame.left || box.right > frame.right || box.bottom > frame.bottom)
      found.push('cut: ' + words);
    for (const [others, other] of boxes.slice(i + 1)) {
      const wide = Math.min(box.right, other.right) - Math.max(box.left, other.left);
      const high = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
      if (wide > 1 && high > 4) found.push(words + ' over ' + others);
    }
  });
  if (document.documentElement.scrollWidth > innerWidth) found.push('scrolls sideways');
  return found;
}"""


def test_no_text_is_cut_or_overlaps_in_a_browser(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium")
    with playwright.sync_playwright() as player:
        flags = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
        browser = player.chromium.launch(executable_path=chromium, args=flags)
        page = browser.new_page(viewport={"width": 840, "height": 600})
        for name, picture in PICTURES.items():
            page.set_content(f"<body style='margin:8px'>{picture.html()}</body>")
            assert page.evaluate(MEASURE) == [], name
        browser.close()


def test_a_picture_can_be_made_from_nothing_but_words():
    assert Picture("", 10, 10, "Title", "").alt == "Title."
