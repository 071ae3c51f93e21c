"""The output target `prism-ptx`: the PTX text of a module's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target


@dataclass(frozen=True)
class PtxTarget(Target):
    """
    Prints the PTX of every `cuda.kernel` and `cuda.binary`, each a PTX module of its own.

    Example: `prism-opt FILE -p prism-lower-to-cuda -t prism-ptx`
    """

    name: ClassVar[str] = "prism-ptx"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from prism.codegen.emit import emit_kernel
        from prism.dialects.cuda import BinaryOp, KernelOp

        for op in module.ops:
            if isinstance(op, KernelOp):
                output.write(emit_kernel(op).ptx)
            elif isinstance(op, BinaryOp):
                output.write(op.ptx.data)
