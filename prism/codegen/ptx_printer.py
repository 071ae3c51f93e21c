"""Prints a `cuda.kernel` as PTX text, each op its own lines."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO

from xdsl.dialects.builtin import FloatAttr, f32, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.printer import Printer

from prism.codegen.ptx_registers import Registers, coalesce_carried
from prism.dialects.cuda import (
    BarrierOp,
    CommitOp,
    ConstantOp,
    CopyAsyncOp,
    ForOp,
    IfOp,
    KernelOp,
    LdMatrixOp,
    LoadOp,
    MmaOp,
    ReturnOp,
    ShuffleOp,
    StoreOp,
    WaitOp,
    YieldOp,
)
from prism.dialects.cuda_register_ops import InstructionOp
from prism.dialects.cuda_types import MEMORY_TYPE, REGISTER_CLASS, PtrType

SHARED_ALIGNMENT = 128
"""Alignment of a kernel's shared memory in bytes: one row of banks."""


@dataclass(frozen=True, slots=True)
class PrintedPtx:
    """PTX text, and per line the `cuda` op that printed it ("" for a blank line)."""

    text: str
    origins: list[str]


def print_kernel(kernel: KernelOp) -> PrintedPtx:
    """
    The PTX module of one kernel; its shared memory is declared static up to 48 KiB, else dynamic.
    """
    return _KernelPrinter(kernel).print()


def _float_literal(value: float) -> str:
    """An f32 literal with all its bits (PTX ISA 4.5.2)."""
    return f"0f{struct.unpack('>I', struct.pack('>f', value))[0]:08X}"


class _KernelPrinter:
    def __init__(self, kernel: KernelOp) -> None:
        self._kernel = kernel
        self._name = kernel.sym_name.data
        self._registers = Registers()
        self._lines: list[str] = []
        self._origins: list[str] = []
        self._origin = ""
        self._labels = 0
        self._op_text = StringIO()
        self._op_printer = Printer(self._op_text)
        self._printers: dict[type[Operation], Callable[[Operation], None]] = {
            ConstantOp: self._constant,
            LoadOp: self._load,
            StoreOp: self._store,
            LdMatrixOp: self._ldmatrix,
            MmaOp: self._mma,
            ShuffleOp: self._shuffle,
            BarrierOp: lambda _: self._emit("bar.sync 0;"),
            CopyAsyncOp: self._copy_async,
            CommitOp: lambda _: self._emit("cp.async.commit_group;"),
            WaitOp: self._wait,
            ForOp: self._for,
            IfOp: self._if,
            ReturnOp: lambda _: self._emit("ret;"),
        }

    def print(self) -> PrintedPtx:
        """The kernel's PTX; the body first, since it says which registers to declare."""
        kernel_origin = f"cuda.kernel @{self._name}"
        self._origin = kernel_origin
        for argument in self._kernel.body.block.args:
            register = self._registers.of(argument)
            self._emit(f"ld.param.u64 {register}, [{self._parameter(argument.index)}];")
            self._emit(f"cvta.to.global.u64 {register}, {register};")
        self._block(self._kernel.body.block)
        header = self._header()
        lines = [*header, *self._lines, "}"]
        origins = [*(kernel_origin for _ in header), *self._origins, kernel_origin]
        return PrintedPtx("".join(f"{line}\n" for line in lines), origins)

    def _parameter(self, index: int) -> str:
        return f"{self._name}_param_{index}"

    @property
    def _shared_name(self) -> str:
        return f"{self._name}_shared"

    def _header(self) -> list[str]:
        kernel = self._kernel
        shared = f".shared .align {SHARED_ALIGNMENT} .b8 {self._shared_name}"
        parameters = [
            f"  .param .u64 .ptr .global .align 16 {self._parameter(argument.index)}"
            for argument in kernel.body.block.args
        ]
        return [
            f".version {kernel.ptx_version.data}",
            f".target {kernel.target.data}",
            ".address_size 64",
            *([f".extern {shared}[];"] if kernel.dynamic_shared else []),
            f".visible .entry {self._name}(",
            *(f"{line}," for line in parameters[:-1]),
            *parameters[-1:],
            ")",
            f".reqntid {kernel.block.data}, 1, 1",
            "{",
            *(f"  {line}" for line in self._registers.declarations()),
            *([f"  {shared}[{kernel.static_shared}];"] if kernel.static_shared else []),
        ]

    def _emit(self, line: str, *, indent: str = "  ") -> None:
        self._lines.append(f"{indent}{line}")
        self._origins.append(self._origin)

    def _regs(self, values: Sequence[SSAValue]) -> str:
        """One register, or a vector in braces."""
        names = [self._registers.of(value) for value in values]
        return names[0] if len(names) == 1 else f"{{{', '.join(names)}}}"

    def _block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, YieldOp):
                continue
            self._origin = self._text_of(op)
            if isinstance(op, InstructionOp):
                self._instruction(op)
            else:
                self._printers[type(op)](op)

    def _text_of(self, op: Operation) -> str:
        """The op as it prints in IR, without its body."""
        self._op_text.seek(0)
        self._op_text.truncate()
        if isinstance(op, ForOp | IfOp):
            if op.results:
                self._op_printer.print_list(op.results, self._op_printer.print_ssa_value)
                self._op_printer.print_string(" = ")
            self._op_printer.print_string(op.name)
            op.print_header(self._op_printer)
        else:
            self._op_printer.print_op(op)
        return self._op_text.getvalue().strip()

    def _instruction(self, op: InstructionOp) -> None:
        names = {f"r{index}": self._registers.of(value) for index, value in enumerate(op.outs)}
        names |= {f"a{index}": self._registers.of(value) for index, value in enumerate(op.inputs)}
        self._emit(op.entry().template.format(smem=self._shared_name, **names))

    def _constant(self, op: Operation) -> None:
        assert isinstance(op, ConstantOp)
        value = op.value
        literal = (
            _float_literal(value.value.data)
            if isinstance(value, FloatAttr)
            else str(value.value.data)
        )
        self._move(self._registers.of(op.result), literal, op.result)

    def _move(self, target: str, source: str, like: SSAValue) -> None:
        """Copies a register or literal, typed as `like`."""
        if target != source:
            self._emit(f"mov.{REGISTER_CLASS[like.type][1]} {target}, {source};")

    def _guard(self, predicate: SSAValue | None) -> str:
        return "" if predicate is None else f"@{self._registers.of(predicate)} "

    @staticmethod
    def _access(name: str, pointer: SSAValue, values: Sequence[SSAValue]) -> str:
        """`ld.global.v4.b32`, from the pointer's space and the registers."""
        assert isinstance(pointer.type, PtrType)
        vector = "" if len(values) == 1 else f".v{len(values)}"
        return f"{name}.{pointer.type.space.data}{vector}.{MEMORY_TYPE[values[0].type]}"

    def _address(self, pointer: SSAValue, offset: int) -> str:
        suffix = f"+{offset}" if offset > 0 else str(offset) if offset else ""
        return f"[{self._registers.of(pointer)}{suffix}]"

    def _load(self, op: Operation) -> None:
        assert isinstance(op, LoadOp)
        if op.predicate is not None:
            zero = _float_literal(0.0) if op.outs[0].type == f32 else "0"
            for value in op.outs:
                self._move(self._registers.of(value), zero, value)
        access = self._access("ld", op.pointer, op.outs)
        address = self._address(op.pointer, op.offset.data)
        self._emit(f"{self._guard(op.predicate)}{access} {self._regs(op.outs)}, {address};")

    def _store(self, op: Operation) -> None:
        assert isinstance(op, StoreOp)
        access = self._access("st", op.pointer, op.values)
        address = self._address(op.pointer, op.offset.data)
        self._emit(f"{self._guard(op.predicate)}{access} {address}, {self._regs(op.values)};")

    def _copy_async(self, op: Operation) -> None:
        assert isinstance(op, CopyAsyncOp)
        # only copies of 16 bytes can bypass L1, which a tile read once does not need
        cache = "cg" if op.bytes.data == 16 else "ca"
        size = "" if op.size is None else f", {self._registers.of(op.size)}"
        self._emit(
            f"{self._guard(op.predicate)}cp.async.{cache}.shared.global "
            f"{self._address(op.target, op.target_offset.data)}, "
            f"{self._address(op.source, op.source_offset.data)}, {op.bytes.data}{size};"
        )

    def _wait(self, op: Operation) -> None:
        assert isinstance(op, WaitOp)
        self._emit(f"cp.async.wait_group {op.pending.data};")

    def _ldmatrix(self, op: Operation) -> None:
        assert isinstance(op, LdMatrixOp)
        names = [self._registers.of(value) for value in op.outs]
        trans = ".trans" if op.trans is not None else ""
        self._emit(
            f"ldmatrix.sync.aligned.m8n8.x{len(names)}{trans}.shared.b16 "
            f"{{{', '.join(names)}}}, {self._address(op.pointer, op.offset.data)};"
        )

    def _mma(self, op: Operation) -> None:
        assert isinstance(op, MmaOp)
        registers = ", ".join(self._regs(values) for values in (op.d, op.a, op.b, op.c))
        element = "f16" if op.bf16 is None else "bf16"
        self._emit(f"mma.sync.aligned.m16n8k16.row.col.f32.{element}.{element}.f32 {registers};")

    def _shuffle(self, op: Operation) -> None:
        assert isinstance(op, ShuffleOp)
        result, value = self._registers.of(op.result), self._registers.of(op.value)
        self._emit(f"shfl.sync.bfly.b32 {result}, {value}, {op.mask.data}, 31, 0xffffffff;")

    def _for(self, op: Operation) -> None:
        assert isinstance(op, ForOp)
        counter, *carried = op.body.block.args
        for init, argument, result in zip(op.inits, carried, op.outs, strict=True):
            self._registers.share(argument, self._registers.of(result))
            self._move(self._registers.of(argument), self._registers.of(init), init)
        coalesce_carried(op, self._registers)
        step = self._registers.of(counter)
        self._emit(f"mov.b32 {step}, {op.start.data};")
        label = self._label("for")
        self._emit(f"{label}:", indent="")
        origin = self._origin
        self._block(op.body.block)
        yielded = op.body.block.last_op
        assert isinstance(yielded, YieldOp)
        self._origin = origin
        self._carry(carried, yielded.operands)
        again = self._registers.fresh(i1)
        self._emit(f"add.s32 {step}, {step}, {op.step.data};")
        self._emit(f"setp.lt.s32 {again}, {step}, {op.stop.data};")
        self._emit(f"@{again} bra {label};")

    def _carry(self, carried: Sequence[SSAValue], yielded: Sequence[SSAValue]) -> None:
        """
        Moves the yielded values to the carried registers, all at once as far as anyone can see.
        """
        moves = [
            (self._registers.of(target), self._registers.of(source), source)
            for target, source in zip(carried, yielded, strict=True)
        ]
        moves = [move for move in moves if move[0] != move[1]]
        written = {target for target, _, _ in moves}
        staged: list[tuple[str, str, SSAValue]] = []
        for target, source, value in moves:
            if source in written:
                temporary = self._registers.fresh(value.type)
                self._move(temporary, source, value)
                staged.append((target, temporary, value))
            else:
                staged.append((target, source, value))
        for target, source, value in staged:
            self._move(target, source, value)

    def _if(self, op: Operation) -> None:
        assert isinstance(op, IfOp)
        label, origin = self._label("endif"), self._origin
        self._emit(f"@!{self._registers.of(op.condition)} bra {label};")
        self._block(op.body.block)
        self._origin = origin
        self._emit(f"{label}:", indent="")

    def _label(self, kind: str) -> str:
        self._labels += 1
        return f"{kind}_{self._labels}"
