"""`prism-lower-to-cuda`: thread kernels as SIMT code."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class LowerToCudaPass(ModulePass):
    """Replaces every `thread.kernel` by a `cuda.kernel` for its target."""

    name = "prism-lower-to-cuda"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from prism.codegen.lower_thread import lower_kernel
        from prism.dialects.thread import KernelOp
        from prism.tune.target import load_target

        for kernel in [each for each in op.ops if isinstance(each, KernelOp)]:
            target = load_target(kernel.target.data)
            op.body.block.insert_op_before(lower_kernel(kernel, target.ptx_version), kernel)
            kernel.detach()
            kernel.erase()
