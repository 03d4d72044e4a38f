"""Any sequence of cache operations keeps the rules, and no request ever sees foreign content.

Beside the cache runs an oracle: what is computed for a position is a fingerprint of the salt,
the adapter and all tokens up to there. Whatever a request's table then points at must carry
the fingerprint of that request's own text.
"""

from zlib import crc32

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from paged_tutorial.cache import PagedKVCache
from paged_tutorial.hashing import digest_16
from paged_tutorial.invariants import check_invariants
from paged_tutorial.pool import BlockPool, OutOfBlocksError

from helpers import snapshot

# Two tokens, two streams of text and few salts, so that requests often share prefixes.
tokens = st.integers(0, 1)
streams = st.sampled_from([[0] * 14, [0, 1, 1] * 5])
texts = st.builds(
    lambda stream, length, end: [*stream[:length], *end],
    streams,
    st.integers(0, 14),
    st.lists(tokens, min_size=1, max_size=2),
)
additions = st.lists(tokens, min_size=1, max_size=5)
roots = st.sampled_from([("", "")] * 6 + [("salt", ""), ("", "adapter")])
picks = st.integers(0, 1000)
hash_functions = st.sampled_from([digest_16, lambda data: bytes([digest_16(data)[0] & 3])])


def fingerprint(root, tokens):
    """A number for a text, exact in float64."""
    return float(crc32(repr((root, list(tokens))).encode()))


def text_of(name):
    """(root, tokens) that a block name stands for: its whole chain."""
    tokens = []
    while name.parent is not None:
        tokens = [*name.content, *tokens]
        name = name.parent
    return name.content, tuple(tokens)


class CacheMachine(RuleBasedStateMachine):
    @initialize(
        num_blocks=st.sampled_from([1, 2, 4, 6, 8, 12, 16]),
        block_size=st.integers(1, 4),
        holes=st.booleans(),
        hash_function=hash_functions,
    )
    def start(self, num_blocks, block_size, holes, hash_function):
        pool = BlockPool(num_blocks, block_size, dtype=np.float64)
        self.cache = PagedKVCache(pool, holes=holes, hash_function=hash_function)
        self.history = [[0]]
        self.next_id = 0

    # -- helpers -----------------------------------------------------------------------

    def pick(self, choice):
        """One of the admitted requests."""
        requests = list(self.cache.holdings)
        return requests[choice % len(requests)]

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def resident(self):
        """(root, tokens) of every block that can be found."""
        return {text_of(name) for name in self.cache.index.name_of if name is not None}

    def expected_hits(self, tokens, root):
        """Logical blocks of a text that are resident, counted the slow way."""
        size, resident, hits = self.cache.block_size, self.resident(), []
        for logical in range((len(tokens) - 1) // size):
            if (root, tuple(tokens[: (logical + 1) * size])) in resident:
                hits.append(logical)
            elif not self.cache.holes:
                break
        return hits

    def refused(self, error, operation, *arguments):
        """An operation that must fail and leave everything as it was."""
        before = snapshot(self.cache)
        with pytest.raises(error):
            operation(*arguments)
        assert snapshot(self.cache) == before

    def submit(self, tokens, root):
        """Admit a request, or see it refused. Returns its id or None."""
        cache, request_id = self.cache, self.new_id()
        self.history.append(tokens)
        hits = self.expected_hits(tokens, root)
        if not cache.can_admit(tokens, *root):
            self.refused(OutOfBlocksError, cache.admit, request_id, tokens, *root)
            return None
        cached = cache.admit(request_id, tokens, *root).tolist()
        assert cached == [p for p in range(len(tokens)) if p // cache.block_size in hits]
        assert sorted(cached + cache.missing(request_id)) == list(range(len(tokens)))
        assert cached != list(range(len(tokens)))
        assert cache.lost_positions(request_id) <= set(cache.missing(request_id))
        return request_id

    def fill(self, request_id, count=None):
        """Compute the first missing positions: all of them, or `count`."""
        cache, holding = self.cache, self.cache.holdings[request_id]
        positions = cache.missing(request_id)[:count]
        batch = cache.batch([(request_id, positions)])
        new = [fingerprint(holding.root.content, holding.tokens[: p + 1]) for p in positions]
        new = np.array(new).reshape(-1, 1, 1)
        batch.write(0, new, -new)
        cache.commit(request_id, positions)

    # -- rules -------------------------------------------------------------------------

    @rule(tokens=texts, root=roots)
    def admit(self, tokens, root):
        self.submit(tokens, root)

    @rule(tokens=texts, root=roots)
    def serve_to_the_end(self, tokens, root):
        request_id = self.submit(tokens, root)
        if request_id is not None:
            self.fill(request_id)
            check_invariants(self.cache)
            self.cache.release(request_id)

    @rule(choice=picks, more=st.lists(tokens, max_size=3), root=roots)
    def come_back(self, choice, more, root):
        request_id = self.submit([*self.history[choice % len(self.history)], *more], root)
        if request_id is not None:
            self.fill(request_id)

    @precondition(lambda self: self.resident())
    @rule(choice=picks, which=picks)
    def come_back_to_a_hole(self, choice, which):
        cache, resident = self.cache, sorted(self.resident())
        root, tokens = resident[choice % len(resident)]
        text = [*tokens, 0]
        hits = cache.match(text, *root).blocks.values()
        idle = [block for block in hits if not cache.pool.reference_counts[block]]
        if idle:
            cache.evict(idle[which % len(idle)])
        request_id = self.submit(text, root)
        if request_id is not None:
            self.fill(request_id)

    @precondition(lambda self: self.cache.holdings)
    @rule(choice=picks, tokens=additions)
    def extend(self, choice, tokens):
        cache, request_id = self.cache, self.pick(choice)
        before = list(cache.holdings[request_id].tokens)
        try:
            state = snapshot(cache)
            cache.extend(request_id, tokens)
        except OutOfBlocksError:
            assert snapshot(cache) == state
            return
        assert cache.holdings[request_id].tokens == [*before, *tokens]
        new = range(len(before), len(before) + len(tokens))
        assert cache.missing(request_id)[-len(tokens) :] == list(new)

    @precondition(lambda self: self.cache.holdings)
    @rule(choice=picks, count=st.sampled_from([1, 2, 3, 100, 100, 100]))
    def compute(self, choice, count):
        self.fill(self.pick(choice), count)

    @precondition(lambda self: self.cache.holdings)
    @rule(choice=picks, tokens=additions)
    def decode(self, choice, tokens):
        request_id = self.pick(choice)
        self.fill(request_id)
        for token in tokens:
            self.extend(choice, [token])
            self.fill(request_id)

    @precondition(lambda self: self.cache.holdings)
    @rule(choice=picks, skipped=st.integers(1, 3))
    def misuse(self, choice, skipped):
        request_id = self.pick(choice)
        self.refused(ValueError, self.cache.admit, request_id, [0])
        later = self.cache.missing(request_id)[skipped:]
        if later:
            self.refused(ValueError, self.cache.commit, request_id, later)
        present = len(self.cache.holdings[request_id].tokens)
        self.refused(ValueError, self.cache.commit, request_id, [present])

    @precondition(lambda self: self.cache.holdings)
    @rule(choice=picks)
    def fork(self, choice):
        cache, parent = self.cache, self.pick(choice)
        if cache.missing(parent):
            self.refused(ValueError, cache.fork, parent, self.new_id())
            return
        child, free = self.new_id(), cache.pool.num_free
        cache.fork(parent, child)
        assert cache.holdings[child].tokens == cache.holdings[parent].tokens
        assert cache.missing(child) == [] and cache.pool.num_free == free

    @precondition(lambda self: self.cache.holdings)
    @rule(choice=picks)
    def release(self, choice):
        request_id, resident = self.pick(choice), self.resident()
        self.history.append(self.cache.holdings[request_id].tokens[:16])
        self.cache.release(request_id)
        assert request_id not in self.cache.holdings
        assert self.resident() == resident

    @rule(choice=picks, careful=st.integers(0, 3))
    def evict(self, choice, careful):
        cache = self.cache
        idle = [block for block in cache.pool.queue if cache.index.name_of[block] is not None]
        blocks = idle if idle and careful else range(cache.pool.num_blocks)
        block = blocks[choice % len(blocks)]
        if block not in idle:
            self.refused(ValueError, cache.evict, block)
            return
        cache.evict(block)
        assert next(iter(cache.pool.queue)) == block

    @rule(sure=st.integers(0, 4))
    def drop_all(self, sure):
        if sure < 4:  # else there would seldom be anything to hit
            return
        if self.cache.holdings:
            self.refused(RuntimeError, self.cache.drop_all)
            return
        self.cache.drop_all()
        assert self.resident() == set()

    @rule(choice=picks, tokens=texts, root=roots)
    def ask(self, choice, tokens, root):
        """Questions change nothing, and `match` finds what is resident, no more, no less."""
        before = snapshot(self.cache)
        for text in (tokens, self.history[choice % len(self.history)]):
            hits = self.expected_hits(text, root)
            match = self.cache.match(text, *root)
            assert list(match.blocks) == hits
            self.cache.can_admit(text, *root)
        assert snapshot(self.cache) == before

    # -- what must hold after each -------------------------------------------------------

    @invariant()
    def rules_hold(self):
        check_invariants(self.cache)

    @invariant()
    def each_request_sees_its_own_content(self):
        for request_id, holding in self.cache.holdings.items():
            missing = set(self.cache.missing(request_id))
            present = [p for p in range(len(holding.tokens)) if p not in missing]
            self.check_content(
                holding.table.slot_mapping(present), present, holding.root.content, holding.tokens
            )

    @invariant()
    def each_block_that_can_be_found_holds_what_its_name_says(self):
        size = self.cache.block_size
        for block, name in enumerate(self.cache.index.name_of):
            if name is not None:
                root, tokens = text_of(name)
                slots = np.arange(block * size, (block + 1) * size)
                self.check_content(slots, range(len(tokens) - size, len(tokens)), root, tokens)

    def check_content(self, slots, positions, root, tokens):
        expected = [fingerprint(root, tokens[: position + 1]) for position in positions]
        assert self.cache.pool.keys.ravel()[slots].tolist() == expected
        assert (-self.cache.pool.values.ravel()[slots]).tolist() == expected


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(max_examples=500, stateful_step_count=60, deadline=None)
