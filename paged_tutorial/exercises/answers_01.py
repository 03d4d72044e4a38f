"""Solutions of chapter 1, and answers in another style that must pass too."""

from itertools import accumulate

from paged_tutorial.page_table import blocks_needed


def token_bytes(num_layers, num_heads, num_kv_heads, head_dim, number_bytes):
    """A key and a value, in every layer, for every kv head."""
    return 2 * num_layers * num_kv_heads * head_dim * number_bytes


def token_bytes_by_counting(num_layers, num_heads, num_kv_heads, head_dim, number_bytes):
    """The same, one head after the other; query heads are not kept."""
    total = 0
    for _layer in range(num_layers):
        for _head in range(num_kv_heads):
            key = value = head_dim * number_bytes
            total += key + value
    return total


def account(now, end, slots):
    """Hold tokens, set aside for later, set aside for nothing."""
    used_in_the_end = min(end, slots)
    return now, used_in_the_end - now, slots - used_in_the_end


def account_by_slots(now, end, slots):
    """The same, looking at each slot."""
    later = sum(now <= slot < end for slot in range(slots))
    return [now, later, slots - now - later]


def how_many_start(prompts, num_slots, block_size):
    """In order, until one does not fit."""
    free = num_slots // block_size
    started = 0
    for prompt in prompts:
        needs = blocks_needed(prompt + 1, block_size)
        if needs > free:
            break
        free -= needs
        started += 1
    return started


def how_many_start_at_once(prompts, num_slots, block_size):
    """The same from running totals: they only grow, so those that fit come first."""
    totals = accumulate(prompt // block_size + 1 for prompt in prompts)
    return sum(total <= num_slots // block_size for total in totals)


def give_back(row, start):
    """Join with the other half it was cut from, as long as that is free."""
    size = row.pieces.pop(start)
    while (start ^ size) in row.free[size]:
        row.free[size].remove(start ^ size)
        start = min(start, start ^ size)
        size *= 2
    row.free[size].add(start)


def give_back_by_halves(row, start):
    """The same without ^: a lower half starts at a multiple of twice its size."""

    def add(start, size):
        is_lower = start % (2 * size) == 0
        buddy = start + size if is_lower else start - size
        if buddy in row.free[size]:
            row.free[size].discard(buddy)
            add(start if is_lower else buddy, 2 * size)
        else:
            row.free[size].add(start)

    add(start, row.pieces.pop(start))
