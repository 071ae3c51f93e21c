"""The PTX of a module's kernels."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from prism.codegen.ptx_printer import print_kernel
from prism.dialects.cuda import KernelOp


@dataclass(frozen=True, slots=True)
class EmittedKernel:
    """
    A kernel as PTX text and how to launch it; shared memory in bytes, `origins` per PTX line the
    `cuda` op that printed it.
    """

    name: str
    ptx: str
    origins: list[str]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    static_smem: int
    dynamic_smem: int
    target: str


def emit_kernel(kernel: KernelOp) -> EmittedKernel:
    """The PTX of one kernel."""
    printed = print_kernel(kernel)
    return EmittedKernel(
        kernel.sym_name.data,
        printed.text,
        printed.origins,
        kernel.grid_size,
        (kernel.block.data, 1, 1),
        kernel.static_shared,
        kernel.dynamic_shared,
        kernel.target.data,
    )


def emit_module(module: ModuleOp) -> list[EmittedKernel]:
    """The PTX of every `cuda.kernel` of a module, in order."""
    return [emit_kernel(op) for op in module.ops if isinstance(op, KernelOp)]
