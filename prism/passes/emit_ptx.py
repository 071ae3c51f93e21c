"""`prism-emit-ptx`: kernels as PTX text in the IR."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class EmitPtxPass(ModulePass):
    """Replaces every `cuda.kernel` by a `cuda.binary` that holds its PTX."""

    name = "prism-emit-ptx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from prism.codegen.emit import emit_kernel
        from prism.dialects.cuda import BinaryOp, KernelOp

        for kernel in [each for each in op.ops if isinstance(each, KernelOp)]:
            binary = BinaryOp(dict(kernel.properties), emit_kernel(kernel).ptx)
            op.body.block.insert_op_before(binary, kernel)
            kernel.detach()
            kernel.erase()
