"""
The `kernel` dialect: operators on whole tensors, and the operator whose region is a threadblock
graph.

A workload is a `func.func` of these ops; a candidate for it is a `func.func` with the attribute
`kernel.candidate_of`, whose body is one `kernel.graph_def`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    BFloat16Type,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    FunctionType,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, Block, Data, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, Pure
from xdsl.utils.exceptions import VerifyException

from prism.dialects.bindings import parse_bindings, print_bindings
from prism.dialects.operator_op import OperatorOp, make_operator_op
from prism.dialects.operators import OPERATORS
from prism.dialects.shapes import Shape, result_shape
from prism.dialects.sym import (
    GRID_AXES,
    LOOP_AXES,
    ConstraintAttr,
    as_tensor,
    parse_constraint,
    shape_of,
    shape_text,
)

CANDIDATE_OF = "kernel.candidate_of"
"""On a candidate's func: the symbol of its workload."""

VERDICT = "kernel.verdict"
"""On a candidate's func: what `prism-verify` decided, a `#kernel.verdict`."""

SIZES = "kernel.sizes"
"""On a tuned candidate's func: the sizes of the workload's parameters, a dictionary of integers."""

TARGET = "kernel.target"
"""On a tuned candidate's func: the name of the target, a string."""

ELEMENT_TYPES = (Float16Type, BFloat16Type, Float32Type)


class KernelOperatorOp(OperatorOp):
    """An operator on whole tensors; operands and result have one element type."""

    def verify_types(self) -> None:
        operator = self.operator
        names = [f"operand {operator.operand_name(i)}" for i in range(len(self.inputs))]
        shapes = [self._tensor(name, v) for name, v in zip(names, self.inputs, strict=True)]
        expected = result_shape(operator, shapes, self.attribute_values)
        found = self._tensor("result", self.result)
        if found != expected:
            raise VerifyException(
                f"result: expected shape {shape_text(expected)}, found {shape_text(found)}"
            )
        element_types = [_element_type(value) for value in (*self.inputs, self.result)]
        for name, element_type in zip((*names, "result"), element_types, strict=True):
            if not isinstance(element_type, ELEMENT_TYPES):
                raise VerifyException(
                    f"{name}: expected element type f16, bf16 or f32, found {element_type}"
                )
            if element_type != element_types[0] and not (operator.casts and name == "result"):
                raise VerifyException(
                    f"{name}: expected element type {element_types[0]}, found {element_type}"
                )

    @staticmethod
    def _tensor(name: str, value: SSAValue) -> Shape:
        try:
            return shape_of(value.type)
        except VerifyException as error:
            raise VerifyException(f"{name}: {error}") from error


def _element_type(value: SSAValue) -> Attribute:
    return as_tensor(value.type).element_type


OPS: dict[str, type[KernelOperatorOp]] = {
    name: make_operator_op(KernelOperatorOp, "kernel", operator)
    for name, operator in OPERATORS.items()
}
"""The op class of every operator of the table, by the operator's name."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `prism-verify` decided of a candidate, and of what: a digest of workload and graph."""

    kind: str
    digest: str

    KINDS: ClassVar[tuple[str, ...]] = ("equal", "not_proven", "unknown")


@irdl_attr_definition
class VerdictAttr(Data[Verdict]):
    """The verdict on a candidate. Syntax: `#kernel.verdict<equal, "sha256 in hex">`."""

    name = "kernel.verdict"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Verdict:
        with parser.in_angle_brackets():
            pos = parser.pos
            kind = parser.parse_identifier(context_msg=": a verdict")
            if kind not in Verdict.KINDS:
                parser.raise_error(
                    f"expected a verdict, one of {', '.join(Verdict.KINDS)}; found '{kind}'",
                    pos,
                    parser.pos,
                )
            parser.parse_punctuation(",")
            return Verdict(kind, parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.data.kind}, ")
            printer.print_string_literal(self.data.digest)


@irdl_op_definition
class GraphDefOp(IRDLOperation):
    """
    An operator defined by a threadblock graph: its region says what each block does with tiles.

    `grid` and `loops` name the axes, whose sizes are the parameters `grid.x` and `loop.i`.
    `constraints` bind the Boolean variables of symbolic maps; `params` holds what tuning chose.

        %o = kernel.graph_def grid [x] loop [i] (%xg = %x : T, %wg = %w : T) -> T { ... }
    """

    name = "kernel.graph_def"

    inputs = var_operand_def()
    results_ = var_result_def()
    grid = prop_def(ArrayAttr[StringAttr])
    loops = prop_def(ArrayAttr[StringAttr])
    constraints = opt_prop_def(ArrayAttr[ConstraintAttr])
    params = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
        grid: Sequence[str],
        loops: Sequence[str],
        body: Region | None = None,
        *,
        constraints: Sequence[ConstraintAttr] | None = None,
        params: Mapping[str, Attribute] | None = None,
    ) -> None:
        values = [SSAValue.get(value) for value in inputs]
        super().__init__(
            operands=[values],
            result_types=[list(result_types)],
            properties={
                "grid": ArrayAttr([StringAttr(axis) for axis in grid]),
                "loops": ArrayAttr([StringAttr(axis) for axis in loops]),
                "constraints": None if constraints is None else ArrayAttr(list(constraints)),
                "params": None if params is None else DictionaryAttr(dict(params)),
            },
            regions=[body or Region(Block(arg_types=[value.type for value in values]))],
        )

    @property
    def grid_axes(self) -> tuple[str, ...]:
        """The names of the grid axes."""
        return tuple(axis.data for axis in self.grid)

    @property
    def loop_axes(self) -> tuple[str, ...]:
        """The names of the loop axes, the outermost first."""
        return tuple(axis.data for axis in self.loops)

    def verify_(self) -> None:
        from prism.dialects.scopes import check_scopes
        from prism.dialects.threadblock import YieldOp

        for what, axes, known in (
            ("grid", self.grid_axes, GRID_AXES),
            ("loop", self.loop_axes, LOOP_AXES),
        ):
            for axis in axes:
                if axis not in known:
                    raise VerifyException(
                        f"{what} axes: expected names of {', '.join(known)}, found {axis}"
                    )
            if len(set(axes)) != len(axes):
                raise VerifyException(f"{what} axes: expected distinct names, found {axes}")
        arguments = [argument.type for argument in self.body.block.args]
        if arguments != [value.type for value in self.inputs]:
            raise VerifyException(
                "region arguments: expected the operands' types "
                f"({', '.join(str(v.type) for v in self.inputs)}), "
                f"found ({', '.join(map(str, arguments))})"
            )
        terminator = self.body.block.last_op
        if not isinstance(terminator, YieldOp):
            raise VerifyException("region: expected threadblock.yield as its last op")
        yielded = [value.type for value in terminator.arguments]
        if yielded != [value.type for value in self.results_]:
            raise VerifyException(
                f"threadblock.yield: expected ({', '.join(str(r.type) for r in self.results_)}), "
                f"found ({', '.join(map(str, yielded))})"
            )
        check_scopes(self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        def axes(keyword: str) -> list[str]:
            parser.parse_keyword(keyword)
            return parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_identifier
            )

        grid, loops = axes("grid"), axes("loop")
        constraints = params = None
        if parser.parse_optional_keyword("where"):
            constraints = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: ConstraintAttr(parse_constraint(parser))
            )
        if parser.parse_optional_keyword("params"):
            params = parser.parse_optional_dictionary_attr_dict()
        arguments = parse_bindings(parser)
        parser.parse_punctuation("->")
        result_types = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_type
        )
        if result_types is None:
            result_types = [parser.parse_type()]
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region([name for name, _ in arguments])
        op = cls(
            [value for _, value in arguments],
            result_types,
            grid,
            loops,
            body,
            constraints=constraints,
            params=params,
        )
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(
            f" grid [{', '.join(self.grid_axes)}] loop [{', '.join(self.loop_axes)}]"
        )
        if self.constraints is not None:
            printer.print_string(f" where [{', '.join(str(c.data) for c in self.constraints)}]")
        if self.params is not None:
            printer.print_string(" params ")
            printer.print_attribute(self.params)
        printer.print_string(" ")

        # The region has its own names: it is isolated from above.
        print_bindings(printer, self.body.block.args, self.inputs)
        printer.print_string(" -> ")
        types = [value.type for value in self.results_]
        if len(types) == 1:
            printer.print_attribute(types[0])
        else:
            with printer.in_parens():
                printer.print_list(types, printer.print_attribute)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """
    Launches a lowered kernel on whole tensors; the launcher allocates the results.

    Syntax: `%o = kernel.launch @rms_norm__g0_k0(%x, %w) : (T, T) -> T`.
    """

    name = "kernel.launch"

    kernel = prop_def(SymbolRefAttr)
    inputs = var_operand_def()
    results_ = var_result_def()

    traits = traits_def(Pure())

    def __init__(
        self,
        kernel: str,
        inputs: Sequence[SSAValue | Operation],
        result_types: Sequence[Attribute],
    ) -> None:
        super().__init__(
            operands=[[SSAValue.get(value) for value in inputs]],
            result_types=[list(result_types)],
            properties={"kernel": SymbolRefAttr(kernel)},
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name()
        operands = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        function_type = parser.parse_function_type()
        inputs = parser.resolve_operands(operands, function_type.inputs.data, pos)
        op = cls(name.data, inputs, function_type.outputs.data)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.kernel.string_value())
        with printer.in_parens():
            printer.print_list(self.inputs, printer.print_ssa_value)
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(
            FunctionType.from_lists(
                [value.type for value in self.inputs], [value.type for value in self.results_]
            )
        )


Kernel = Dialect("kernel", [*OPS.values(), GraphDefOp, LaunchOp], [VerdictAttr])
