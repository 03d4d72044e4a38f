"""Names of blocks: what makes two equal, collisions, and the index with its ghosts."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paged_tutorial.hashing import BlockIndex, BlockName, digest_16

from helpers import quick


def two_bits(data):
    """A hash function as bad as can be: four digests in all."""
    return bytes([digest_16(data)[0] & 3])


def chain(texts, salt="", adapter="", hash_function=digest_16):
    name = BlockName.root(salt, adapter, hash_function)
    for tokens in texts:
        name = name.child(tokens, hash_function)
    return name


chains = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=2), max_size=4)
keys = st.tuples(chains, st.sampled_from(["", "x"]), st.sampled_from(["", "x"]))


@pytest.mark.parametrize("hash_function", [digest_16, two_bits])
@given(one=keys, other=keys)
@quick
def test_names_are_equal_if_and_only_if_all_they_stand_for_is_equal(one, other, hash_function):
    first, second = chain(*one, hash_function), chain(*other, hash_function)
    assert (first == second) == (one == other)
    if one == other:
        assert hash(first) == hash(second)
        assert first.digest == second.digest


@pytest.mark.parametrize("hash_function", [digest_16, two_bits, lambda data: b""])
@given(names=st.lists(keys, unique_by=repr))
@quick
def test_the_index_never_finds_foreign_content(names, hash_function):
    index = BlockIndex(len(names))
    for block, key in enumerate(names):
        name = chain(*key, hash_function)
        assert index.find(name) is None
        index.register(block, name)
    for block, key in enumerate(names):
        assert index.find(chain(*key, hash_function)) == block


def test_the_same_tokens_after_another_parent_are_another_block():
    assert chain([[1, 2], [5, 6]]) != chain([[1, 3], [5, 6]])
    assert chain([[1, 2], [5, 6]]) != chain([[5, 6]])


def test_the_cut_between_blocks_matters():
    assert chain([[1, 2], [3]]) != chain([[1], [2, 3]])


def test_salt_and_adapter_cannot_be_exchanged():
    assert chain([[1]], salt="a") != chain([[1]], adapter="a")
    assert chain([[1]], salt="a").digest != chain([[1]], adapter="a").digest
    # Joined without a separator these two would be the same text.
    assert chain([[1]], salt="ab", adapter="c").digest != chain([[1]], "a", "bc").digest


def test_a_name_is_no_other_kind_of_thing():
    assert chain([[1]]) != "name"
    assert chain([[1]]) is not None


def test_a_digest_is_the_same_in_every_process():
    code = (
        "from paged_tutorial.hashing import BlockName;"
        "print(BlockName.root('s', 'a').child([1, 2]).digest.hex())"
    )
    runs = [subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(2)]
    assert runs[0] == runs[1] == chain([[1, 2]], "s", "a").digest.hex() + "\n"


def test_long_chains_compare_without_recursion():
    texts = [[1]] * 20_000
    assert chain(texts) == chain(texts)


def test_the_first_registered_of_equal_blocks_is_found():
    index, name = BlockIndex(4), chain([[1]])
    index.register(2, name)
    index.register(0, chain([[1]]))
    assert index.find(name) == 2
    assert len(index) == 2
    assert index.forget(2)
    assert index.find(name) == 0
    assert not index.was_evicted(name)


def test_a_block_is_registered_only_once():
    index = BlockIndex(2)
    index.register(0, chain([[1]]))
    with pytest.raises(ValueError, match="block 0 is registered already"):
        index.register(0, chain([[2]]))
    assert index.name_of[0] == chain([[1]])
    assert index.find(chain([[2]])) is None


def test_forgetting_a_block_without_a_name_says_so():
    index = BlockIndex(2)
    assert index.forget(1) is False


def test_what_was_lost_is_told_from_what_is_new():
    index, name = BlockIndex(2), chain([[1]])
    assert not index.was_evicted(name)
    index.register(0, name)
    assert not index.was_evicted(name)
    index.forget(0)
    assert index.was_evicted(name)
    assert not index.was_evicted(chain([[2]]))
    index.register(1, name)
    assert not index.was_evicted(name)


def test_only_so_many_losses_are_remembered():
    index = BlockIndex(2)
    names = [chain([[token]]) for token in range(50)]
    for name in names:
        index.register(0, name)
        index.forget(0)
    remembered = [index.was_evicted(name) for name in names]
    assert remembered == [False] * 42 + [True] * 8


def test_clear_forgets_blocks_and_losses():
    index = BlockIndex(3)
    index.register(0, chain([[1]]))
    index.register(1, chain([[2]]))
    index.forget(1)
    index.clear()
    assert len(index) == 0
    assert index.name_of == [None, None, None]
    assert index.find(chain([[1]])) is None
    assert not index.was_evicted(chain([[2]]))
