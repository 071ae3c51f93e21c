"""Moving data: mov, ld, st and hints about them (PTX ISA 9.7.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism.simulator.access import AccessPlan, load, store
from prism.simulator.errors import SimulatorError
from prism.simulator.instructions.table import (
    Opcode,
    Step,
    compute,
    names,
    nothing,
    unary,
    write,
)
from prism.simulator.special import CLOCKS
from prism.simulator.syntax import Address, Instruction, Operand, Special, Variable, Vector
from prism.simulator.types import STORAGE, TYPES, Array, ScalarType

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_MOV_TYPES = names("pred b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 bf16 f16x2 bf16x2 f32 f64")


def _mov(decoder: Decoder, instruction: Instruction) -> Step:
    if len(instruction.modifiers) != 1 or instruction.modifiers[0] not in _MOV_TYPES:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 2)
    scalar = TYPES[instruction.modifiers[0]]
    target, source = instruction.operands
    if isinstance(target, Vector):
        return _unpack(decoder, scalar, target, source)
    d = decoder.destination(target, scalar)
    if isinstance(source, Vector):
        return _pack(decoder, scalar, d, source)
    if isinstance(source, Special) and source.name in CLOCKS:
        return _clock(decoder, scalar, d, source)
    return compute(_identity, d, [decoder.source(source, scalar)])


def _identity(a: Array) -> Array:
    return a


def _clock(decoder: Decoder, scalar: ScalarType, d: int | None, source: Special) -> Step:
    if CLOCKS[source.name] != scalar.bits:
        raise decoder.error(f"'{source.name}' has {CLOCKS[source.name]} bits, expected {scalar}")
    dtype = STORAGE[scalar.bits]
    shift = 32 if source.name == "%clock_hi" else 0

    def read(r: list[Array], m: Array | None, x: Machine) -> None:
        ticks = (x.budget.total - x.budget.left) >> shift
        write(r, m, d, np.full((1, 1), ticks & ((1 << scalar.bits) - 1), dtype))

    return read


def _part(decoder: Decoder, scalar: ScalarType, count: int) -> ScalarType:
    if count not in (2, 4) or scalar.bits % count or scalar.bits // count not in (16, 32):
        raise decoder.error(f"a vector of {count} does not make up {scalar}")
    return TYPES[f"b{scalar.bits // count}"]


def _pack(decoder: Decoder, scalar: ScalarType, d: int | None, source: Vector) -> Step:
    """`mov.b64 d, {a, b}`: the first element goes to the low bits."""
    part = _part(decoder, scalar, len(source.items))
    dtype = STORAGE[scalar.bits].type
    sources = [decoder.source(item, part) for item in source.items]
    shifts = [dtype(part.bits * i) for i in range(len(sources))]

    def join(*parts: Array) -> Array:
        value = parts[0].astype(dtype)
        for part_value, shift in zip(parts[1:], shifts[1:], strict=True):
            value = value | (part_value.astype(dtype) << shift)
        return value

    return compute(join, d, sources)


def _unpack(decoder: Decoder, scalar: ScalarType, target: Vector, source: Operand) -> Step:
    part = _part(decoder, scalar, len(target.items))
    narrow = STORAGE[part.bits]
    a = decoder.source(source, scalar)
    targets = [decoder.destination(item, part) for item in target.items]
    shifts = [STORAGE[scalar.bits].type(part.bits * i) for i in range(len(targets))]

    def split(r: list[Array], m: Array | None, x: Machine) -> None:
        value = r[a]
        for d, shift in zip(targets, shifts, strict=True):
            if d is not None:
                write(r, m, d, (value >> shift).astype(narrow))

    return split


# -- ld and st --------------------------------------------------------------------------------

_SPACES = {
    "global": "global",
    "const": "const",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "shared",
    "local": "local",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
}
_IGNORED = {
    *names("weak relaxed acquire release volatile cta cluster gpu sys nc"),
    *names("ca cg cs lu cv wb wt"),
    *(f"L1::{p}" for p in names("evict_normal evict_unchanged evict_first evict_last no_allocate")),
    *(f"L2::{p}" for p in names("evict_normal evict_first evict_last 64B 128B 256B cache_hint")),
}
"""
Modifiers that change nothing here: cache hints, and orders and scopes, since all accesses of a
machine happen one after the other in one memory.
"""

_ACCESS_TYPES = names("b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64")


def space_of(instruction: Instruction) -> str:
    return next((_SPACES[m] for m in instruction.modifiers if m in _SPACES), "")


def _kind(instruction: Instruction) -> str:
    return f"{instruction.opcode}.{space_of(instruction) or 'generic'}"


def _plan(decoder: Decoder, instruction: Instruction) -> AccessPlan:
    """Space, type and vector length of a load or store, all modifiers accounted for."""
    *flags, type_name = instruction.modifiers or ("",)
    if type_name not in _ACCESS_TYPES:
        raise decoder.error(f"unsupported type in '{instruction.mnemonic}'")
    vector = [flag for flag in flags if flag in ("v2", "v4")]
    spaces = [flag for flag in flags if flag in _SPACES]
    rest = [f for f in flags if f not in _IGNORED and f not in vector and f not in spaces]
    if rest or len(vector) > 1 or len(spaces) > 1:
        unknown = rest[0] if rest else (vector + spaces)[-1]
        raise decoder.error(f"unsupported modifier '.{unknown}' in '{instruction.mnemonic}'")
    if "volatile" in flags and space_of(instruction) not in ("", "global", "shared"):
        raise decoder.error(f"unsupported modifier '.volatile' in '{instruction.mnemonic}'")
    scalar = TYPES[type_name]
    count = int(vector[0][1]) if vector else 1
    if scalar.bytes * count > 16:
        raise decoder.error(f"'{instruction.mnemonic}' moves more than 16 bytes")
    return AccessPlan(space_of(instruction), scalar, count, instruction.line)


def expect_access(decoder: Decoder, instruction: Instruction) -> None:
    """Two operands, and with `.L2::cache_hint` a cache policy of 64 bits, which changes nothing."""
    hinted = "L2::cache_hint" in instruction.modifiers
    decoder.expect_operands(instruction, 2 + hinted)
    if hinted:
        decoder.source(instruction.operands[2], TYPES["b64"])


def _elements(decoder: Decoder, operand: Operand, plan: AccessPlan) -> tuple[Operand, ...]:
    if plan.count == 1 and not isinstance(operand, Vector):
        return (operand,)
    if not isinstance(operand, Vector) or len(operand.items) != plan.count:
        raise decoder.error(f"expected a vector of {plan.count} elements")
    return operand.items


def _ld(decoder: Decoder, instruction: Instruction) -> Step:
    plan = _plan(decoder, instruction)
    expect_access(decoder, instruction)
    elements = _elements(decoder, instruction.operands[0], plan)
    targets = [decoder.destination(e, plan.type, wider=plan.type.is_int) for e in elements]
    held = [STORAGE[decoder.width(e, plan.type)] for e in elements]
    where = instruction.operands[1]
    if plan.space == "param":
        kernel = _kernel_parameter(decoder, where, plan)
        if kernel is not None:
            return _ld_parameter(decoder, plan, kernel, targets, held)
        plan = plan.in_space("local")
        slot, shift = decoder.address(where, "param")
    else:
        slot, shift = decoder.address(where, plan.space)
    extend = plan.type.dtype

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        for d, dtype, value in zip(targets, held, load(x, plan, r[slot], shift), strict=True):
            if d is None:
                continue
            if value.dtype.itemsize != dtype.itemsize:
                value = value.view(extend).astype(dtype)
            r[d] = value if m is None else np.where(m, value, r[d])

    return run


def _kernel_parameter(decoder: Decoder, where: Operand, plan: AccessPlan) -> int | None:
    """The offset in the kernel's parameters that an address names, or None if it names another."""
    if not isinstance(where, Address) or not isinstance(where.base, Variable):
        return None
    parameter = decoder.parameters.places.get(id(where.base))
    if parameter is None:
        return None
    offset, size = parameter
    if not 0 <= where.offset <= size - plan.bytes:
        raise decoder.error(f"access beyond the {size} bytes of '{where.base.name}'")
    if where.offset % plan.bytes:
        raise decoder.error(f"misaligned access to '{where.base.name}'")
    return offset + where.offset


def _ld_parameter(
    decoder: Decoder,
    plan: AccessPlan,
    offset: int,
    targets: list[int | None],
    held: list[np.dtype[Any]],
) -> Step:
    scalar = plan.type

    def slot_of(at: int, dtype: np.dtype[Any]) -> int:
        def make(x: Machine) -> Array:
            raw = x.geometry.parameters[at : at + scalar.bytes]
            return (
                raw.view(scalar.dtype)
                .astype(dtype if scalar.is_int else scalar.dtype)
                .view(dtype)
                .reshape(1, 1)
            )

        return decoder.slots.add(make)

    slots = [slot_of(offset + i * scalar.bytes, dtype) for i, dtype in enumerate(held)]
    moves = [(d, slot) for d, slot in zip(targets, slots, strict=True) if d is not None]

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        for d, slot in moves:
            r[d] = r[slot] if m is None else np.where(m, r[slot], r[d])

    return run


def _st(decoder: Decoder, instruction: Instruction) -> Step:
    plan = _plan(decoder, instruction)
    expect_access(decoder, instruction)
    elements = _elements(decoder, instruction.operands[1], plan)
    where = instruction.operands[0]
    if plan.space == "const":
        raise decoder.error("a store to .const")
    if plan.space == "param":
        if _kernel_parameter(decoder, where, plan) is not None:
            raise decoder.error("a store to a kernel parameter")
        plan = plan.in_space("local")
        slot, shift = decoder.address(where, "param")
    else:
        slot, shift = decoder.address(where, plan.space)
    sources = [decoder.source(e, plan.type, wider=plan.type.is_int) for e in elements]
    bits = np.dtype(f"u{plan.type.bytes}")

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        values = [r[s] for s in sources]
        if values[0].dtype != bits:
            values = [value.astype(bits) for value in values]
        store(x, plan, r[slot], shift, values)

    return run


def _nanosleep(decoder: Decoder, instruction: Instruction) -> Step:
    if instruction.modifiers != ("u32",):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 1)
    decoder.source(instruction.operands[0], TYPES["u32"])

    def sleep(r: list[Array], m: Array | None, x: Machine) -> None:
        x.stalled = True

    return sleep


def _createpolicy(decoder: Decoder, instruction: Instruction) -> Step:
    """A cache policy is opaque and changes nothing: all are 0."""
    if instruction.modifiers[-1:] != ("b64",):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    d = decoder.destination(instruction.operands[0], TYPES["b64"])
    return compute(_identity, d, [decoder.slots.constant(0, 64)])


_WINDOW_OF = {"global": 0, "const": 0, "shared": 1, "shared::cta": 1, "local": 2}


def _isspacep(decoder: Decoder, instruction: Instruction) -> Step:
    """`isspacep.space p, a`: whether a generic address lies in the window of a space."""
    words = instruction.modifiers
    if len(words) != 1 or words[0] not in _WINDOW_OF or words[0] == "const":
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 2)
    window = np.uint64(_WINDOW_OF[words[0]])
    d = decoder.destination(instruction.operands[0], TYPES["pred"])
    a = decoder.source(instruction.operands[1], TYPES["u64"])
    return compute(unary(lambda address: address >> np.uint64(56) == window), d, [a])


def _mapa(decoder: Decoder, instruction: Instruction) -> Step:
    """`mapa{.shared::cluster}.type d, a, rank`: a block's own address, as it is a whole cluster."""
    words = instruction.modifiers
    if words not in (("u32",), ("u64",), ("shared::cluster", "u32"), ("shared::cluster", "u64")):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    decoder.expect_operands(instruction, 3)
    scalar = TYPES[words[-1]]
    d = decoder.destination(instruction.operands[0], scalar)
    a = decoder.source(instruction.operands[1], scalar)
    rank = decoder.source(instruction.operands[2], TYPES["u32"])
    line = instruction.line

    def own(r: list[Array], m: Array | None, x: Machine) -> None:
        if (np.broadcast_to(r[rank] != 0, x.shape) & x.full(x.exact)).any():
            x.fault(SimulatorError, line, "the address of another block of a cluster of one")
        write(r, m, d, r[a])

    return own


def _hint(decoder: Decoder, instruction: Instruction) -> Step:
    return nothing


OPCODES: tuple[Opcode, ...] = (
    Opcode("mov", "mov", _mov),
    Opcode("ld", _kind, _ld),
    Opcode("ldu", _kind, _ld),
    Opcode("st", _kind, _st),
    Opcode("createpolicy", "other", _createpolicy),
    Opcode("mapa", "alu", _mapa),
    Opcode("isspacep", "alu", _isspacep),
    Opcode("applypriority", "other", _hint),
    Opcode("prefetch", "other", _hint),
    Opcode("prefetchu", "other", _hint),
    Opcode("membar", "fence", _hint),
    Opcode("fence", "fence", _hint),
    Opcode("nop", "other", _hint),
    Opcode("nanosleep", "other", _nanosleep),
    Opcode("griddepcontrol", "other", _hint),
)
