"""The syntax tree of a PTX module, as the parser gives it and the decoder reads it."""

from __future__ import annotations

from dataclasses import dataclass, field

from prism.simulator.types import ScalarType


@dataclass(frozen=True, slots=True)
class Register:
    """A declared register; `index` numbers the registers of one function in order of first use."""

    name: str
    type: ScalarType
    index: int


@dataclass(frozen=True, slots=True)
class Variable:
    """
    A named piece of memory: `.global`, `.const`, `.shared`, `.local` or `.param`.

    `size` in bytes; None for an `.extern .shared` array, whose size the launch gives.
    """

    name: str
    space: str
    type: ScalarType
    size: int | None
    align: int
    initial: bytes | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal: an integer, a decimal float, or the bits of a `0f`/`0d` float (`bits` 32/64)."""

    value: int | float
    bits: int = 0


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as `%tid.x`."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable plus a constant."""

    variable: Variable
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Label:
    """A place in the code, by its name unique within the function."""

    name: str


@dataclass(frozen=True, slots=True)
class FunctionName:
    """The callee of a `call`."""

    name: str


@dataclass(frozen=True, slots=True)
class Sink:
    """The operand `_`: the result is not wanted."""


@dataclass(frozen=True, slots=True)
class Negated:
    """`!%p` as a source operand."""

    register: Register


@dataclass(frozen=True, slots=True)
class Pair:
    """`%d|%p`: a destination with a predicate beside it."""

    first: Register | Sink
    second: Register | Sink


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`; the base is a register, a variable or nothing."""

    base: Register | Variable | None
    offset: int


Scalar = Register | Immediate | Special | Symbol | Sink


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`."""

    items: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Arguments:
    """The parenthesized operands of a `call`."""

    items: tuple[Scalar, ...]


Operand = (
    Register
    | Immediate
    | Special
    | Symbol
    | Label
    | FunctionName
    | Sink
    | Negated
    | Pair
    | Address
    | Vector
    | Arguments
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: `@guard opcode.modifiers operands;`."""

    line: int
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None = None
    guard_negated: bool = False

    @property
    def mnemonic(self) -> str:
        return ".".join((self.opcode, *self.modifiers))


@dataclass
class Function:
    """An `.entry` or a `.func`: its body is flat, labels are indices into `instructions`."""

    name: str
    is_entry: bool
    line: int
    parameters: list[Variable | Register] = field(default_factory=list[Variable | Register])
    results: list[Variable | Register] = field(default_factory=list[Variable | Register])
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: dict[str, int] = field(default_factory=dict[str, int])
    branch_targets: dict[str, list[Label]] = field(default_factory=dict[str, list[Label]])
    variables: list[Variable] = field(default_factory=list[Variable])
    register_count: int = 0
    reqntid: tuple[int, int, int] | None = None
    maxntid: tuple[int, int, int] | None = None
    has_body: bool = False


@dataclass
class Module:
    """A PTX text after parsing."""

    file: str
    version: tuple[int, int]
    target: str
    variables: dict[str, Variable] = field(default_factory=dict[str, Variable])
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
