"""Read-modify-write of memory places by many lanes, one lane after the other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prism.simulator.types import Array

Update = Callable[[Array, Array, Array], Array]
"""From what a place holds and a lane's two values to what it holds afterwards."""


def in_order(update: Update, view: Array, slots: Array, parts: list[Array]) -> Array:
    """
    Updates the slots of a view, lowest lane first; gives what each lane found.

    In rounds: each round has at most one lane for every place.
    """
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts = np.diff(np.r_[starts, len(ordered)])
    rank = np.empty(len(slots), np.int64)
    rank[order] = np.arange(len(ordered)) - np.repeat(starts, counts)
    old = np.empty(len(slots), view.dtype)
    by_rank = np.argsort(rank, kind="stable")
    at = 0
    for size in np.bincount(rank):
        lanes = by_rank[at : at + size]
        at += int(size)
        places = slots[lanes]
        before = view[places]
        old[lanes] = before
        b = parts[0][lanes]
        c = parts[1][lanes] if len(parts) > 1 else b
        view[places] = update(before, b, c)
    return old
