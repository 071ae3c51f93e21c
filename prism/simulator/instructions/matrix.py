"""Moving matrices of 8 x 8: ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.errors import DivergenceError
from prism.simulator.instructions.table import Opcode, Step, write
from prism.simulator.sanitizer import WRITTEN
from prism.simulator.syntax import Instruction, Operand, Vector
from prism.simulator.types import TYPES, Array

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_B32 = TYPES["b32"]

SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
"""The shape of a matrix multiplication."""


def whole_warps(x: Machine, line: int, name: str) -> None:
    """Faults if only a part of a warp executes an `.aligned` instruction."""
    if x.exact is None:
        return
    lanes = x.full(x.exact).reshape(x.blocks, x.warps, 32)
    torn = lanes & ~lanes.all(axis=2, keepdims=True)
    if torn.any():
        lane = tuple(int(i) for i in np.argwhere(torn.reshape(x.shape))[0])
        x.fault(DivergenceError, line, f"{name} needs all 32 threads of the warp", lane)


def vector(decoder: Decoder, operand: Operand, count: int) -> tuple[Operand, ...]:
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
    items = vector(decoder, instruction.operands[0], count)
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
    items = vector(decoder, instruction.operands[1], count)
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


def matrix_flops(instruction: Instruction) -> int:
    """Two for each multiply-add of a shape such as m16n8k16."""
    for word in instruction.modifiers:
        found = SHAPE.fullmatch(word)
        if found is not None:
            return 2 * int(found[1]) * int(found[2]) * int(found[3])
    return 0


OPCODES: tuple[Opcode, ...] = (
    Opcode("ldmatrix", "ldmatrix", _ldmatrix, warp=True),
    Opcode("stmatrix", "stmatrix", _stmatrix, warp=True),
    Opcode("movmatrix", "movmatrix", _movmatrix, warp=True),
)
