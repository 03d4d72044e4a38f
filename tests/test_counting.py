"""Costs counted without a clock, and the tournament of policies."""

import sys
import tracemalloc
from collections import OrderedDict

import pytest

from paged_tutorial import LRUManager
from paged_tutorial.exercises.chapter_04 import CACHE
from paged_tutorial.exercises.counting import CountedKey, count
from paged_tutorial.exercises.report import judge
from paged_tutorial.exercises.tournament import FIELD, contests, field_scores, league, scores
from paged_tutorial.optimum import Belady


def test_looks_are_hashes_and_comparisons():
    keys = [CountedKey(number) for number in range(10)]
    assert count(lambda: hash(keys[0]))["looks at keys"] == 1
    assert count(lambda: keys[0] == keys[1])["looks at keys"] == 1
    # A list compares one after the other, the first nine in vain; the tenth is the same object.
    assert count(lambda: keys.index(keys[9]))["looks at keys"] == 9
    assert keys[0] == CountedKey(0) and keys[0] != 0


def test_lines_and_bytes():
    def loop():
        for _ in range(100):
            pass

    assert 100 <= count(loop)["lines run"] <= 210
    assert count(lambda: list(range(10_000)))["bytes taken"] > 80_000
    assert count(lambda: None)["bytes taken"] < 2_000


def test_nothing_is_left_behind():
    before = sys.gettrace()
    with pytest.raises(ZeroDivisionError):
        count(lambda: 1 / 0)
    assert sys.gettrace() is before
    assert not tracemalloc.is_tracing()


class CopyingCache:
    """Right, but the oldest key is found by copying all; no key is looked at for that."""

    def __init__(self, capacity):
        self.capacity, self.values = capacity, {}

    def get(self, key):
        if key not in self.values:
            return None
        value = self.values[key] = self.values.pop(key)
        return value

    def put(self, key, value):
        if key in self.values:
            del self.values[key]
        elif len(self.values) == self.capacity:
            self.evict()
        self.values[key] = value

    def evict(self):
        key = list(self.values)[0]
        del self.values[key]
        return key

    def __len__(self):
        return len(self.values)


class FirstOfADict(CopyingCache):
    """The same without the copy."""

    def evict(self):
        key = next(iter(self.values))
        del self.values[key]
        return key


def test_a_copy_of_all_keys_is_noticed_and_a_dictionary_will_do():
    verdict = judge(CACHE, CopyingCache)
    assert verdict.state == "wrong"
    assert "bytes taken" in verdict.failure.broken.came
    assert judge(CACHE, FirstOfADict).state == "right"


def test_the_optimum_scores_all_and_nobody_more():
    for contest in contests():
        assert len(set(contest.trace)) > contest.capacity, "everything fits: nothing to decide"
        assert contest.best > 0
    for name in FIELD:
        assert all(0 < score <= 1 for score in field_scores()[name].values())
    queues = iter([Belady(contest.trace) for contest in contests()])
    assert scores(lambda: next(queues)) == dict.fromkeys(field_scores()["LRU"], 1.0)


def test_lru_can_be_beaten_and_beats_most():
    totals = {name: score["all"] for name, score in field_scores().items()}
    assert totals["2Q"] > totals["LRU"] > totals["FIFO"]


def test_the_league_table_has_all_and_marks_yours(capsys):
    league(LRUManager, "mine")
    table = capsys.readouterr().out
    lines = [line for line in table.splitlines() if line.strip()]
    assert len(lines) == 2 + len(FIELD) + 1
    assert "→ mine" in table
    assert OrderedDict.fromkeys(name for name in FIELD if name in table).keys() == FIELD.keys()
