"""Solutions of chapter 6, and correct answers in other styles. Shown by `solution`."""

# Each answer is read alone, in a notebook: short, without annotations, as the stub is.

from paged_tutorial import compute
from paged_tutorial.policy import Policy


def to_compute(num_tokens, block_size, resident, holes=True):
    """The positions that the model must run on, in ascending order."""
    last_block = (num_tokens - 1) // block_size
    positions, complete = [], True
    for position in range(num_tokens):
        block = position // block_size
        found = block in resident and block != last_block
        complete = complete and found
        if not found or not (holes or complete):
            positions.append(position)
    return positions


def to_compute_by_blocks(num_tokens, block_size, resident, holes=True):
    """Which blocks are used first, then the positions outside them."""
    used = {block for block in resident if block < (num_tokens - 1) // block_size}
    if not holes:
        first = next(block for block in range(num_tokens) if block not in used)
        used = set(range(first))
    return [p for p in range(num_tokens) if p // block_size not in used]


def repair(model, tokens, missing, memory):
    """Compute the missing positions of a text in one pass. The logits at the last of them."""
    lost = [tokens[position] for position in missing]
    logits = model.forward(lost, missing, memory.at(missing))
    return logits[-1]


def repair_one_at_a_time(model, tokens, missing, memory):
    """The same, slower: a pass for each position, from the front."""
    for position in sorted(missing):
        logits = model.forward([tokens[position]], [position], memory.at([position]))
    return logits[0]


class CostAware(Policy):
    """Each block has a value: its cost, on top of a clock that rises with every loss."""

    def __init__(self, cost):
        super().__init__()
        self.cost = cost
        self.value = {}
        self.clock = 0.0

    def keep(self, block):
        self.value[block] = self.clock + self.cost(block)

    def take(self, block):
        del self.value[block]

    def choose(self):
        block = min(self.value, key=self.value.get)
        self.clock = self.value.pop(block)
        return block


class CostPerAge(Policy):
    """Among the blocks unused for longest, the cheapest goes."""

    def __init__(self, cost):
        super().__init__()
        self.cost, self.order = cost, {}

    def keep(self, block):
        self.order[block] = self.cost(block)

    def take(self, block):
        del self.order[block]

    def choose(self):
        age = len(self.order)
        best, block = None, None
        for rank, (candidate, cost) in enumerate(self.order.items()):
            value = cost * (age + 3 * rank)
            if best is None or value < best:
                best, block = value, candidate
        del self.order[block]
        return block


def come_back(model, cache, request_id, tokens, step_tokens):
    """Admit a chat and compute what is missing, a few positions a pass. The last logits."""
    cache.admit(request_id, tokens)
    while missing := cache.missing(request_id):
        logits = compute(model, cache, request_id, missing[:step_tokens])
    return logits


def come_back_by_hand(model, cache, request_id, tokens, step_tokens):
    """The same from the parts: batch, forward, commit."""
    cache.admit(request_id, tokens)
    missing = cache.missing(request_id)
    for start in range(0, len(missing), step_tokens):
        chosen = missing[start : start + step_tokens]
        batch = cache.batch([(request_id, chosen)])
        logits = model.forward(batch.tokens, batch.positions, batch, rows=[len(chosen) - 1])
        cache.commit(request_id, chosen)
    return logits[0]
