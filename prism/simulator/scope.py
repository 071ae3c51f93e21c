"""Names of a PTX body: registers, variables and labels in nested scopes (PTX ISA 4.4, 5.4)."""

from __future__ import annotations

from prism.simulator.lexer import TokenStream
from prism.simulator.syntax import Function, Label, Register, Variable
from prism.simulator.types import ScalarType

MAX_REGISTERS = 1 << 16
"""Most registers that one function may use."""


class Scope:
    """One `{ ... }` scope; lookups go outwards. Registers are numbered when they are first used."""

    def __init__(self, stream: TokenStream, outer: Scope | None) -> None:
        self.stream = stream
        self.outer = outer
        self.names: dict[str, Register | Variable | Label] = {}
        self.ranges: dict[str, tuple[int, ScalarType]] = {}
        # The registers of a function are shared by all its scopes; the module's scope has none.
        nested = outer is not None and outer.outer is not None
        self.registers: list[Register] = outer.registers if outer is not None and nested else []
        self.functions: dict[str, Function] = {} if outer is None else outer.functions

    def _declare(
        self, name: str, what: Register | Variable | Label, line: int | None = None
    ) -> None:
        if name in self.names:
            raise self.stream.error(f"'{name}' is declared twice", line)
        self.names[name] = what

    def _new_register(self, name: str, scalar: ScalarType) -> Register:
        if len(self.registers) >= MAX_REGISTERS:
            raise self.stream.error(f"a function may use at most {MAX_REGISTERS} registers")
        register = Register(name, scalar, len(self.registers))
        self.registers.append(register)
        return register

    def declare_register(self, name: str, scalar: ScalarType) -> Register:
        register = self._new_register(name, scalar)
        self._declare(name, register)
        return register

    def declare_range(self, prefix: str, count: int, scalar: ScalarType) -> None:
        if prefix in self.ranges:
            raise self.stream.error(f"'{prefix}' is declared twice")
        self.ranges[prefix] = (count, scalar)

    def declare_variable(self, variable: Variable) -> None:
        self._declare(variable.name, variable)

    def declare_label(self, name: str, unique: str, line: int) -> None:
        self._declare(name, Label(unique), line)

    def resolve(self, name: str) -> Register | Variable | Label | None:
        """What a name stands for, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name) or scope._resolve_range(name)
            if found is not None:
                return found
            scope = scope.outer
        return None

    def _resolve_range(self, name: str) -> Register | None:
        start = len(name)
        while start > 0 and name[start - 1].isdigit():
            start -= 1
            if name[start] == "0" and start < len(name) - 1:
                continue
            entry = self.ranges.get(name[:start])
            if entry is not None and int(name[start:]) < entry[0]:
                register = self._new_register(name, entry[1])
                self.names[name] = register
                return register
        return None
