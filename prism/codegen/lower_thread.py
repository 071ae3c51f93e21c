"""Lowers a `thread.kernel` to a `cuda.kernel`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from prism.codegen.block_state import BlockState
from prism.codegen.elementwise import lower_map, lower_reduce, lower_spill, lower_sum_lanes
from prism.codegen.emitter import Emitter
from prism.codegen.errors import CannotLower
from prism.codegen.global_memory import lower_copy, lower_store
from prism.codegen.products import lower_mma, lower_sum_warps
from prism.codegen.scalar_math import unknown_scalar
from prism.dialects.cuda import KernelOp as CudaKernelOp
from prism.dialects.cuda import ReturnOp as CudaReturnOp
from prism.dialects.cuda_kernel_ops import launch_properties
from prism.dialects.cuda_types import GLOBAL
from prism.dialects.sym import GRID_AXES
from prism.dialects.thread import (
    AllocOp,
    BarrierOp,
    CommitOp,
    CopyOp,
    ForOp,
    KernelOp,
    MapOp,
    MmaOp,
    ReduceOp,
    ReturnOp,
    SpillOp,
    StoreOp,
    SumLanesOp,
    SumWarpsOp,
    WaitOp,
    YieldOp,
    ZeroOp,
)
from prism.dialects.thread_ops import fragment_of, shared_of
from prism.dialects.thread_types import SharedType

TILE_ALIGNMENT = 16
"""Alignment of shared tiles in bytes: that of the widest access."""


def shared_bytes(kernel: KernelOp) -> int:
    """The bytes of shared memory that a kernel's tiles take together."""
    tiles = [shared_of(op.result) for op in kernel.body.walk() if isinstance(op, AllocOp)]
    return sum(_aligned_bytes(tile) * tile.stages.data for tile in tiles)


def _aligned_bytes(tile: SharedType) -> int:
    """The bytes of one stage of a tile with what aligns the next tile."""
    return -(-tile.bytes // TILE_ALIGNMENT) * TILE_ALIGNMENT


def lower_kernel(kernel: KernelOp, ptx_version: str) -> CudaKernelOp:
    """
    The SIMT code of a kernel, for the PTX version of its target.

    Raises CannotLower if a map's body holds an op that no rule of `scalar_math` knows.
    """
    block = Block(arg_types=[GLOBAL] * len(kernel.body.block.args))
    for argument, source in zip(block.args, kernel.body.block.args, strict=True):
        argument.name_hint = source.name_hint
    _Lowering(kernel, block).run()
    grid = [size.data for size in kernel.grid]
    properties = launch_properties(
        kernel.sym_name.data,
        grid,
        kernel.threads,
        shared_bytes(kernel),
        kernel.target.data,
        ptx_version,
    )
    return CudaKernelOp(properties, Region(block))


class _Lowering:
    def __init__(self, kernel: KernelOp, block: Block) -> None:
        self._kernel = kernel
        self._block = block
        self._state = BlockState(Emitter(block), kernel.threads)
        # tiles with stages come first: stage by stage, all tiles of a stage side by side
        allocs = [op for op in kernel.body.walk() if isinstance(op, AllocOp)]
        staged = [op for op in allocs if shared_of(op.result).stages.data > 1]
        self._state.stage_bytes = sum(_aligned_bytes(shared_of(op.result)) for op in staged)
        self._stages = max((shared_of(op.result).stages.data for op in staged), default=1)
        self._shared = self._state.stage_bytes * self._stages
        self._staged = 0
        state = self._state
        self._rules: dict[type[Operation], Callable[[Operation], None]] = {
            AllocOp: self._alloc,
            ZeroOp: self._zero,
            ForOp: self._for,
            BarrierOp: lambda _: state.emitter.barrier(),
            CommitOp: lambda _: state.emitter.commit(),
            WaitOp: self._wait,
        }

    def run(self) -> None:
        """Emits the body."""
        state = self._state
        sizes = [size.data for size in self._kernel.grid]
        for axis, size in zip(GRID_AXES, sizes, strict=True):
            state.counts[axis] = size
            state.axes[axis] = (
                state.emitter.op(f"ctaid.{axis}") if size > 1 else state.emitter.constant(0)
            )
        # copies before a pipelined loop already depend on its count
        for op in self._kernel.body.walk():
            if isinstance(op, ForOp):
                state.counts[op.axis.data] = op.count.data
        for argument, source in zip(self._block.args, self._kernel.body.block.args, strict=True):
            state.pointers[source] = argument
        for op in self._kernel.body.block.ops:
            if not isinstance(op, ReturnOp):
                self._lower(op)
        self._block.add_op(CudaReturnOp())

    def _lower(self, op: Operation) -> None:
        state = self._state
        match op:
            case CopyOp():
                lower_copy(state, op)
            case StoreOp():
                lower_store(state, op)
            case MmaOp():
                lower_mma(state, op)
            case SumWarpsOp():
                lower_sum_warps(state, op)
            case SumLanesOp():
                lower_sum_lanes(state, op)
            case SpillOp():
                lower_spill(state, op)
            case MapOp():
                self._check_scalars(op)
                lower_map(state, op)
            case ReduceOp():
                self._check_scalars(op)
                lower_reduce(state, op)
            case _:
                self._rules[type(op)](op)

    def _check_scalars(self, op: MapOp | ReduceOp) -> None:
        unknown = unknown_scalar(op.body.block)
        if unknown is not None:
            raise CannotLower(f"no PTX for {unknown.name} in the body of {op.name}", op)

    def _alloc(self, op: Operation) -> None:
        assert isinstance(op, AllocOp)
        tile = shared_of(op.result)
        if tile.stages.data > 1:
            self._state.tiles[op.result] = self._staged
            self._staged += _aligned_bytes(tile)
        else:
            self._state.tiles[op.result] = self._shared
            self._shared += _aligned_bytes(tile)

    def _wait(self, op: Operation) -> None:
        assert isinstance(op, WaitOp)
        self._state.emitter.wait(op.pending.data)

    def _zero(self, op: Operation) -> None:
        assert isinstance(op, ZeroOp)
        zero = self._state.emitter.f32(0.0)
        self._state.fragments[op.result] = (zero,) * fragment_of(op.result).registers

    def _for(self, op: Operation) -> None:
        assert isinstance(op, ForOp)
        state = self._state
        inits: list[SSAValue] = []
        for init in op.inits:
            inits += state.fragments[init]

        def split(targets: Sequence[SSAValue], registers: Sequence[SSAValue]) -> None:
            position = 0
            for target in targets:
                count = fragment_of(target).registers
                state.fragments[target] = tuple(registers[position : position + count])
                position += count

        e = state.emitter
        ring = state.stage_bytes * self._stages
        staged = any(isinstance(inner, CopyOp) and inner.ahead for inner in op.body.block.ops)
        if staged:
            # the stage of an index and the one before it, which is the one to fill next
            inits += [e.constant(0), e.constant(ring - state.stage_bytes)]

        def body(index: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            state.axes[op.axis.data] = index
            later: list[SSAValue] = []
            if staged:
                *carried, stage, free = carried
                state.stage, state.free_stage = stage, free
                further = e.add(stage, state.stage_bytes)
                wraps = e.op("setp.eq.s32", further, e.constant(ring))
                later = [e.op("selp.b32", e.constant(0), further, wraps), stage]
            split(op.body.block.args, carried)
            for inner in op.body.block.ops:
                if isinstance(inner, YieldOp):
                    values = [r for value in inner.operands for r in state.fragments[value]]
                    return [*values, *later]
                self._lower(inner)
            return later

        split(op.outs, e.loop(op.count.data, inits, body))
        del state.axes[op.axis.data]
