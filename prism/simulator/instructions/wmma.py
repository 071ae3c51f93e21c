"""
Warp matrices: wmma.load, wmma.mma, wmma.store (PTX ISA 9.7.14.4).

Which element a lane holds where is not specified. Here lane l holds the l-th run of neighbours of
the matrix in its own order (by rows, or by columns for a `.col` matrix a or b); float16 fragments
have twice the registers that this takes, the second half repeats the first. Accumulators are held
by rows whatever the layout in memory is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.access import AccessPlan, load, store
from prism.simulator.instructions.matrix import matrix_flops, vector, whole_warps
from prism.simulator.instructions.mma import (
    ADD,
    ELEMENTS,
    Arrange,
    accumulator_type,
    fragment,
    mixable,
    shape_of,
)
from prism.simulator.instructions.table import Opcode, Step, write
from prism.simulator.syntax import Instruction, Operand
from prism.simulator.types import TYPES, Array, ScalarType

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_WIDE = ("m16n16k16", "m8n32k16", "m32n8k16")
SHAPES: dict[str, tuple[str, ...]] = {
    "f16": _WIDE,
    "bf16": _WIDE,
    "s8": _WIDE,
    "u8": _WIDE,
    "tf32": ("m16n16k8",),
    "s4": ("m8n8k32",),
    "u4": ("m8n8k32",),
    "f64": ("m8n8k4",),
}
"""Shapes by the type of a and b."""

_SPACES = {"global": "global", "shared": "shared", "shared::cta": "shared"}


@dataclass(frozen=True)
class Matrix:
    """
    One matrix of a warp in registers and in memory.

    `rows` x `columns` elements of `bits` bits; `by_rows` says how memory orders them; `registers`
    of type `held` per lane.
    """

    rows: int
    columns: int
    bits: int
    by_rows: bool
    registers: int
    held: ScalarType

    @property
    def run(self) -> int:
        """Elements of a lane."""
        return self.rows * self.columns // 32


def _operand(which: str, shape: str, name: str, *, by_rows: bool) -> Matrix:
    rows, columns, depth = shape_of(shape)
    if which in "ab":
        elements = ELEMENTS[name]
        size = (rows, depth) if which == "a" else (depth, columns)
        bits = elements.register.bits // elements.per_register
        registers = size[0] * size[1] // (32 * elements.per_register)
        # Each element of a float16 matrix is held twice.
        registers *= 2 if name == "f16" else 1
        return Matrix(*size, bits, by_rows, registers, elements.register)
    bits = TYPES[name].bits
    registers = rows * columns * bits // (32 * max(bits, 32))
    return Matrix(rows, columns, bits, by_rows, registers, accumulator_type(name))


def _memory(decoder: Decoder, instruction: Instruction) -> tuple[Matrix, str]:
    """The matrix of a load or store `wmma.*.{a,b,c,d}.sync.aligned.layout.shape{.space}.type`."""
    words = list(instruction.modifiers)
    space = next((_SPACES[w] for w in words if w in _SPACES), "")
    words = [w for w in words if w not in _SPACES]
    _, which, *rest = (*words, "", "", "", "", "", "")[:7]
    layout, shape, name = rest[2:5]
    ok = len(words) == 7 and rest[:2] == ["sync", "aligned"] and layout in ("row", "col")
    if which in ("a", "b"):
        ok = ok and shape in SHAPES.get(name, ())
    else:
        ok = ok and any(
            name in ELEMENTS[kind].accumulators and shape in shapes
            for kind, shapes in SHAPES.items()
        )
    # A fragment of 4-bit elements has one layout only.
    if not ok or (name in ("s4", "u4") and (which == "a") != (layout == "row")):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    return _operand(which, shape, name, by_rows=layout == "row"), space


@dataclass(frozen=True)
class _Move:
    """
    How a fragment moves: accesses of `plan` at `steps` of lane-dependent element offsets.

    `major`, `minor`: per access and lane, the element's index across and along memory's order.
    """

    plan: AccessPlan
    major: tuple[Array, ...]
    minor: tuple[Array, ...]
    bits: int

    def addresses(self, base: Array, stride: Array) -> list[Array]:
        wide = base.astype(np.uint64)
        step = stride.astype(np.uint64)
        return [
            wide + ((major * step + minor) * np.uint64(self.bits) >> np.uint64(3))
            for major, minor in zip(self.major, self.minor, strict=True)
        ]


def _move(matrix: Matrix, accumulator: bool, space: str, line: int, warps: int) -> _Move:
    lane = np.arange(32 * warps, dtype=np.uint64)[None, :] % np.uint64(32)
    # Accumulators are kept by rows: by columns, neighbours of a lane are apart in memory.
    together = matrix.by_rows or not accumulator
    inner = np.uint64(matrix.columns if matrix.by_rows or accumulator else matrix.rows)
    size = matrix.run * matrix.bits // 8 if together else matrix.bits // 8
    width = min(size, 16)
    count = width * 8 // matrix.bits
    element = max(matrix.bits, 8) if width >= 4 else 8 * width
    scalar = TYPES[f"b{min(max(element, 32), 8 * width)}"] if together else TYPES[f"b{element}"]
    plan = AccessPlan(space, scalar, width // scalar.bytes, line)
    major: list[Array] = []
    minor: list[Array] = []
    for start in range(0, matrix.run, count):
        index = lane * np.uint64(matrix.run) + np.uint64(start)
        outer, within = index // inner, index % inner
        major.append(outer if together else within)
        minor.append(within if together else outer)
    return _Move(plan, tuple(major), tuple(minor), matrix.bits)


def _build_move(decoder: Decoder, instruction: Instruction) -> Step:
    """`wmma.load.X r, [p]{, stride}`, `wmma.store.d [p], r{, stride}`; stride in elements."""
    loads = instruction.modifiers[:1] == ("load",)
    which = (*instruction.modifiers, "", "")[1]
    if which not in (("a", "b", "c") if loads else ("d",)):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    matrix, space = _memory(decoder, instruction)
    decoder.expect_operands(instruction, 2, 3)
    operands = list(instruction.operands)
    address = operands.pop(1 if loads else 0)
    items = vector(decoder, operands.pop(0), matrix.registers)
    along = matrix.columns if matrix.by_rows else matrix.rows
    if operands:
        stride = decoder.source(operands[0], TYPES["u32"])
    else:
        stride = decoder.slots.constant(along, 32)
    slot, shift = decoder.address(address, space)
    line = instruction.line
    accumulator = which in ("c", "d")
    moves: dict[int, _Move] = {}

    def move_of(x: Machine) -> _Move:
        if x.warps not in moves:
            moves[x.warps] = _move(matrix, accumulator, space, line, x.warps)
        return moves[x.warps]

    if loads:
        targets = [decoder.destination(item, matrix.held) for item in items]

        def fetch(r: list[Array], m: Array | None, x: Machine) -> None:
            whole_warps(x, line, "wmma")
            move = move_of(x)
            parts: list[Array] = []
            for place in move.addresses(r[slot], r[stride]):
                parts += load(x, move.plan, place, shift)
            words = _repack(x, parts, matrix.held)
            for i, d in enumerate(targets):
                write(r, m, d, words[i % len(words)])

        return fetch
    sources = [decoder.source(item, matrix.held) for item in items]

    def keep(r: list[Array], m: Array | None, x: Machine) -> None:
        whole_warps(x, line, "wmma")
        move = move_of(x)
        parts = _repack(x, [r[s] for s in sources], move.plan.type)
        for i, place in enumerate(move.addresses(r[slot], r[stride])):
            count = move.plan.count
            store(x, move.plan, place, shift, parts[i * count : (i + 1) * count])

    return keep


def _repack(x: Machine, parts: list[Array], to: ScalarType) -> list[Array]:
    """The same bits, lane by lane, as values of another width."""
    bits = np.dtype(f"u{to.bytes}")
    if parts[0].dtype == bits:
        return parts
    wide = np.stack([np.broadcast_to(part, x.shape) for part in parts], axis=-1)
    return list(np.ascontiguousarray(np.moveaxis(wide.view(bits), -1, 0)))


@cache
def _arranged(rows: int, columns: int, *, by_rows: bool) -> Arrange:
    """(r, warps, registers, 32 lanes * packed) to (r, warps, rows, columns)."""

    def arrange(values: Array) -> Array:
        first, warps, count, _ = values.shape
        lanes = values.reshape(first, warps, count, 32, -1).swapaxes(2, 3)
        runs = lanes.reshape(first, warps, 32, -1)[..., : rows * columns // 32]
        if by_rows:
            return runs.reshape(first, warps, rows, columns)
        return runs.reshape(first, warps, columns, rows).swapaxes(2, 3)

    return arrange


_ROUNDINGS = ("rn", "rz", "rm", "rp")


def _build_mma(decoder: Decoder, instruction: Instruction) -> Step:
    """`wmma.mma.sync.aligned.alayout.blayout.shape{.satfinite}.types d, a, b, c`."""
    words = [w for w in instruction.modifiers if w not in ("satfinite", "rn")]
    saturate = "satfinite" in instruction.modifiers
    ok = len(words) in (8, 10) and words[1:3] == ["sync", "aligned"]
    ok = ok and all(word in ("row", "col") for word in words[3:5])
    types = words[6:] if len(words) == 10 else [*words[6:7], "f16", "f16", *words[7:]]
    d_type, a_type, b_type, c_type = (*types, "", "", "", "")[:4]
    shape = (*words, "", "", "", "", "", "")[5]
    ok = ok and mixable(a_type, b_type) and shape in SHAPES.get(a_type, ())
    accumulators = ELEMENTS[a_type].accumulators if a_type in ELEMENTS else ()
    ok = ok and d_type in accumulators and c_type in accumulators
    # The float16 form may mix its accumulators; only equal ones are known here.
    if not ok or d_type != c_type or (saturate and d_type != "s32"):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 4)
    a_matrix = _operand("a", shape, a_type, by_rows=words[3] == "row")
    b_matrix = _operand("b", shape, b_type, by_rows=words[4] == "row")
    d_matrix = _operand("d", shape, d_type, by_rows=True)

    def sources(operand: Operand, matrix: Matrix) -> list[int]:
        items = vector(decoder, operand, matrix.registers)
        return [decoder.source(item, matrix.held) for item in items]

    operands = instruction.operands
    items = vector(decoder, operands[0], d_matrix.registers)
    targets = [decoder.destination(item, d_matrix.held) for item in items]
    a, b = sources(operands[1], a_matrix), sources(operands[2], b_matrix)
    c = sources(operands[3], replace(d_matrix))
    arrange_a = _arranged(a_matrix.rows, a_matrix.columns, by_rows=a_matrix.by_rows)
    arrange_b = _arranged(b_matrix.rows, b_matrix.columns, by_rows=b_matrix.by_rows)
    unpack_a, unpack_b = ELEMENTS[a_type].unpack, ELEMENTS[b_type].unpack
    add, line = ADD[d_type], instruction.line

    def multiply(r: list[Array], m: Array | None, x: Machine) -> None:
        whole_warps(x, line, "wmma")
        left = fragment(x, [r[s] for s in a], unpack_a, arrange_a)
        right = fragment(x, [r[s] for s in b], unpack_b, arrange_b)
        product = np.matmul(left, right).reshape(x.blocks, x.warps, 1, 32, d_matrix.run)
        for target, value in zip(
            targets, add(x, product, [r[s] for s in c], saturate), strict=True
        ):
            write(r, m, target, value)

    return multiply


def _wmma(decoder: Decoder, instruction: Instruction) -> Step:
    builders: dict[str, Callable[[Decoder, Instruction], Step]] = {
        "load": _build_move,
        "store": _build_move,
        "mma": _build_mma,
    }
    builder = builders.get((*instruction.modifiers, "")[0])
    if builder is None:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    return builder(decoder, instruction)


def _kind(instruction: Instruction) -> str:
    return {"load": "wmma.load", "store": "wmma.store"}.get(instruction.modifiers[0], "mma")


def _flops(instruction: Instruction) -> int:
    return matrix_flops(instruction) if instruction.modifiers[0] == "mma" else 0


OPCODES: tuple[Opcode, ...] = (Opcode("wmma", _kind, _wmma, warp=True, flops=_flops),)
