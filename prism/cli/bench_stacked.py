"""Workloads that grow: gated MLP blocks one after the other, and how measured times grow."""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCKS = (1, 2, 4, 8, 16)

_TYPES = """
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!h = tensor<?x?xf16, #sym.shape<[n, f]>>
!u = tensor<?x?xf16, #sym.shape<[d, f]>>
!v = tensor<?x?xf16, #sym.shape<[f, d]>>
"""

_BLOCK = """
  %g{i} = kernel.matmul %x{i}, %wg{i} : (!x, !u) -> !h
  %s{i} = kernel.silu %g{i} : (!h) -> !h
  %u{i} = kernel.matmul %x{i}, %wu{i} : (!x, !u) -> !h
  %p{i} = kernel.mul %s{i}, %u{i} : (!h, !h) -> !h
  %x{next} = kernel.matmul %p{i}, %wd{i} : (!h, !v) -> !x
"""


def stacked_mlp(blocks: int) -> str:
    """MLIR of X <- (silu(X W_gate) * (X W_up)) W_down, `blocks` times, each with its weights."""
    arguments = "".join(f", %wg{i}: !u, %wu{i}: !u, %wd{i}: !v" for i in range(blocks))
    body = "".join(_BLOCK.format(i=i, next=i + 1) for i in range(blocks))
    return (
        f"{_TYPES}\nfunc.func @stacked_mlp_{blocks}(%x0: !x{arguments}) -> !x {{"
        f"{body}  func.return %x{blocks} : !x\n}}\n"
    )


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """
    The e of time = c size^e that fits positive (size, time) points best, by least squares on logs.

    None for fewer than two sizes.
    """
    logs = [(math.log(size), math.log(seconds)) for size, seconds in points]
    if len({size for size, _ in logs}) < 2:
        return None
    mean = sum(size for size, _ in logs) / len(logs)
    spread = sum((size - mean) ** 2 for size, _ in logs)
    return round(sum((size - mean) * seconds for size, seconds in logs) / spread, 3)
