"""What exercises of chapter 4 share."""

from __future__ import annotations

from collections import deque

from paged_tutorial.views.duel import draw_order

from ..play import Play


class OrderPlay(Play):
    """A play whose subject keeps keys in an order: that order is what is drawn."""

    def picture(self, title: str):
        """The keys of the subject's first collection of them."""
        fields = vars(self.subject).values()
        keys = next(list(field) for field in fields if isinstance(field, (dict, list, deque)))
        if not all(isinstance(key, (str, int)) for key in keys):
            raise ValueError("something else is kept there too, perhaps in another order")
        return draw_order(keys, title)
