"""Where parameters and shared variables of a kernel lie."""

from __future__ import annotations

from prism.simulator.errors import PtxError
from prism.simulator.syntax import Function, FunctionName, Module, Register, Variable

MAX_SHARED = 227 * 1024
"""Most shared memory that a block may have on any target, in bytes (sm_90)."""

SHARED_GUARD = 128
"""Unowned bytes between two shared variables when sanitizing; a whole row of banks."""


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


class Parameters:
    """Offsets and sizes of a kernel's parameters in its parameter space, by id of the variable."""

    def __init__(self, module: Module, function: Function) -> None:
        self.places: dict[int, tuple[int, int]] = {}
        offset = 0
        for parameter in function.parameters:
            if isinstance(parameter, Register) or parameter.size is None:
                message = "a kernel parameter must be a .param variable with a size"
                raise PtxError(module.file, function.line, message)
            offset = round_up(offset, parameter.align)
            self.places[id(parameter)] = (offset, parameter.size)
            offset += parameter.size
        self.size = offset


class SharedLayout:
    """
    Addresses of the shared variables that a kernel can reach: static ones, then the dynamic array.

    `size` is where the dynamic array begins, or the end; `guards` are unowned ranges between
    variables; `static` is what the variables themselves take.
    """

    def __init__(self, module: Module, function: Function, *, guarded: bool) -> None:
        self.places: dict[int, int] = {}
        self.guards: list[tuple[int, int]] = []
        variables = [v for v in module.variables.values() if v.space == "shared"]
        for reached in _reachable(module, function):
            variables += [v for v in reached.variables if v.space == "shared"]
        self.static = sum(variable.size or 0 for variable in variables)
        if self.static > MAX_SHARED:
            raise PtxError(
                module.file,
                function.line,
                f"'{function.name}' has {self.static} bytes of shared memory, "
                f"the limit is {MAX_SHARED}",
            )
        offset = 0
        for variable in variables:
            if variable.size is not None:
                offset = self._place(variable, offset, guarded=guarded)
                self.places[id(variable)] = offset
                offset += variable.size
        dynamic = [variable for variable in variables if variable.size is None]
        if dynamic:
            # All extern arrays are the same memory.
            widest = max(dynamic, key=lambda variable: variable.align)
            offset = self._place(widest, offset, guarded=guarded)
            for variable in dynamic:
                self.places[id(variable)] = offset
        self.size = offset

    def _place(self, variable: Variable, offset: int, *, guarded: bool) -> int:
        start = round_up(offset, variable.align)
        if guarded and offset:
            start = round_up(round_up(offset + SHARED_GUARD, SHARED_GUARD), variable.align)
            self.guards.append((offset, start))
        return start


def _reachable(module: Module, function: Function) -> list[Function]:
    """A function and all that it calls."""
    found: list[Function] = []
    todo = [function]
    while todo:
        reached = todo.pop()
        if any(reached is other for other in found):
            continue
        found.append(reached)
        for instruction in reached.instructions:
            for operand in instruction.operands:
                if isinstance(operand, FunctionName):
                    todo.append(module.functions[operand.name])
    return found
