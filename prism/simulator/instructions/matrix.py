"""Tensor-core instructions: ldmatrix, stmatrix, movmatrix and mma.sync (PTX ISA 9.7.14)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.errors import DivergenceError
from prism.simulator.instructions.table import Opcode, Step, write
from prism.simulator.numerics import bf16_to_f32, f16_to_f32
from prism.simulator.sanitizer import WRITTEN
from prism.simulator.syntax import Instruction, Operand, Vector
from prism.simulator.types import TYPES, Array, ScalarType

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_B32 = TYPES["b32"]


def whole_warps(x: Machine, line: int, name: str) -> None:
    """Faults if only a part of a warp executes an `.aligned` instruction."""
    if x.exact is None:
        return
    lanes = x.full(x.exact).reshape(x.blocks, x.warps, 32)
    torn = lanes & ~lanes.all(axis=2, keepdims=True)
    if torn.any():
        lane = tuple(int(i) for i in np.argwhere(torn.reshape(x.shape))[0])
        x.fault(DivergenceError, line, f"{name} needs all 32 threads of the warp", lane)


def _vector(decoder: Decoder, operand: Operand, count: int) -> tuple[Operand, ...]:
    if isinstance(operand, Vector) and len(operand.items) == count:
        return operand.items
    if count == 1 and not isinstance(operand, Vector):
        return (operand,)
    raise decoder.error(f"expected a vector of {count} registers")


# -- ldmatrix and its like --------------------------------------------------------------------

_COUNTS = {"x1": 1, "x2": 2, "x4": 4}


def _matrix_shape(decoder: Decoder, instruction: Instruction) -> tuple[int, bool]:
    """Number of matrices and whether they are transposed."""
    words = list(instruction.modifiers)
    transposed = "trans" in words
    rest = [w for w in words if w not in _COUNTS and w != "trans"]
    counts = [w for w in words if w in _COUNTS]
    if rest not in (
        ["sync", "aligned", "m8n8", "shared", "b16"],
        ["sync", "aligned", "m8n8", "shared::cta", "b16"],
    ) or (len(counts) != 1 or words.count("trans") > 1):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    return _COUNTS[counts[0]], transposed


Use = Callable[["Machine", Array], None]


def _row_offsets(x: Machine, address: Array, shift: int, count: int, line: int, use: Use) -> Array:
    """
    Offsets of all rows, from the warps' first lanes: (blocks or 1, warps * count * 8).

    `use` is told of the access: offsets of all lanes, of which the addressing ones take part.
    """
    wide = np.broadcast_to(address, (address.shape[0], x.threads))
    exact = x.exact
    if count < 4:
        addressing = (np.arange(x.threads) % 32 < 8 * count)[None, :]
        x.exact = addressing if exact is None else addressing & exact
    try:
        offset = x.shared.offsets(x, wide, shift, 16, line)
        x.meter.shared(x, offset, 16)
        use(x, offset)
    finally:
        x.exact = exact
    rows = offset.reshape(len(offset), x.warps, 32)[:, :, : 8 * count]
    return rows.reshape(len(offset), -1)


def _ldmatrix(decoder: Decoder, instruction: Instruction) -> Step:
    """Row i of matrix j is at lane 8 j + i's address; lane l gets a pair of row l / 4."""
    count, transposed = _matrix_shape(decoder, instruction)
    decoder.expect_operands(instruction, 2)
    items = _vector(decoder, instruction.operands[0], count)
    targets = [decoder.destination(item, _B32) for item in items]
    slot, shift = decoder.address(instruction.operands[1], "shared")
    line = instruction.line

    def read(x: Machine, offset: Array) -> None:
        if x.shared_state is not None:
            x.shared_state.check_read(x, offset, 16, line)
        if x.races is not None:
            x.races.read(x, offset, 16, line)

    def load(r: list[Array], m: Array | None, x: Machine) -> None:
        whole_warps(x, line, "ldmatrix")
        offset = _row_offsets(x, r[slot], shift, count, line, read)
        view = x.shared.views[16]
        if offset.shape[0] == 1 and x.blocks > 1:
            data = view.reshape(x.blocks, -1).take(offset[0] >> 4, axis=1)
        else:
            data = view.take((offset + x.shared.row) >> 4)
        words = _to_words(data, x.warps, count, transposed=transposed)
        for j, d in enumerate(targets):
            write(r, m, d, words[:, :, j].reshape(len(words), -1))

    return load


def _to_words(data: Array, warps: int, count: int, *, transposed: bool) -> Array:
    """16-byte rows (rows, warps * count * 8) to registers (rows, warps, count, 32)."""
    rows = data.shape[0]
    if transposed:
        halves = data.view(np.uint16).reshape(rows, warps, count, 8, 8)
        halves = np.ascontiguousarray(halves.swapaxes(3, 4))
        return halves.view(np.uint32).reshape(rows, warps, count, 32)
    return data.view(np.uint32).reshape(rows, warps, count, 32)


def _stmatrix(decoder: Decoder, instruction: Instruction) -> Step:
    """The inverse of ldmatrix: lane l's register j goes to row l / 4 of matrix j."""
    count, transposed = _matrix_shape(decoder, instruction)
    decoder.expect_operands(instruction, 2)
    items = _vector(decoder, instruction.operands[1], count)
    sources = [decoder.source(item, _B32) for item in items]
    slot, shift = decoder.address(instruction.operands[0], "shared")
    line = instruction.line

    def mark(x: Machine, offset: Array) -> None:
        if x.shared_state is not None:
            x.shared_state.mark(x, offset, 16, WRITTEN, line)
        if x.races is not None:
            x.races.write(x, offset, 16, line)

    def keep(r: list[Array], m: Array | None, x: Machine) -> None:
        whole_warps(x, line, "stmatrix")
        offset = _row_offsets(x, r[slot], shift, count, line, mark)
        words = np.stack([x.full(r[s]).reshape(x.blocks, x.warps, 32) for s in sources], axis=2)
        halves = np.ascontiguousarray(words).view(np.uint16).reshape(*words.shape[:3], 8, 8)
        if transposed:
            halves = np.ascontiguousarray(halves.swapaxes(3, 4))
        data = halves.view(np.complex128).reshape(x.blocks, -1)
        slots, data, on = np.broadcast_arrays(
            (offset + x.shared.row) >> 4, data, _row_lanes(x, count)
        )
        x.shared.views[16][slots[on]] = data[on]

    return keep


def _row_lanes(x: Machine, count: int) -> Array:
    """Which rows belong to warps that take part, as (blocks, warps * count * 8)."""
    lanes = x.full(x.exact).reshape(x.blocks, x.warps, 32)[:, :, : 8 * count]
    return lanes.reshape(x.blocks, -1)


def _movmatrix(decoder: Decoder, instruction: Instruction) -> Step:
    """Transposes an 8 x 8 matrix of 16-bit elements that lies across a warp."""
    if instruction.modifiers != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 2)
    d = decoder.destination(instruction.operands[0], _B32)
    a = decoder.source(instruction.operands[1], _B32)
    line = instruction.line

    def move(r: list[Array], m: Array | None, x: Machine) -> None:
        whole_warps(x, line, "movmatrix")
        words = np.ascontiguousarray(np.broadcast_to(r[a], (r[a].shape[0], x.threads)))
        halves = words.view(np.uint16).reshape(-1, x.warps, 8, 8).swapaxes(2, 3)
        write(r, m, d, np.ascontiguousarray(halves).view(np.uint32).reshape(-1, x.threads))

    return move


# -- mma --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MmaShape:
    """
    A shape of mma.sync for 16-bit inputs.

    A fragment register holds two neighbouring elements along k; `a_registers` and `b_registers`
    count them. Register i of A: row group i % 2, k group i / 2; register i of B: k group i.
    """

    k: int
    a_registers: int
    b_registers: int


_SHAPES = {"m16n8k16": MmaShape(16, 4, 2), "m16n8k8": MmaShape(8, 2, 1)}
_UNPACK: dict[str, Callable[[Array], Array]] = {"f16": f16_to_f32, "bf16": bf16_to_f32}
_CACHED = 64
"""Fragments kept as matrices: one fragment meets many others in a loop body."""


def _mma(decoder: Decoder, instruction: Instruction) -> Step:
    """
    `mma.sync.aligned.shape.row.col.dtype.atype.btype.ctype d, a, b, c`.

    Products are exact in float32; the sum over k and c is in float32, in numpy's order.
    """
    words = instruction.modifiers
    if len(words) != 9 or words[:2] != ("sync", "aligned") or words[3:5] != ("row", "col"):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    shape = _SHAPES.get(words[2])
    d_type, a_type, b_type, c_type = words[5:]
    supported = (d_type, a_type, c_type) in (
        ("f32", "f16", "f32"),
        ("f16", "f16", "f16"),
        ("f32", "bf16", "f32"),
    )
    if shape is None or a_type != b_type or not supported:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 4)
    results = 4 if d_type == "f32" else 2
    accumulator = TYPES["f32"] if d_type == "f32" else _B32

    def registers(index: int, count: int, scalar: ScalarType) -> list[int]:
        items = _vector(decoder, instruction.operands[index], count)
        return [decoder.source(item, scalar) for item in items]

    items = _vector(decoder, instruction.operands[0], results)
    targets = [decoder.destination(item, accumulator) for item in items]
    a = registers(1, shape.a_registers, _B32)
    b = registers(2, shape.b_registers, _B32)
    c = registers(3, results, accumulator)
    unpack = _UNPACK[a_type]
    line = instruction.line
    finish = _add_f32 if d_type == "f32" else _add_f16

    def multiply(r: list[Array], m: Array | None, x: Machine) -> None:
        if x.exact is not None:
            whole_warps(x, line, "mma")
        left = _fragment(x, [r[s] for s in a], unpack, _a_matrix)
        right = _fragment(x, [r[s] for s in b], unpack, _b_matrix)
        product = np.matmul(left, right)
        for target, value in zip(targets, finish(x, product, [r[s] for s in c]), strict=True):
            write(r, m, target, value)

    return multiply


def _fragment(
    x: Machine,
    parts: list[Array],
    unpack: Callable[[Array], Array],
    arrange: Callable[[Array], Array],
) -> Array:
    """The matrices (blocks * warps, ...) of fragment registers; remembered while they live."""
    key = (*map(id, parts), id(arrange), id(unpack))
    known = x.fragments.get(key)
    if known is not None:
        return known[1]
    rows = max(part.shape[0] for part in parts)
    stacked = np.empty((rows, x.warps, len(parts), 32), np.uint32)
    for i, part in enumerate(parts):
        stacked[:, :, i] = np.broadcast_to(part, (rows, x.threads)).reshape(rows, x.warps, 32)
    matrices = arrange(unpack(stacked.view(np.uint16)))
    if rows != x.blocks:
        matrices = np.broadcast_to(matrices, (x.blocks, *matrices.shape[1:]))
    matrices = np.ascontiguousarray(matrices).reshape(-1, *matrices.shape[2:])
    if len(x.fragments) >= _CACHED:
        x.fragments.clear()
    # The registers are kept beside it, so that their ids stay theirs.
    x.fragments[key] = (tuple(parts), matrices)
    return matrices


def _a_matrix(values: Array) -> Array:
    """(rows, warps, registers, 32 lanes * 2) to (rows, warps, 16, k)."""
    rows, warps, count, _ = values.shape
    # Axes: k group, row group, row, k pair, element of the pair.
    split = values.reshape(rows, warps, count // 2, 2, 8, 4, 2)
    return split.transpose(0, 1, 3, 4, 2, 5, 6).reshape(rows, warps, 16, 4 * count)


def _b_matrix(values: Array) -> Array:
    """(rows, warps, registers, 32 lanes * 2) to (rows, warps, k, 8)."""
    rows, warps, count, _ = values.shape
    # Axes: k group, column, k pair, element of the pair.
    split = values.reshape(rows, warps, count, 8, 4, 2)
    return split.transpose(0, 1, 2, 4, 5, 3).reshape(rows, warps, 8 * count, 8)


def _add_f32(x: Machine, product: Array, c: list[Array]) -> list[Array]:
    """Register 2 i + h holds row group i, element h of a column pair."""
    split = product.reshape(x.blocks, x.warps, 2, 8, 4, 2)
    out: list[Array] = []
    for number, old in enumerate(c):
        part = split[:, :, number // 2, :, :, number % 2].reshape(x.blocks, x.threads)
        out.append((part + old.view(np.float32)).view(np.uint32))
    return out


def _add_f16(x: Machine, product: Array, c: list[Array]) -> list[Array]:
    """Register i holds row group i, both elements of a column pair; rounds once to float16."""
    split = product.reshape(x.blocks, x.warps, 2, 32, 2)
    out: list[Array] = []
    for number, old in enumerate(c):
        part = split[:, :, number].reshape(x.blocks, x.threads, 2)
        before = f16_to_f32(np.ascontiguousarray(old)[..., None].view(np.uint16))
        total = (part + before).astype(np.float16)
        out.append(np.ascontiguousarray(total).view(np.uint32)[..., 0])
    return out


def matrix_flops(instruction: Instruction) -> int:
    """Two for each multiply-add of a shape such as m16n8k16."""
    for word in instruction.modifiers:
        found = _SHAPE.fullmatch(word)
        if found is not None:
            return 2 * int(found[1]) * int(found[2]) * int(found[3])
    return 0


_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")

OPCODES: tuple[Opcode, ...] = (
    Opcode("ldmatrix", "ldmatrix", _ldmatrix, warp=True),
    Opcode("stmatrix", "stmatrix", _stmatrix, warp=True),
    Opcode("movmatrix", "movmatrix", _movmatrix, warp=True),
    Opcode("mma", "mma", _mma, warp=True, flops=matrix_flops),
)
