"""
The `thread` dialect: what one block does with tiles that have a memory space and a spread over
threads.

Inputs are copied to shared tiles; products accumulate in fragments, spread over warps as mma.sync
wants them; elementwise chains are the scalar regions (`arith` and `math` on f32) of maps and
reductions.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from prism.dialects.thread_elementwise import MapOp, ReduceOp
from prism.dialects.thread_kernel import ForOp, KernelOp, ReturnOp
from prism.dialects.thread_ops import (
    AllocOp,
    BarrierOp,
    CommitOp,
    CopyOp,
    SpillOp,
    StoreOp,
    WaitOp,
    ZeroOp,
)
from prism.dialects.thread_products import MmaOp
from prism.dialects.thread_sums import SumLanesOp, SumWarpsOp
from prism.dialects.thread_types import FragmentType, LayoutAttr, SharedType, WindowAttr
from prism.dialects.thread_yield import YieldOp

Thread = Dialect(
    "thread",
    [
        KernelOp,
        ReturnOp,
        ForOp,
        YieldOp,
        AllocOp,
        CopyOp,
        StoreOp,
        BarrierOp,
        CommitOp,
        WaitOp,
        ZeroOp,
        MmaOp,
        SumWarpsOp,
        SumLanesOp,
        SpillOp,
        MapOp,
        ReduceOp,
    ],
    [FragmentType, SharedType, LayoutAttr, WindowAttr],
)
