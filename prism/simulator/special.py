"""Special registers (PTX ISA 10): width in bits and how a machine makes the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.types import Array

if TYPE_CHECKING:
    from prism.simulator.machine import Dim3, Machine

Make = Callable[["Machine"], Array]

CLOCKS: dict[str, int] = {"%clock": 32, "%clock_hi": 32, "%clock64": 64, "%globaltimer": 64}
"""Registers that change while a program runs, with their widths: they count scheduled groups."""


def _uniform(value: Callable[[Machine], int], bits: int = 32) -> tuple[int, Make]:
    dtype = np.uint32 if bits == 32 else np.uint64
    return bits, lambda x: np.full((1, 1), value(x), dtype)


def _split(index: Array, size: Dim3, axis: int) -> Array:
    x, y, _ = size
    return (index % x, index // x % y, index // (x * y))[axis].astype(np.uint32)


def _thread(axis: int) -> tuple[int, Make]:
    return 32, lambda x: _split(np.arange(x.threads)[None, :], x.geometry.block, axis)


def _block(axis: int) -> tuple[int, Make]:
    def make(x: Machine) -> Array:
        return _split(np.arange(x.blocks)[:, None] + x.first_block, x.geometry.grid, axis)

    return 32, make


def _lane(value: Callable[[Array], Array]) -> tuple[int, Make]:
    """A function of the thread's linear index in its block."""
    return 32, lambda x: value(np.arange(x.threads, dtype=np.uint64)[None, :]).astype(np.uint32)


def _extent(which: str, axis: int) -> tuple[int, Make]:
    return _uniform(lambda x: (x.geometry.block if which == "block" else x.geometry.grid)[axis])


_ONE = np.uint64(1)

SPECIAL: dict[str, tuple[int, Make]] = {
    **{f"%tid.{c}": _thread(i) for i, c in enumerate("xyz")},
    **{f"%ctaid.{c}": _block(i) for i, c in enumerate("xyz")},
    **{f"%ntid.{c}": _extent("block", i) for i, c in enumerate("xyz")},
    **{f"%nctaid.{c}": _extent("grid", i) for i, c in enumerate("xyz")},
    # A block is a cluster by itself.
    **{f"%cluster_ctaid.{c}": _uniform(lambda x: 0) for c in "xyz"},
    **{f"%cluster_nctaid.{c}": _uniform(lambda x: 1) for c in "xyz"},
    **{f"%clusterid.{c}": _block(i) for i, c in enumerate("xyz")},
    **{f"%nclusterid.{c}": _extent("grid", i) for i, c in enumerate("xyz")},
    "%cluster_ctarank": _uniform(lambda x: 0),
    "%cluster_nctarank": _uniform(lambda x: 1),
    "%laneid": _lane(lambda t: t % 32),
    "%warpid": _lane(lambda t: t // 32),
    "%nwarpid": _uniform(lambda x: x.warps),
    "%lanemask_eq": _lane(lambda t: _ONE << (t % 32)),
    "%lanemask_lt": _lane(lambda t: (_ONE << (t % 32)) - _ONE),
    "%lanemask_le": _lane(lambda t: (_ONE << (t % 32 + _ONE)) - _ONE),
    "%lanemask_gt": _lane(lambda t: np.uint64(0xFFFFFFFF) ^ ((_ONE << (t % 32 + _ONE)) - _ONE)),
    "%lanemask_ge": _lane(lambda t: np.uint64(0xFFFFFFFF) ^ ((_ONE << (t % 32)) - _ONE)),
    "%smid": _uniform(lambda x: 0),
    "%nsmid": _uniform(lambda x: 1),
    "%gridid": _uniform(lambda x: 0, 64),
    "%dynamic_smem_size": _uniform(lambda x: x.geometry.dynamic_smem),
    "%total_smem_size": _uniform(lambda x: x.shared.size),
}
