"""Calls expanded in place: a kernel and all it calls become one flat list of instructions."""

from __future__ import annotations

from dataclasses import dataclass

from prism.simulator.errors import PtxError
from prism.simulator.layout import round_up
from prism.simulator.slots import Frame, Slots
from prism.simulator.syntax import (
    Arguments,
    Function,
    FunctionName,
    Instruction,
    Label,
    Module,
    Operand,
    Register,
    Symbol,
    Variable,
)

MAX_INSTRUCTIONS = 1 << 17
MAX_CALL_DEPTH = 32
MAX_LOCAL = 1 << 19
"""Most local memory per thread in bytes (CUDA C++ guide, compute capabilities)."""


@dataclass(frozen=True)
class Flat:
    """An instruction and the frame that its names belong to."""

    instruction: Instruction
    frame: Frame


class Expansion:
    """The flat instructions of a kernel and the local memory that they need per thread."""

    def __init__(self, module: Module, function: Function, slots: Slots) -> None:
        self.module = module
        self.slots = slots
        self.flat: list[Flat] = []
        self.local_size = 0
        self._line = function.line
        self.kernel = Frame(function, is_kernel=True)
        self._expand(self.kernel, ())

    def _error(self, message: str) -> PtxError:
        return PtxError(self.module.file, self._line, message)

    def _expand(self, frame: Frame, callers: tuple[str, ...]) -> None:
        function = frame.function
        positions: list[int] = []
        for variable in function.variables:
            if variable.space in ("local", "param"):
                frame.variables[id(variable)] = self._local(variable)
        for instruction in function.instructions:
            positions.append(len(self.flat))
            self._line = instruction.line
            if instruction.opcode == "call":
                self._expand_call(frame, instruction, (*callers, function.name))
            else:
                self.flat.append(Flat(instruction, frame))
            if len(self.flat) > MAX_INSTRUCTIONS:
                raise self._error(f"more than {MAX_INSTRUCTIONS} instructions with calls expanded")
        # Falling off the end of a body returns.
        last = function.instructions[-1].line if function.instructions else function.line
        frame.end = len(self.flat)
        self.flat.append(
            Flat(Instruction(last, "ret" if frame.is_kernel else "nop", (), ()), frame)
        )
        positions.append(frame.end)
        for name, position in function.labels.items():
            frame.labels[name] = positions[position]

    def _local(self, variable: Variable) -> int:
        start = round_up(self.local_size, variable.align)
        self.local_size = start + (variable.size or 0)
        if self.local_size > MAX_LOCAL:
            raise self._error(f"more than {MAX_LOCAL} bytes of local memory per thread")
        return start

    def _expand_call(self, frame: Frame, call: Instruction, callers: tuple[str, ...]) -> None:
        if self._expand_extern(frame, call):
            return
        results, callee, values = self._callee(call)
        if callee.name in callers or len(callers) > MAX_CALL_DEPTH:
            raise self._error(f"unsupported recursive call of '{callee.name}'")
        inner = Frame(callee, is_kernel=False)
        label = f"#{len(self.flat)}"
        if call.guard is not None:
            around = Instruction(
                call.line, "bra", (), (Label(label),), call.guard, not call.guard_negated
            )
            self.flat.append(Flat(around, frame))
        for formal, actual in zip(callee.parameters, values, strict=True):
            if isinstance(formal, Variable):
                self._alias(frame, inner, formal, actual)
            else:
                self._pass_register(frame, inner, formal, actual)
        for formal, actual in zip(callee.results, results, strict=True):
            if isinstance(formal, Variable):
                self._alias(frame, inner, formal, actual)
            elif isinstance(actual, Register) and actual.type.bits == formal.type.bits:
                inner.slots[formal.index] = self.slots.register(frame, actual)
            else:
                raise self._error(f"unsupported operand for the result '{formal.name}'")
        self._expand(inner, callers)
        if call.guard is not None:
            frame.labels[label] = inner.end

    def _expand_extern(self, frame: Frame, call: Instruction) -> bool:
        """A call of a function of the system: a failed assertion traps, printing does nothing."""
        names = [o.name for o in call.operands if isinstance(o, FunctionName)]
        if names not in (["__assertfail"], ["vprintf"]):
            return False
        if self.module.functions[names[0]].has_body:
            return False
        if names == ["__assertfail"]:
            trap = Instruction(call.line, "trap", (), (), call.guard, call.guard_negated)
            self.flat.append(Flat(trap, frame))
        return True

    def _callee(
        self, call: Instruction
    ) -> tuple[tuple[Operand, ...], Function, tuple[Operand, ...]]:
        """Results, function and operands of a `call (results), function, (operands)`."""
        operands = list(call.operands)
        results: tuple[Operand, ...] = ()
        if operands and isinstance(operands[0], Arguments):
            results = operands[0].items
            del operands[0]
        if not operands or not isinstance(operands[0], FunctionName) or len(operands) > 2:
            raise self._error("unsupported call: only direct calls of functions of the module")
        callee = self.module.functions[operands[0].name]
        actuals = operands[1] if len(operands) == 2 else Arguments(())
        if not isinstance(actuals, Arguments):
            raise self._error("malformed call")
        if not callee.has_body:
            raise self._error(f"'{callee.name}' has no body in this module")
        if callee.is_entry:
            raise self._error(f"'{callee.name}' is a kernel and cannot be called")
        sizes = len(callee.parameters), len(callee.results)
        if sizes != (len(actuals.items), len(results)):
            raise self._error(f"'{callee.name}' is called with a wrong number of operands")
        return results, callee, actuals.items

    def _alias(self, frame: Frame, inner: Frame, formal: Variable, actual: Operand) -> None:
        """Lets a .param variable of the callee stand for the caller's."""
        if not isinstance(actual, Symbol) or id(actual.variable) not in frame.variables:
            raise self._error(f"the operand for '{formal.name}' must be a .param variable")
        if actual.variable.size != formal.size:
            raise self._error(f"the operand for '{formal.name}' has another size")
        inner.variables[id(formal)] = frame.variables[id(actual.variable)]

    def _pass_register(self, frame: Frame, inner: Frame, formal: Register, actual: Operand) -> None:
        """Copies an operand to a register parameter, which the callee may change."""
        if not isinstance(actual, Register) or actual.type.bits != formal.type.bits:
            raise self._error(f"unsupported operand for '{formal.name}'")
        # The caller's register under a number that no register of the callee has.
        alias = Register(actual.name, actual.type, -1 - actual.index)
        inner.slots[alias.index] = self.slots.register(frame, actual)
        type_name = "pred" if formal.type.kind == "p" else f"b{formal.type.bits}"
        move = Instruction(self._line, "mov", (type_name,), (formal, alias))
        self.flat.append(Flat(move, inner))
