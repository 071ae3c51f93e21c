"""
How an access of a warp meets the memories: sectors of global memory, banks of shared memory.

A shared access of up to 4 bytes a thread is served for all 32 threads at once, one of 8 bytes for
16 and one of 16 bytes for 8 (CUDA C++ programming guide, compute capability 5.x and later). Each of
these passes takes as many wavefronts as the busiest of the 32 banks has distinct words.
"""

from __future__ import annotations

import numpy as np

from prism.simulator.memory import SHIFT
from prism.simulator.types import Array

_NONE = -1
"""Stands for a lane that does not take part; offsets are never negative."""


def _by_warp(offset: Array, exact: Array | None, warps: int, lanes: int) -> Array:
    """Offsets as (rows, groups of `lanes` lanes), with _NONE for lanes that do not take part."""
    threads = warps * 32
    if exact is not None:
        offset = np.where(exact, offset, _NONE)
    if offset.shape[1] != threads:
        offset = np.broadcast_to(offset, (offset.shape[0], threads))
    return offset.reshape(-1, lanes)


def _distinct(values: Array) -> int:
    """The sum over rows of how many distinct values, _NONE apart, a row has."""
    before, after = values[:, :-1], values[:, 1:]
    if (after < before).any():
        values = np.sort(values, axis=1)
        before, after = values[:, :-1], values[:, 1:]
    # Of sorted values, _NONE comes first.
    return int(np.count_nonzero(before != after)) + int(np.count_nonzero(values[:, 0] != _NONE))


def sectors(offset: Array, exact: Array | None, warps: int, blocks: int) -> int:
    """Sectors that the warps of all blocks ask for, each warp's distinct ones."""
    rows = offset.shape[0] if exact is None else max(offset.shape[0], exact.shape[0])
    number = _distinct(_by_warp(offset, exact, warps, 32) >> 5)
    return number * (blocks // rows)


def wavefronts(
    offset: Array, exact: Array | None, width: int, warps: int, blocks: int
) -> tuple[int, int]:
    """Wavefronts of a shared access over all blocks, and the least that it could have taken."""
    rows = offset.shape[0] if exact is None else max(offset.shape[0], exact.shape[0])
    wide = max(width, 4)
    lanes = 128 // wide
    # Wide accesses are aligned, so a pair or quadruple of banks acts as one bank.
    units = _by_warp(offset, exact, warps, lanes) >> SHIFT[wide]
    passes = int(np.count_nonzero((units != _NONE).any(axis=1)))
    # A bank serves distinct units one after the other: sort by bank, then unit.
    keys = np.where(units == _NONE, _NONE, (units % lanes << 40) + units)
    keys = np.sort(keys, axis=1)
    new = np.ones(keys.shape, np.bool_)
    new[:, 1:] = keys[:, 1:] != keys[:, :-1]
    new &= keys != _NONE
    row, column = np.nonzero(new)
    bank = keys[row, column] >> 40
    busy = np.bincount(row * lanes + bank, minlength=len(keys) * lanes).reshape(-1, lanes)
    times = blocks // rows
    return int(busy.max(axis=1).sum()) * times, passes * times
