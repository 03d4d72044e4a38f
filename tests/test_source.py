"""`source` shows what stands in the file."""

import inspect
import re
from html import unescape

import pytest

from paged_tutorial import BlockPool, PagedKVCache, blocks_needed
from paged_tutorial.views import source


@pytest.mark.parametrize(
    "thing", [BlockPool, BlockPool.release, BlockPool.num_free, blocks_needed, PagedKVCache.match]
)
def test_all_of_the_source_and_nothing_else(thing):
    listing = source(thing)
    plain = thing.fget if isinstance(thing, property) else thing
    assert listing.code == inspect.cleandoc("\n" + inspect.getsource(plain)).rstrip()
    shown = unescape(re.sub("<[^>]*>", "", listing.html()))
    assert shown == listing.name + listing.code
    assert listing._repr_mimebundle_()["text/plain"] == f"# {listing.name}\n{listing.code}"


def test_the_name_says_where_it_stands_without_line_numbers_or_paths():
    listing = source(BlockPool.release)
    assert listing.name == "paged_tutorial.pool.BlockPool.release"
    assert listing.code.startswith("def release(")
    assert "/" not in listing.name
    assert source(BlockPool.num_free).name == "paged_tutorial.pool.BlockPool.num_free"


def test_ink_and_ground_are_given_so_that_no_theme_hides_the_code():
    html = source(blocks_needed).html()
    assert html.count("background:#F7F9FB") == 2 and "color:#1F2933" in html
    assert "class=" not in html


def test_what_has_no_source_is_a_clear_error():
    with pytest.raises(ValueError, match="no source that can be read"):
        source(len)
    with pytest.raises(ValueError, match="no source that can be read"):
        source(3)
