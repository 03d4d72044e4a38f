"""Solutions of chapter 4, and correct answers in other styles. Shown by `solution`."""

# Each answer is read alone, in a notebook: short, without annotations, as the stub is.

from collections import OrderedDict

import numpy as np

from paged_tutorial.policy import Policy, Ranked


class LRUCache:
    """get, put and evict, each in a few steps, however many keys there are."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.values = OrderedDict()

    def get(self, key):
        if key not in self.values:
            return None
        self.values.move_to_end(key)
        return self.values[key]

    def put(self, key, value):
        if key not in self.values and len(self.values) == self.capacity:
            self.evict()
        self.values[key] = value
        self.values.move_to_end(key)

    def evict(self):
        return self.values.popitem(last=False)[0]

    def __len__(self):
        return len(self.values)


class LinkedCache:
    """A dictionary of links, each [value, before, after]; a ring with one empty link."""

    END = object()

    def __init__(self, capacity):
        self.capacity = capacity
        self.links = {self.END: [None, self.END, self.END]}

    def _unlink(self, key):
        _, before, after = self.links[key]
        self.links[before][2], self.links[after][1] = after, before

    def _append(self, key):
        link, end = self.links[key], self.links[self.END]
        link[1], link[2] = end[1], self.END
        self.links[end[1]][2] = key
        end[1] = key

    def get(self, key):
        if key not in self.links:
            return None
        self._unlink(key)
        self._append(key)
        return self.links[key][0]

    def put(self, key, value):
        if key in self.links:
            self._unlink(key)
        elif len(self) == self.capacity:
            self.evict()
        self.links[key] = [value, None, None]
        self._append(key)

    def evict(self):
        key = self.links[self.END][2]
        if key is self.END:
            raise KeyError("nothing to evict")
        self._unlink(key)
        del self.links[key]
        return key

    def __len__(self):
        return len(self.links) - 1


class Recent:
    """The keys used last. A key that is used again becomes the newest."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.order = {}

    def use(self, key):
        hit = self.order.pop(key, False)
        if not hit and len(self.order) == self.capacity:
            del self.order[next(iter(self.order))]
        self.order[key] = True
        return hit

    def __len__(self):
        return len(self.order)


class RecentByClock:
    """No order at all: a time for each key, and a search when somebody has to go."""

    def __init__(self, capacity):
        self.capacity, self.time, self.used = capacity, 0, {}

    def use(self, key):
        self.time += 1
        hit = key in self.used
        if not hit and len(self.used) >= self.capacity:
            self.used.pop(min(self.used, key=self.used.get))
        self.used[key] = self.time
        return hit

    def __len__(self):
        return len(self.used)


class RecentByArray:
    """A key is there if it equals any; what is cut off in front is the oldest."""

    def __init__(self, capacity):
        self.capacity, self.keys = capacity, np.array([], dtype=object)

    def use(self, key):
        same = self.keys == key
        self.keys = np.append(self.keys[~same], key)[-self.capacity :]
        return same.any()

    def __len__(self):
        return self.keys.size


class MyPolicy(Policy):
    """Blocks that were hit and blocks that were not: the larger group loses its oldest."""

    def __init__(self):
        super().__init__()
        self.new, self.proven = OrderedDict(), OrderedDict()

    def keep(self, block):
        queue = self.proven if self.history[block].uses > 1 else self.new
        queue[block] = None

    def take(self, block):
        self.new.pop(block, None)
        self.proven.pop(block, None)

    def choose(self):
        queue = self.new if len(self.new) > len(self.proven) else self.proven
        return queue.popitem(last=False)[0]


class PolicyByRank(Ranked):
    """LRU, but a block that was hit counts as used a thousand steps later than it was."""

    def rank(self, history):
        return history.used + 1000 * (history.uses > 1)
