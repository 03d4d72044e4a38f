"""The name of a block: what it holds, and all that came before it.

In English: the keys and values of a token depend on that token and on every token before
it. So a block's name is its own tokens plus the name of its parent, the block before it.
At the root stand the salt (who may share) and the adapter (which weights computed it).
A name carries a digest, chained from the parent's digest, by which a dictionary finds it.
Equal digests are not proof, so equality compares the tokens too, up to the root.

vLLM chains the same way (vllm/v1/core/kv_cache_utils.py, hash_block_tokens) and trusts the
digest; here two prompts can never get each other's memory, whatever the hash function.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b

HashFunction = Callable[[bytes], bytes]


def digest_16(data: bytes) -> bytes:
    """BLAKE2b with a digest of 16 bytes: the same in every process and on every machine."""
    return blake2b(data, digest_size=16).digest()


class BlockName:
    """Identity of a block's content. Make one with `root` or `child`.

    digest: bytes, chained; parent: the name of the block before, None at the root;
    content: the block's tokens, or (salt, adapter) at the root
    """

    __slots__ = ("digest", "parent", "content", "_key")

    def __init__(self, digest: bytes, parent: BlockName | None, content: tuple) -> None:
        self.digest = digest
        self.parent = parent
        self.content = content
        self._key = hash(digest)

    @classmethod
    def root(
        cls, salt: str = "", adapter: str = "", hash_function: HashFunction = digest_16
    ) -> BlockName:
        """The start of a chain. Requests share blocks only under equal salt and adapter."""
        return cls(hash_function(repr((salt, adapter)).encode()), None, (salt, adapter))

    def child(self, tokens: Sequence[int], hash_function: HashFunction = digest_16) -> BlockName:
        """The name of the block that holds `tokens` and follows this one."""
        data = self.digest + array("q", tokens).tobytes()
        return BlockName(hash_function(data), self, tuple(tokens))

    def __hash__(self) -> int:
        return self._key

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BlockName):
            return NotImplemented
        # A loop, not recursion: a chain may be thousands of blocks long. It ends at the
        # first ancestor that both share, which is at once for requests that hit in order.
        mine, theirs = self, other
        while mine is not theirs:
            if mine is None or theirs is None or mine.content != theirs.content:
                return False
            mine, theirs = mine.parent, theirs.parent
        return True

    def __repr__(self) -> str:
        return f"BlockName({self.digest.hex()[:8]}, {self.content})"


class BlockIndex:
    """Which resident blocks carry which name.

    Several blocks may hold the same content; the first registered is the one found. The
    names of blocks that were evicted are remembered for a while as ghosts, so that a miss
    on something new can be told from a miss on something lost.
    """

    def __init__(self, num_blocks: int) -> None:
        self.name_of: list[BlockName | None] = [None] * num_blocks
        self._blocks: dict[BlockName, dict[int, None]] = {}
        self._ghosts: OrderedDict[BlockName, None] = OrderedDict()
        self._max_ghosts = 4 * num_blocks

    def find(self, name: BlockName) -> int | None:
        """The first registered block that carries this name, or None."""
        blocks = self._blocks.get(name)
        return None if blocks is None else next(iter(blocks))

    def register(self, block_id: int, name: BlockName) -> None:
        """Make a full block findable. Raises ValueError if it carries a name already."""
        if self.name_of[block_id] is not None:
            raise ValueError(f"block {block_id} is registered already")
        self.name_of[block_id] = name
        self._blocks.setdefault(name, {})[block_id] = None
        self._ghosts.pop(name, None)

    def forget(self, block_id: int) -> bool:
        """Take the name from a block. True if it had one."""
        name = self.name_of[block_id]
        if name is None:
            return False
        self.name_of[block_id] = None
        blocks = self._blocks[name]
        del blocks[block_id]
        if not blocks:
            del self._blocks[name]
            self._ghosts[name] = None
            if len(self._ghosts) > self._max_ghosts:
                self._ghosts.popitem(last=False)
        return True

    def was_evicted(self, name: BlockName) -> bool:
        """True if this content was here, is gone, and the loss is still remembered."""
        return name in self._ghosts

    def clear(self) -> None:
        """Forget every block and every ghost."""
        self.name_of = [None] * len(self.name_of)
        self._blocks.clear()
        self._ghosts.clear()

    def __len__(self) -> int:
        return sum(name is not None for name in self.name_of)

    def items(self):
        """(name, block ids) pairs, for the invariants."""
        return self._blocks.items()
