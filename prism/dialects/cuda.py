"""
The `cuda` dialect: SIMT code that prints to PTX one to one.

Scalars are SSA values of builtin types (two packed f16 are an `i32`), pointers are
`!cuda.ptr<space>`. Register instructions come from the table in `cuda_instructions.py`.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from prism.dialects.cuda_async_ops import CommitOp, CopyAsyncOp, WaitOp
from prism.dialects.cuda_control_ops import ForOp, IfOp, YieldOp
from prism.dialects.cuda_kernel_ops import BinaryOp, KernelOp, ReturnOp
from prism.dialects.cuda_memory_ops import (
    BarrierOp,
    LdMatrixOp,
    LoadOp,
    MmaOp,
    ShuffleOp,
    StoreOp,
)
from prism.dialects.cuda_register_ops import INSTRUCTION_OPS, ConstantOp
from prism.dialects.cuda_types import PtrType

Cuda = Dialect(
    "cuda",
    [
        KernelOp,
        BinaryOp,
        ReturnOp,
        ForOp,
        IfOp,
        YieldOp,
        ConstantOp,
        LoadOp,
        StoreOp,
        LdMatrixOp,
        MmaOp,
        ShuffleOp,
        BarrierOp,
        CopyAsyncOp,
        CommitOp,
        WaitOp,
        *INSTRUCTION_OPS.values(),
    ],
    [PtrType],
)
