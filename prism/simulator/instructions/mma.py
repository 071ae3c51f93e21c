"""
Matrix multiply-add on register fragments: mma.sync (PTX ISA 9.7.14.5).

Products are exact in float32 (float64 for .f64); the sum over k and c is in that type, in numpy's
order, where the hardware's is not specified. Integers are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.instructions.matrix import SHAPE, matrix_flops, vector, whole_warps
from prism.simulator.instructions.table import Opcode, Step, write
from prism.simulator.numerics import bf16_to_f32, f16_to_f32
from prism.simulator.syntax import Instruction
from prism.simulator.types import TYPES, Array, ScalarType

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

CACHED = 64
"""Fragments kept as matrices: one fragment meets many others in a loop body."""


def _tf32(words: Array) -> Array:
    # The hardware looks at the upper 19 bits only.
    return (words & np.uint32(0xFFFFE000)).view(np.float32)


def _nibbles(words: Array) -> Array:
    pairs = words.view(np.uint8)
    return np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(*pairs.shape[:-1], -1)


@dataclass(frozen=True)
class Elements:
    """
    Elements of a matrix in registers: how many in one, and how a last axis of registers unpacks.

    `accumulators`: the types that c and d may have; `shapes`: those of mma.sync.
    """

    per_register: int
    register: ScalarType
    unpack: Callable[[Array], Array]
    accumulators: tuple[str, ...]
    shapes: tuple[str, ...]


_B32, _F64 = TYPES["b32"], TYPES["f64"]
_OF_16, _OF_8 = ("m16n8k8", "m16n8k16"), ("m8n8k16", "m16n8k16", "m16n8k32")
_OF_4 = ("m8n8k32", "m16n8k32", "m16n8k64")

ELEMENTS: dict[str, Elements] = {
    "f16": Elements(2, _B32, lambda w: f16_to_f32(w.view(np.uint16)), ("f32", "f16"), _OF_16),
    "bf16": Elements(2, _B32, lambda w: bf16_to_f32(w.view(np.uint16)), ("f32",), _OF_16),
    "tf32": Elements(1, _B32, _tf32, ("f32",), ("m16n8k4", "m16n8k8")),
    "s8": Elements(4, _B32, lambda w: w.view(np.int8).astype(np.float32), ("s32",), _OF_8),
    "u8": Elements(4, _B32, lambda w: w.view(np.uint8).astype(np.float32), ("s32",), _OF_8),
    "s4": Elements(
        8, _B32, lambda w: (_nibbles(w) ^ 8).astype(np.float32) - np.float32(8), ("s32",), _OF_4
    ),
    "u4": Elements(8, _B32, lambda w: _nibbles(w).astype(np.float32), ("s32",), _OF_4),
    "f64": Elements(
        1,
        _F64,
        lambda w: w.view(np.float64),
        ("f64",),
        ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
    ),
}
"""Element types of matrices a and b."""


def mixable(a: str, b: str) -> bool:
    """Whether a and b may have these types: the same, or integers of one width."""
    return a == b or {a, b} in ({"s8", "u8"}, {"s4", "u4"})


def _mma(decoder: Decoder, instruction: Instruction) -> Step:
    """
    `mma.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype d, a, b, c`.

    A register holds neighbours along k; register i of A is row group i % 2 (8 rows each) and k
    group i / 2, register i of B is k group i; see the figures of the ISA.
    """
    words = list(instruction.modifiers)
    if words[:1] == ["sp"] or words[:1] == ["sp::ordered_metadata"]:
        raise decoder.error(f"unsupported '{instruction.mnemonic}': sparse matrices")
    saturate = "satfinite" in words
    if saturate:
        words.remove("satfinite")
    if len(words) != 9 or words[:2] != ["sync", "aligned"] or words[3:5] != ["row", "col"]:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    d_type, a_type, b_type, c_type = words[5:]
    left, right = ELEMENTS.get(a_type), ELEMENTS.get(b_type)
    known = left is not None and words[2] in left.shapes and d_type in left.accumulators
    if left is None or right is None or not known or not mixable(a_type, b_type):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    if d_type != c_type or (saturate and d_type != "s32"):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 4)
    rows, _, depth = shape_of(words[2])
    held = 32 * left.per_register
    results = rows * 8 // (64 if d_type == "f16" else 32)

    def registers(index: int, count: int, scalar: ScalarType) -> list[int]:
        items = vector(decoder, instruction.operands[index], count)
        return [decoder.source(item, scalar) for item in items]

    accumulator = accumulator_type(d_type)
    items = vector(decoder, instruction.operands[0], results)
    targets = [decoder.destination(item, accumulator) for item in items]
    a = registers(1, rows * depth // held, left.register)
    b = registers(2, 8 * depth // held, right.register)
    c = registers(3, results, accumulator)
    arrange_a = _a_matrix(left.per_register, rows // 8)
    arrange_b = _b_matrix(right.per_register)
    line = instruction.line
    add = ADD[d_type]

    def multiply(r: list[Array], m: Array | None, x: Machine) -> None:
        if x.exact is not None:
            whole_warps(x, line, "mma")
        first = fragment(x, [r[s] for s in a], left.unpack, arrange_a)
        second = fragment(x, [r[s] for s in b], right.unpack, arrange_b)
        # Row groups of 8, each row with its 8 columns in pairs: four lanes hold a row.
        product = np.matmul(first, second).reshape(x.blocks, x.warps, rows // 8, 32, 2)
        for target, value in zip(
            targets, add(x, product, [r[s] for s in c], saturate), strict=True
        ):
            write(r, m, target, value)

    return multiply


def shape_of(word: str) -> tuple[int, int, int]:
    """The (m, n, k) of a shape such as m16n8k16."""
    found = SHAPE.fullmatch(word)
    return (0, 0, 0) if found is None else (int(found[1]), int(found[2]), int(found[3]))


def accumulator_type(name: str) -> ScalarType:
    return _B32 if name in ("f16", "s32") else TYPES[name]


Arrange = Callable[[Array], Array]


def fragment(
    x: Machine, parts: list[Array], unpack: Callable[[Array], Array], arrange: Arrange
) -> Array:
    """The matrices (blocks * warps, ...) of fragment registers; remembered while they live."""
    key = (*map(id, parts), id(arrange), id(unpack))
    known = x.fragments.get(key)
    if known is not None:
        return known[1]
    rows = max(part.shape[0] for part in parts)
    stacked = np.empty((rows, x.warps, len(parts), 32), parts[0].dtype)
    for i, part in enumerate(parts):
        stacked[:, :, i] = np.broadcast_to(part, (rows, x.threads)).reshape(rows, x.warps, 32)
    matrices = arrange(unpack(stacked))
    if rows != x.blocks:
        matrices = np.broadcast_to(matrices, (x.blocks, *matrices.shape[1:]))
    matrices = np.ascontiguousarray(matrices).reshape(-1, *matrices.shape[2:])
    if len(x.fragments) >= CACHED:
        x.fragments.clear()
    # The registers are kept beside it, so that their ids stay theirs.
    x.fragments[key] = (tuple(parts), matrices)
    return matrices


@cache
def _a_matrix(packed: int, groups: int) -> Arrange:
    """(rows, warps, registers, 32 lanes * packed) to (rows, warps, 8 * groups, k)."""

    def arrange(values: Array) -> Array:
        rows, warps, count, _ = values.shape
        # Axes: k group, row group, row, lane of the row, element of the register.
        split = values.reshape(rows, warps, count // groups, groups, 8, 4, packed)
        return split.transpose(0, 1, 3, 4, 2, 5, 6).reshape(rows, warps, 8 * groups, -1)

    return arrange


@cache
def _b_matrix(packed: int) -> Arrange:
    """(rows, warps, registers, 32 lanes * packed) to (rows, warps, k, 8)."""

    def arrange(values: Array) -> Array:
        rows, warps, count, _ = values.shape
        # Axes: k group, column, lane of the column, element of the register.
        split = values.reshape(rows, warps, count, 8, 4, packed)
        return split.transpose(0, 1, 2, 4, 5, 3).reshape(rows, warps, -1, 8)

    return arrange


Add = Callable[["Machine", Array, list[Array], bool], list[Array]]
"""From products (blocks, warps, groups, 32 lanes, elements of a lane) and c to d's registers."""


def _per_element(x: Machine, product: Array, number: int) -> Array:
    """What register `number` holds where each has one element."""
    each = product.shape[-1]
    return product[:, :, number // each, :, number % each].reshape(x.blocks, x.threads)


def _add_f32(x: Machine, product: Array, c: list[Array], saturate: bool) -> list[Array]:
    return [
        (_per_element(x, product, i) + old.view(np.float32)).view(np.uint32)
        for i, old in enumerate(c)
    ]


def _add_f64(x: Machine, product: Array, c: list[Array], saturate: bool) -> list[Array]:
    return [
        (_per_element(x, product, i) + old.view(np.float64)).view(np.uint64)
        for i, old in enumerate(c)
    ]


def _add_s32(x: Machine, product: Array, c: list[Array], saturate: bool) -> list[Array]:
    out: list[Array] = []
    for i, old in enumerate(c):
        total = _per_element(x, product, i).astype(np.int64) + old.view(np.int32)
        if saturate:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        out.append(total.astype(np.int32).view(np.uint32))
    return out


def _add_f16(x: Machine, product: Array, c: list[Array], saturate: bool) -> list[Array]:
    """A register holds two neighbours; rounds once to float16."""
    out: list[Array] = []
    each = product.shape[-1] // 2
    for i, old in enumerate(c):
        at = 2 * (i % each)
        part = product[:, :, i // each, :, at : at + 2].reshape(x.blocks, x.threads, 2)
        before = f16_to_f32(np.ascontiguousarray(old)[..., None].view(np.uint16))
        total = (part + before).astype(np.float16)
        out.append(np.ascontiguousarray(total).view(np.uint32)[..., 0])
    return out


ADD: dict[str, Add] = {"f32": _add_f32, "f16": _add_f16, "s32": _add_s32, "f64": _add_f64}
"""How the products meet c, by the type of both c and d."""

OPCODES: tuple[Opcode, ...] = (Opcode("mma", "mma", _mma, warp=True, flops=matrix_flops),)
