"""Syntax tree to a program: instructions become closures over numpy, in basic blocks."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable

import numpy as np

from prism.simulator.dependence import Flow, bytes_under_way, innermost_loops, loaded_bytes
from prism.simulator.errors import PtxError
from prism.simulator.expansion import Expansion
from prism.simulator.instructions import CONTROL, OPCODES
from prism.simulator.instructions.table import Opcode, Step
from prism.simulator.layout import Parameters, SharedLayout
from prism.simulator.machine import Block, Machine, Program, Terminator
from prism.simulator.slots import Slots
from prism.simulator.special import SPECIAL
from prism.simulator.syntax import (
    Address,
    Function,
    Immediate,
    Instruction,
    Label,
    Module,
    Negated,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
)
from prism.simulator.types import TYPES, Array, ScalarType


class Decoder:
    """
    Decodes one kernel.

    The `build` functions of the instruction table use it for their operands; `line` is that of the
    instruction being built, `frame` what its names stand for, `next_block` the basic block after
    it.
    """

    def __init__(
        self, module: Module, function: Function, globals_: dict[int, int], *, sanitize: bool
    ) -> None:
        self.file = module.file
        self.line = function.line
        self.parameters = Parameters(module, function)
        self.shared = SharedLayout(module, function, guarded=sanitize)
        self._globals = globals_
        self.slots = Slots()
        self._expansion = Expansion(module, function, self.slots)
        self.frame = self._expansion.kernel
        self.next_block = -1
        self._block_of: dict[int, int] = {}
        self._carry: int | None = None
        self._flow = Flow()
        self._flows: list[list[Flow]] = []
        self._back_edges: list[tuple[int, int]] = []

    def error(self, message: str) -> PtxError:
        return PtxError(self.file, self.line, message)

    # -- program --------------------------------------------------------------------------------

    def decode(self) -> Program:
        """The whole kernel. Raises PtxError on anything unknown."""
        starts = sorted(self._leaders())
        self._block_of = {start: index for index, start in enumerate(starts)}
        ends = [*starts[1:], len(self._expansion.flat)]
        blocks = [
            self._block(start, end, index)
            for index, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
        return Program(
            self.file,
            tuple(blocks),
            tuple(self.slots.initial),
            self.shared.size,
            tuple(self.shared.guards),
            self._expansion.local_size,
            innermost_loops(self._flows, [block.line for block in blocks], self._back_edges),
        )

    def _leaders(self) -> set[int]:
        leaders = {0, len(self._expansion.flat) - 1}
        for frame in {id(f.frame): f.frame for f in self._expansion.flat}.values():
            leaders.update(frame.labels.values())
            leaders.add(frame.end)
        for index, flat in enumerate(self._expansion.flat):
            name = flat.instruction.opcode
            if name in CONTROL:
                leaders.add(index + 1)
            elif name in OPCODES and OPCODES[name].warp:
                leaders.add(index)
        return {leader for leader in leaders if 0 <= leader < len(self._expansion.flat)}

    def _block(self, start: int, end: int, index: int) -> Block:
        steps: list[Step] = []
        kinds: Counter[str] = Counter()
        warp_kinds: Counter[str] = Counter()
        flops = 0
        flows: list[Flow] = []
        self._flows.append(flows)
        gate: Callable[[list[Array]], Array] | None = None
        line = self._expansion.flat[start].instruction.line
        terminator: Terminator = _go_on(index + 1)
        for at in range(start, end):
            instruction = self._enter(at)
            self.next_block = index + 1
            self._flow = Flow()
            flows.append(self._flow)
            if instruction.opcode in CONTROL:
                terminator = CONTROL[instruction.opcode].build(self, instruction)
                kinds[CONTROL[instruction.opcode].kind] += 1
                warp_kinds[CONTROL[instruction.opcode].kind] += 1
                break
            opcode = self._opcode(instruction)
            step = opcode.build(self, instruction)
            kind = opcode.kind_of(instruction)
            self._flow.loads = loaded_bytes(instruction, kind)
            flops += 0 if opcode.flops is None else opcode.flops(instruction)
            warp_kinds[kind] += 1
            if opcode.warp and at == start:
                gate = self._gate(opcode, instruction)
            if instruction.guard is None:
                kinds[kind] += 1
            else:
                guard = self.source(instruction.guard, TYPES["pred"])
                step = guarded(step, guard, kind, negated=instruction.guard_negated)
            steps.append(step)
        return Block(
            line,
            tuple(steps),
            terminator,
            dict(kinds),
            dict(warp_kinds),
            flops,
            bytes_under_way(flows),
            gate,
        )

    def _enter(self, at: int) -> Instruction:
        """Makes the names of an instruction's frame current."""
        flat = self._expansion.flat[at]
        self.frame = flat.frame
        self.line = flat.instruction.line
        return flat.instruction

    def _opcode(self, instruction: Instruction) -> Opcode:
        opcode = OPCODES.get(instruction.opcode)
        if opcode is None:
            raise self.error(f"unknown or unsupported instruction '{instruction.mnemonic}'")
        return opcode

    def _gate(self, opcode: Opcode, instruction: Instruction) -> Callable[[list[Array]], Array]:
        slot = None if opcode.members is None else opcode.members(self, instruction)
        if slot is None:
            slot = self.slots.constant(0xFFFFFFFF, 32)
        return lambda r: r[slot]

    def block_at(self, label: Operand) -> int:
        """The basic block that a label begins."""
        if not isinstance(label, Label):
            raise self.error("expected a label")
        target = self._block_of[self.frame.labels[label.name]]
        self._back_edges.append((self.next_block - 1, target))
        return target

    def return_block(self) -> int | None:
        """Where `ret` goes on: after the expanded call, or None if it ends the thread."""
        return None if self.frame.is_kernel else self._block_of[self.frame.end]

    # -- operands -------------------------------------------------------------------------------

    def expect_operands(
        self, instruction: Instruction, count: int, most: int | None = None
    ) -> None:
        found = len(instruction.operands)
        if not count <= found <= (count if most is None else most):
            raise self.error(f"'{instruction.mnemonic}' takes {count} operands, found {found}")

    def check_type(self, register: Register, scalar: ScalarType, *, wider: bool = False) -> None:
        """
        Operand type rules (PTX ISA 9.2, table 25): same width; integers, or bits with anything.

        `wider`: a register may be wider than the type (ld, st, cvt).
        """
        held = register.type
        narrow = held.bits < max(scalar.bits, 16 if scalar.bits == 8 else 0)
        if (
            (held.kind == "p") != (scalar.kind == "p")
            or narrow
            or (not wider and held.bits != scalar.bits)
        ):
            raise self.error(f"'{register.name}' has type {held}, expected {scalar}")
        integers = held.kind in "su" and scalar.kind in "fx"
        if integers or (held.kind in "fx" and scalar.kind in "su"):
            raise self.error(f"'{register.name}' has type {held}, expected {scalar}")

    def destination(
        self, operand: Operand, scalar: ScalarType, *, wider: bool = False
    ) -> int | None:
        """The slot of a destination register, None for `_`."""
        if isinstance(operand, Sink):
            return None
        if not isinstance(operand, Register):
            raise self.error("the destination must be a register")
        self.check_type(operand, scalar, wider=wider)
        slot = self.slots.register(self.frame, operand)
        self._flow.writes.add(slot)
        return slot

    def source(self, operand: Operand, scalar: ScalarType, *, wider: bool = False) -> int:
        """The slot of a source operand: register, literal, special register or address."""
        if isinstance(operand, Register):
            self.check_type(operand, scalar, wider=wider)
            slot = self.slots.register(self.frame, operand)
            self._flow.reads.add(slot)
            return slot
        if isinstance(operand, Immediate):
            return self.slots.constant(
                self.pattern(operand, scalar), 16 if scalar.bits == 8 else scalar.bits
            )
        if isinstance(operand, Special):
            return self._special(operand, scalar)
        if isinstance(operand, Symbol):
            address = self.address_of(operand.variable) + operand.offset
            return self.slots.constant(address, scalar.bits)
        if isinstance(operand, Negated):
            raise self.error(f"unsupported negated operand '!{operand.register.name}'")
        raise self.error("unsupported operand")

    def carry(self, *, reads: bool, writes: bool) -> int:
        """The slot of the carry flag CC.CF, and how the instruction uses it."""
        if self._carry is None:
            self._carry = self.slots.add(np.zeros((1, 1), np.bool_))
        if reads:
            self._flow.reads.add(self._carry)
        if writes:
            self._flow.writes.add(self._carry)
        return self._carry

    def width(self, operand: Operand, scalar: ScalarType) -> int:
        """How many bits the register of an operand has; a literal has those of the type."""
        return operand.type.bits if isinstance(operand, Register) else max(scalar.bits, 16)

    def _special(self, operand: Special, scalar: ScalarType) -> int:
        entry = SPECIAL.get(operand.name)
        if entry is None:
            raise self.error(f"unknown name '{operand.name}'")
        bits = entry[0]
        if bits != scalar.bits:
            raise self.error(f"'{operand.name}' has {bits} bits, expected {scalar}")
        return self.slots.special(operand.name)

    def pattern(self, operand: Immediate, scalar: ScalarType) -> int:
        """The bits of a literal as a value of a type."""
        value = operand.value
        if operand.bits:
            if operand.bits != scalar.bits and scalar.is_float:
                raise self.error(f"a literal of {operand.bits} bits, expected {scalar}")
            return int(value)
        if scalar.kind == "p":
            if value not in (0, 1):
                raise self.error("a predicate literal is 0 or 1")
            return int(value)
        if isinstance(value, float) or scalar.name in ("f32", "f64"):
            formats = {"f64": "<d", "f32": "<f"}
            if scalar.name not in formats and not isinstance(value, int):
                raise self.error(f"a float literal, expected {scalar}")
            narrow = np.array(float(value)).astype(np.float32 if scalar.bits == 32 else np.float64)
            return int.from_bytes(struct.pack(formats[scalar.name], float(narrow)), "little")
        bits = max(scalar.bits, 16)
        # ptxas truncates too-large literals silently; one that cannot have been meant is refused.
        if not -(1 << (bits - 1)) <= value < 1 << bits and bits < 64:
            raise self.error(f"literal {value} does not fit in {scalar}")
        return value & ((1 << bits) - 1)

    def constant_value(self, operand: Operand, what: str) -> int:
        """An operand that must be an integer literal."""
        if not isinstance(operand, Immediate) or operand.bits or not isinstance(operand.value, int):
            raise self.error(f"{what} must be an integer literal")
        return operand.value

    def address_of(self, variable: Variable) -> int:
        """The address of a variable in its own space."""
        if variable.space == "shared":
            return self.shared.places[id(variable)]
        if variable.space in ("global", "const"):
            return self._globals[id(variable)]
        if id(variable) in self.frame.variables:
            return self.frame.variables[id(variable)]
        raise self.error(f"unsupported use of the address of '{variable.name}'")

    def address(self, operand: Operand, space: str) -> tuple[int, int]:
        """Slot and constant offset of an address operand in a state space ('' for generic)."""
        if not isinstance(operand, Address):
            raise self.error("expected an address in brackets")
        base = operand.base
        if base is None:
            return self.slots.constant(operand.offset, 64), 0
        if isinstance(base, Variable):
            owner = "global" if base.space == "const" else base.space
            if owner != ("global" if space == "const" else space):
                raise self.error(f"'{base.name}' is in .{base.space}, not in .{space or 'generic'}")
            return self.slots.constant(self.address_of(base), 64), operand.offset
        if base.type.kind not in "sub" or base.type.bits not in (32, 64):
            raise self.error(f"'{base.name}' of type {base.type} cannot hold an address")
        if base.type.bits == 32 and space in ("", "global", "const"):
            raise self.error(f"a .{space or 'generic'} address needs 64 bits, '{base.name}' has 32")
        slot = self.slots.register(self.frame, base)
        self._flow.reads.add(slot)
        return slot, operand.offset


def _go_on(to: int) -> Terminator:
    """The end of a basic block that runs into the next one."""
    return lambda x: to


def guarded(step: Step, guard: int, kind: str, *, negated: bool) -> Step:
    """A step that runs only in the lanes whose predicate holds."""

    def run(r: list[Array], m: Array | None, x: Machine) -> None:
        on = ~r[guard] if negated else r[guard]
        exact, active = x.exact, x.active
        lanes = on if exact is None else on & exact
        going = x.lanes(lanes)
        if going == active:
            step(r, m, x)
        elif going:
            x.exact, x.active = lanes, going
            step(r, lanes, x)
            x.exact, x.active = exact, active
        x.meter.counts[kind] += going

    return run
