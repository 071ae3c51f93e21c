"""What a lowered kernel takes of a target, and what a target does not have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.ir import Operation

from prism.codegen.errors import CannotLower
from prism.codegen.lower_graph import lower_graph
from prism.codegen.lower_thread import shared_bytes
from prism.dialects.kernel import GraphDefOp
from prism.dialects.thread import ForOp, KernelOp, MmaOp
from prism.dialects.thread_ops import fragment_of
from prism.dialects.thread_types import FragmentType

if TYPE_CHECKING:
    from prism.tune.target import Target

MAX_ACCUMULATORS = 128
"""f32 registers of a thread for accumulators: what is left of 255 holds operands and addresses."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """
    What one block takes: bytes of shared memory, threads, f32 registers of a thread that a loop
    carries, products accumulate in or a map computes. Of several kernels the largest of each.
    """

    smem_bytes: int
    threads: int
    accumulator_registers: int


def footprint(kernel: KernelOp) -> Footprint:
    """What one block of a kernel takes."""
    carried = 0
    largest = 0
    for op in kernel.body.walk():
        if isinstance(op, ForOp):
            carried += sum(fragment_of(init).registers for init in op.inits)
        elif isinstance(op, MmaOp) and not isinstance(op.parent_op(), ForOp):
            carried += fragment_of(op.acc).registers
        types = [result.type for result in op.results]
        held = [type.registers for type in types if isinstance(type, FragmentType)]
        largest = max([largest, *held])
    return Footprint(shared_bytes(kernel), kernel.threads, max(carried, largest))


def check_limits(kernel: KernelOp, target: Target, op: Operation) -> Footprint:
    """The footprint of a kernel; CannotLower at `op` if the target does not have that much."""
    taken = footprint(kernel)
    limits = (
        ("shared memory of a block", taken.smem_bytes, target.max_shared_bytes_per_block, "bytes"),
        ("threads of a block", taken.threads, target.max_threads_per_block, "threads"),
        ("accumulators", taken.accumulator_registers, MAX_ACCUMULATORS, "registers per thread"),
    )
    for what, found, most, unit in limits:
        if found > most:
            raise CannotLower(
                f"{what}: {kernel.sym_name.data} takes {found} {unit}, {target.name} has {most}",
                op,
            )
    for axis, size, most in zip("xyz", kernel.grid, target.max_grid, strict=True):
        if size.data > most:
            raise CannotLower(
                f"grid: {size.data} blocks along {axis}, {target.name} allows {most}", op
            )
    return taken


def lowering_cost(
    candidate: func.FuncOp, sizes: Mapping[str, int], params: Mapping[str, int], target: Target
) -> Footprint:
    """
    What a candidate's kernels take for sizes of the workload and tuning parameters.

    Raises CannotLower if code generation cannot lower them or the target cannot run them.
    """
    taken = [
        check_limits(
            lower_graph(op, candidate.sym_name.data, sizes, params, target.name), target, op
        )
        for op in candidate.body.walk()
        if isinstance(op, GraphDefOp)
    ]
    if not taken:
        raise CannotLower("candidate without a kernel.graph_def", candidate)
    return Footprint(
        max(each.smem_bytes for each in taken),
        max(each.threads for each in taken),
        max(each.accumulator_registers for each in taken),
    )
