"""Atomic operations: atom and red (PTX ISA 9.7.13.5, 9.7.13.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from prism.simulator.access import spaces_of
from prism.simulator.errors import SimulatorError
from prism.simulator.instructions.floating import pack, unpack
from prism.simulator.instructions.order import in_order
from prism.simulator.instructions.table import Opcode, Raw, Step
from prism.simulator.memory import SHIFT
from prism.simulator.sanitizer import WRITTEN
from prism.simulator.syntax import Instruction, Operand, Vector
from prism.simulator.types import STORAGE, TYPES, Array, ScalarType

if TYPE_CHECKING:
    from prism.simulator.decoder import Decoder
    from prism.simulator.machine import Machine

_IGNORED = {"relaxed", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "noftz"}
_HINT = "L2::cache_hint"
_SPACES = {"global": "global", "shared": "shared", "shared::cta": "shared"}


def _ints(function: Raw) -> Callable[[ScalarType], Raw]:
    def of(scalar: ScalarType) -> Raw:
        def update(old: Array, b: Array, c: Array) -> Array:
            return function(old.view(scalar.dtype), b.view(scalar.dtype)).view(old.dtype)

        return update

    return of


def _floats(function: Raw) -> Callable[[ScalarType], Raw]:
    def of(scalar: ScalarType) -> Raw:
        def update(old: Array, b: Array, c: Array) -> Array:
            return pack(scalar, function(unpack(scalar, old), unpack(scalar, b)))

        return update

    return of


def _increment(old: Array, b: Array, c: Array) -> Array:
    return np.where(old >= b, np.uint32(0), old + np.uint32(1))


def _decrement(old: Array, b: Array, c: Array) -> Array:
    return np.where((old == 0) | (old > b), b, old - np.uint32(1))


def _exchange(old: Array, b: Array, c: Array) -> Array:
    return b


def _compare_and_swap(old: Array, b: Array, c: Array) -> Array:
    return np.where(old == b, c, old)


_INTEGERS = ("u32", "s32", "u64", "s64")
_FLOATS = ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2")
_HALVES = ("f16", "f16x2", "bf16", "bf16x2")

_OPERATIONS: dict[str, tuple[tuple[tuple[str, ...], Callable[[ScalarType], Raw]], ...]] = {
    "add": ((_INTEGERS, _ints(np.add)), (_FLOATS, _floats(np.add))),
    "min": ((_INTEGERS, _ints(np.minimum)), (_HALVES, _floats(np.fmin))),
    "max": ((_INTEGERS, _ints(np.maximum)), (_HALVES, _floats(np.fmax))),
    "and": ((("b32", "b64"), _ints(np.bitwise_and)),),
    "or": ((("b32", "b64"), _ints(np.bitwise_or)),),
    "xor": ((("b32", "b64"), _ints(np.bitwise_xor)),),
    "inc": ((("u32",), lambda scalar: _increment),),
    "dec": ((("u32",), lambda scalar: _decrement),),
    "exch": ((("b16", "b32", "b64"), lambda scalar: _exchange),),
    "cas": ((("b16", "b32", "b64"), lambda scalar: _compare_and_swap),),
}
"""Atomic operations: the types and, per type, the new value of (old, b, c)."""

_FAST: dict[tuple[str, str], np.ufunc] = {
    ("add", "f32"): np.add,
    ("add", "f64"): np.add,
    **{("add", t): np.add for t in _INTEGERS},
    **{("min", t): np.minimum for t in _INTEGERS},
    **{("max", t): np.maximum for t in _INTEGERS},
    **{
        (op, t): f
        for op, f in (("and", np.bitwise_and), ("or", np.bitwise_or))
        for t in ("b32", "b64")
    },
}
"""Operations that numpy does on repeated places itself, for when the old value is not wanted."""


def _build(decoder: Decoder, instruction: Instruction) -> Step:
    wants_old = instruction.opcode == "atom"
    words = [w for w in instruction.modifiers if w not in _IGNORED and w != _HINT]
    space = ""
    if words and words[0] in _SPACES:
        space = _SPACES[words.pop(0)]
    count = 1
    if len(words) == 3 and (words[1], words[2]) in _VECTORS and words[0] in ("add", "min", "max"):
        count = int(words.pop(1)[1])
    if len(words) != 2:
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    name, type_name = words
    found = [make for types, make in _OPERATIONS.get(name, ()) if type_name in types]
    if not found or (not wants_old and name in ("exch", "cas")):
        raise decoder.error(f"unsupported '{instruction.mnemonic}'")
    scalar = TYPES[type_name]
    operands = list(instruction.operands)
    hinted = _HINT in instruction.modifiers
    decoder.expect_operands(instruction, (2 if name != "cas" else 3) + wants_old + hinted)
    if hinted:
        decoder.source(operands.pop(), TYPES["b64"])
    targets: list[int | None] = [None] * count
    if wants_old:
        targets = [
            decoder.destination(o, scalar) for o in _elements(decoder, operands.pop(0), count)
        ]
    slot, shift = decoder.address(operands.pop(0), space)
    if count > 1:
        operands = list(_elements(decoder, operands[0], count))
    sources = [decoder.source(operand, scalar) for operand in operands]
    update = found[0](scalar)
    fast = _FAST.get((name, type_name))
    plan = _Plan(space, scalar, instruction.line, update, fast, may_lock=name in ("cas", "exch"))

    def one(x: Machine, d: int | None, address: Array, offset: int, values: list[Array]) -> None:
        old = plan.apply(x, address, offset, values, wants_old=d is not None)
        if d is not None and old is not None:
            # Lanes that do not take part keep what they had, ended ones excepted.
            r = x.registers
            r[d] = old if x.exact is None else np.where(x.exact, old, r[d])

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        address, values = r[slot], [r[s] for s in sources]
        if count == 1:
            one(x, targets[0], address, shift, values)
            return
        # Each element is atomic by itself.
        for i, (d, value) in enumerate(zip(targets, values, strict=True)):
            one(x, d, address, shift + i * scalar.bytes, [value])

    return run


_VECTORS = {
    *((f"v{count}", "f32") for count in (2, 4)),
    *((f"v{count}", name) for count in (2, 4, 8) for name in ("f16", "bf16")),
    *((f"v{count}", name) for count in (2, 4) for name in ("f16x2", "bf16x2")),
}
"""Vectors that global memory can be updated by."""


def _elements(decoder: Decoder, operand: Operand, count: int) -> tuple[Operand, ...]:
    if count == 1:
        return (operand,)
    if not isinstance(operand, Vector) or len(operand.items) != count:
        raise decoder.error(f"expected a vector of {count} elements")
    return operand.items


class _Plan:
    """An atomic operation with its modifiers resolved."""

    def __init__(
        self,
        space: str,
        scalar: ScalarType,
        line: int,
        update: Raw,
        fast: np.ufunc | None,
        *,
        may_lock: bool,
    ) -> None:
        self.space = space
        self.scalar = scalar
        self.line = line
        self.update = update
        self.fast = fast
        self.may_lock = may_lock

    def apply(
        self, x: Machine, address: Array, shift: int, values: list[Array], *, wants_old: bool
    ) -> Array | None:
        """Updates memory lane after lane, lowest first; gives the old values if wanted."""
        space, width = self.space, self.scalar.bytes
        if not space:
            spaces = spaces_of(x, address, self.line)
            if len(spaces) != 1 or spaces[0][0] == "local":
                x.fault(SimulatorError, self.line, "unsupported: atomics on several spaces at once")
            space, address = spaces[0]
        if space == "shared":
            offset = x.shared.offsets(x, address, shift, width, self.line)
            x.meter.shared(x, offset, width)
            if x.shared_state is not None:
                x.shared_state.check_read(x, offset, width, self.line)
                x.shared_state.mark(x, offset, width, WRITTEN, self.line)
            if x.races is not None:
                if self.may_lock:
                    x.races.stop()
                x.races.atomic(x, offset, width, self.line)
            offset, view = offset + x.shared.row, x.shared.views[width]
        else:
            offset, view = (
                x.memory.offsets(x, address, shift, width, self.line),
                x.memory.views[width],
            )
            x.meter.read(x, offset, width)
            x.meter.write(x, offset, width)
            x.memory.check_written(x, offset, width, self.line)
            x.memory.mark_written(x, offset, width)
        lanes = x.full(x.exact)
        slots = np.broadcast_to(offset >> SHIFT[width], x.shape)[lanes]
        parts = [np.broadcast_to(value, x.shape)[lanes] for value in values]
        if self.fast is not None and not wants_old:
            # Repeated places are updated in the order of the lanes.
            self.fast.at(view.view(self.scalar.dtype), slots, parts[0].view(self.scalar.dtype))
            return None
        old = in_order(self.update, view, slots, parts)
        result = np.zeros(x.shape, STORAGE[self.scalar.bits])
        result[lanes] = old
        return result


OPCODES: tuple[Opcode, ...] = (
    Opcode("atom", "atom", _build),
    Opcode("red", "atom", _build),
)
