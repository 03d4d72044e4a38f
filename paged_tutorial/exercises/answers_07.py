"""Solutions of chapter 7, and correct answers in other styles. Shown by `solution`."""

# Each answer is read alone, in a notebook: short, without annotations, as the stub is.

from collections import OrderedDict

import numpy as np

from paged_tutorial import BlockPool, OutOfBlocksError, paged_attention_blocks


def plan_step(missing, budget):
    """Requests in order, each with its first missing positions, until the budget is used up."""
    plan, left = [], budget
    for request, positions in missing.items():
        chosen = positions[:left]
        if chosen:
            plan.append((request, chosen, len(chosen) == len(positions)))
        if left is not None:
            left -= len(chosen)
    return plan


def plan_step_by_position(missing, budget):
    """One position after the other, as long as there is budget."""
    chosen = {}
    for request in missing:
        for position in missing[request]:
            if budget is None or sum(map(len, chosen.values())) < budget:
                chosen.setdefault(request, []).append(position)
    return tuple((who, tuple(some), some == missing[who]) for who, some in chosen.items())


def preempt(engine):
    """The newest gives all its blocks back, keeps its tokens, and is the next to come in."""
    victim = engine.running.pop()
    engine.cache.release(victim.request_id)
    engine.waiting.appendleft(victim)


def preempt_by_index(engine):
    """The same in other words."""
    engine.waiting.insert(0, engine.running[-1])
    engine.cache.release(engine.running[-1].request_id)
    del engine.running[-1]


def draw_token(logits, temperature, top_p, seed, position):
    """The next token: temperature, then softmax, then top-p, then one draw."""
    if temperature == 0:
        return int(np.argmax(logits))
    scaled = np.asarray(logits, np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    probabilities = weights / weights.sum()
    order = np.argsort(-probabilities)
    cumulative = np.cumsum(probabilities[order])
    number = np.searchsorted(cumulative, top_p) + 1
    kept = order[:number]
    generator = np.random.default_rng([seed, position])
    return int(generator.choice(kept, p=probabilities[kept] / probabilities[kept].sum()))


def draw_token_by_hand(logits, temperature, top_p, seed, position):
    """With plain lists, and a generator made from a text."""
    import math
    import random

    if not temperature:
        return max(range(len(logits)), key=lambda token: logits[token])
    highest = max(logits)
    weights = {t: math.exp((score - highest) / temperature) for t, score in enumerate(logits)}
    limit, kept = top_p * sum(weights.values()), {}
    for token in sorted(weights, key=weights.get, reverse=True):
        kept[token] = weights[token]
        if sum(kept.values()) >= limit:
            break
    return random.Random(f"{seed} {position}").choices(list(kept), list(kept.values()))[0]


class MyMemory:
    """Block pool, free queue and paged attention in one."""

    def __init__(self, num_blocks, block_size, num_layers, num_kv_heads, head_dim):
        self.num_blocks, self.block_size = num_blocks, block_size
        shape = (num_layers, num_blocks, block_size, num_kv_heads, head_dim)
        self.keys = np.zeros(shape, np.float32)
        self.values = np.zeros(shape, np.float32)
        self.reference_counts = [0] * num_blocks
        self.queue = OrderedDict.fromkeys(range(num_blocks))

    @property
    def num_free(self):
        return len(self.queue)

    def allocate(self):
        if not self.queue:
            raise OutOfBlocksError(1, 0)
        block, _ = self.queue.popitem(last=False)
        self.reference_counts[block] = 1
        return block

    def share(self, block):
        self.queue.pop(block, None)
        self.reference_counts[block] += 1

    def release(self, block, cached):
        self.reference_counts[block] -= 1
        if self.reference_counts[block] == 0:
            self.queue[block] = None
            self.queue.move_to_end(block, last=cached)

    def attention(self, queries, key_blocks, value_blocks, batch):
        output = np.zeros_like(queries)
        group = queries.shape[1] // key_blocks.shape[2]
        for rows, positions, table in batch.requests():
            keys = np.repeat(np.concatenate(key_blocks[table]), group, axis=1)
            values = np.repeat(np.concatenate(value_blocks[table]), group, axis=1)
            for row, position in zip(range(rows.start, rows.stop), positions, strict=True):
                seen = slice(0, position + 1)
                scores = np.einsum("hd,shd->hs", queries[row], keys[seen])
                scores /= np.sqrt(queries.shape[2])
                weights = np.exp(scores - scores.max(axis=1, keepdims=True))
                weights /= weights.sum(axis=1, keepdims=True)
                output[row] = np.einsum("hs,shd->hd", weights, values[seen])
        return output


class MemoryOfThePackage(BlockPool):
    """The package's pool, and its attention block by block."""

    def __init__(self, num_blocks, block_size, num_layers, num_kv_heads, head_dim):
        shape = {"num_layers": num_layers, "num_kv_heads": num_kv_heads, "head_dim": head_dim}
        super().__init__(num_blocks, block_size, **shape)

    def attention(self, *arguments):
        return paged_attention_blocks(*arguments)
