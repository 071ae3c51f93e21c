"""
The ops of the operator table: one base class whose syntax follows from the operator's kind.

`kernel` (whole tensors) and `threadblock` (tiles) make their op classes from it with
`make_operator_op`, so that an operator is one table entry in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeVar, cast

from xdsl.dialects.builtin import FunctionType, IntAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from prism.dialects.operators import OPERATORS, Kind, Operator
from prism.dialects.sym import ExprAttr, is_axis_parameter
from prism.dialects.sym_expr import SymExpr
from prism.dialects.sym_syntax import parse_expr

OpT = TypeVar("OpT", bound="OperatorOp")

CONSTANT_KEYWORD = {Kind.SCALAR: "by", Kind.COMPOSITE: "eps"}
"""The kinds that take a constant, and the keyword before it."""


class OperatorOp(IRDLOperation):
    """
    An operator of the table.

    Syntax: `dialect.name %a, %b : (T, T) -> T`, with `dim 1` for a reduction, `by <1 / d>` for a
    scalar operator and `eps <1 / 100000>` for a composite before the colon.
    """

    inputs = var_operand_def()
    result = result_def()
    dim = opt_prop_def(IntAttr)
    constant = opt_prop_def(ExprAttr)

    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue | Operation],
        result_type: Attribute,
        *,
        dim: int | None = None,
        constant: SymExpr | None = None,
    ) -> None:
        super().__init__(
            operands=[[SSAValue.get(value) for value in inputs]],
            result_types=[result_type],
            properties={
                "dim": None if dim is None else IntAttr(dim),
                "constant": None if constant is None else ExprAttr(constant),
            },
        )

    @classmethod
    def entry(cls) -> Operator:
        """The table entry of this op class."""
        return OPERATORS[cls.name.partition(".")[2]]

    @property
    def operator(self) -> Operator:
        """The table entry of this op."""
        return self.entry()

    @property
    def dim_value(self) -> int | None:
        """The reduced dim of a reduction, else None."""
        return None if self.dim is None else self.dim.data

    @property
    def constant_value(self) -> SymExpr | None:
        """The constant of a scalar operator or a composite, else None."""
        return None if self.constant is None else self.constant.data

    def verify_(self) -> None:
        operator = self.operator
        if len(self.inputs) != operator.arity:
            raise VerifyException(f"expected {operator.arity} operand(s), found {len(self.inputs)}")
        if (self.dim is None) == (operator.kind is Kind.SUM):
            expected = "expected" if operator.kind is Kind.SUM else "unexpected"
            raise VerifyException(f"{expected} a reduced dim: `dim N`")
        if (self.constant is None) == (operator.kind in CONSTANT_KEYWORD):
            expected = "expected" if operator.kind in CONSTANT_KEYWORD else "unexpected"
            raise VerifyException(f"{expected} a constant: `by <..>` or `eps <..>`")
        if self.constant is not None:
            axes = sorted(filter(is_axis_parameter, self.constant.data.symbols()))
            if axes:
                raise VerifyException(
                    f"constant <{self.constant.data}>: expected sizes of the workload only, "
                    f"found {axes[0]}"
                )
            value = self.constant.data.as_constant()
            if operator.kind is Kind.COMPOSITE and (value is None or value < 0):
                raise VerifyException(f"eps: expected a number of at least 0, found {value}")
        self.verify_types()

    def verify_types(self) -> None:
        """Checks operand and result types; each dialect has its own."""
        raise NotImplementedError

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        dim = constant = None
        if parser.parse_optional_keyword("dim"):
            dim = parser.parse_integer(allow_boolean=False)
        keyword = CONSTANT_KEYWORD.get(cls.entry().kind)
        if keyword is not None and parser.parse_optional_keyword(keyword):
            with parser.in_angle_brackets():
                constant = parse_expr(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        function_type = parser.parse_function_type()
        outputs = function_type.outputs.data
        if len(outputs) != 1:
            parser.raise_error(f"expected 1 result, found {len(outputs)}", pos, parser.pos)
        inputs = parser.resolve_operands(operands or (), function_type.inputs.data, pos)
        op = cls(inputs, outputs[0], dim=dim, constant=constant)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        if self.inputs:
            printer.print_string(" ")
        printer.print_list(self.inputs, printer.print_ssa_value)
        if self.dim is not None:
            printer.print_string(f" dim {self.dim.data}")
        if self.constant is not None:
            keyword = CONSTANT_KEYWORD.get(self.operator.kind, "by")
            printer.print_string(f" {keyword} <{self.constant.data}>")
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(
            FunctionType.from_lists([value.type for value in self.inputs], [self.result.type])
        )


def make_operator_op(base: type[OpT], dialect: str, operator: Operator) -> type[OpT]:
    """The op class `dialect.name` of a table entry."""
    class_name = "".join(part.title() for part in operator.name.split("_")) + "Op"
    namespace = {
        "__module__": base.__module__,
        "__doc__": f"The operator `{operator.name}` of `prism/dialects/operators.py`.",
        "name": f"{dialect}.{operator.name}",
    }
    return cast("type[OpT]", irdl_op_definition(type(class_name, (base,), namespace)))
