"""
The ops of the operator table: one base class whose syntax follows from the operator's entry.

`kernel` (whole tensors) and `threadblock` (tiles) make their op classes from it with
`make_operator_op`, so that an operator is one table entry in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, FunctionType, IntAttr
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

from prism.dialects.operators import OPERATORS, Attributes, Kind, Operator
from prism.dialects.shapes import NO_ATTRIBUTES
from prism.dialects.sym import ExprAttr, ShapeAttr, is_axis_parameter, shape_text
from prism.dialects.sym_expr import SymExpr
from prism.dialects.sym_syntax import parse_expr

OpT = TypeVar("OpT", bound="OperatorOp")

SYNTAX = {
    "dim": "`dim N`",
    "constant": "`by <..>` or `eps <..>`",
    "bounds": "`from <..> to <..>`",
    "permutation": "`perm [..]`",
    "shape": "`shape [..]`",
}
"""Each attribute of `Attributes` as it is written."""

WHAT = {
    "dim": "dim",
    "constant": "constant",
    "bounds": "pair of bounds",
    "permutation": "permutation",
    "shape": "shape",
}
"""Each attribute of `Attributes` in words."""


def constant_keyword(operator: Operator) -> str:
    """The keyword before the constant of an operator: that of a composite is an epsilon."""
    return "eps" if operator.kind is Kind.COMPOSITE else "by"


class OperatorOp(IRDLOperation):
    """
    An operator of the table.

    Syntax: `dialect.name %a, %b : (T, T) -> T`, before the colon the attributes that the operator
    takes: `dim 1`, `by <1 / d>` (of a composite `eps <1 / 100000>`), `from <0> to <d / 2>`,
    `perm [1, 0]`, `shape [n, d]`.
    """

    inputs = var_operand_def()
    result = result_def()
    dim = opt_prop_def(IntAttr)
    constant = opt_prop_def(ExprAttr)
    bounds = opt_prop_def(ArrayAttr[ExprAttr])
    permutation = opt_prop_def(ArrayAttr[IntAttr])
    shape = opt_prop_def(ShapeAttr)

    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue | Operation],
        result_type: Attribute,
        *,
        dim: int | None = None,
        constant: SymExpr | None = None,
        attributes: Attributes = NO_ATTRIBUTES,
    ) -> None:
        dim = attributes.dim if dim is None else dim
        constant = attributes.constant if constant is None else constant
        bounds, permutation, shape = attributes.bounds, attributes.permutation, attributes.shape
        super().__init__(
            operands=[[SSAValue.get(value) for value in inputs]],
            result_types=[result_type],
            properties={
                "dim": None if dim is None else IntAttr(dim),
                "constant": None if constant is None else ExprAttr(constant),
                "bounds": None if bounds is None else ArrayAttr([ExprAttr(b) for b in bounds]),
                "permutation": None
                if permutation is None
                else ArrayAttr([IntAttr(d) for d in permutation]),
                "shape": None if shape is None else ShapeAttr(shape),
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
        """The dim of a reduction, a slice or a concatenation, else None."""
        return None if self.dim is None else self.dim.data

    @property
    def constant_value(self) -> SymExpr | None:
        """The constant of a scalar operator or a composite, else None."""
        return None if self.constant is None else self.constant.data

    @property
    def attribute_values(self) -> Attributes:
        """All attributes as a value."""
        if not self.properties:
            return NO_ATTRIBUTES
        bounds = None
        if self.bounds is not None:
            if len(self.bounds) != 2:
                raise VerifyException(f"bounds: expected 2, found {len(self.bounds)}")
            first, second = self.bounds
            bounds = (first.data, second.data)
        return Attributes(
            self.dim_value,
            self.constant_value,
            bounds,
            None if self.permutation is None else tuple(d.data for d in self.permutation),
            None if self.shape is None else self.shape.data,
        )

    def verify_(self) -> None:
        operator = self.operator
        if operator.arity is None and len(self.inputs) < 2:
            raise VerifyException(f"expected 2 operands or more, found {len(self.inputs)}")
        if operator.arity is not None and len(self.inputs) != operator.arity:
            raise VerifyException(f"expected {operator.arity} operand(s), found {len(self.inputs)}")
        takes = operator.takes
        if takes or self.properties:
            self._verify_attributes(takes)
        self.verify_types()

    def _verify_attributes(self, takes: Sequence[str]) -> None:
        for name, syntax in SYNTAX.items():
            if (name in takes) != (name in self.properties):
                expected = "expected a" if name in takes else "unexpected"
                raise VerifyException(f"{expected} {WHAT[name]}: {syntax}")
        given = self.attribute_values
        named = [("constant", given.constant)] if given.constant is not None else []
        named += [("bound", bound) for bound in given.bounds or ()]
        named += [("size", size) for size in given.shape or ()]
        for what, expression in named:
            axes = sorted(filter(is_axis_parameter, expression.symbols()))
            if axes:
                raise VerifyException(
                    f"{what} <{expression}>: expected sizes of the workload only, found {axes[0]}"
                )
        if self.operator.number and given.constant is not None:
            value = given.constant.as_constant()
            keyword = constant_keyword(self.operator)
            if value is None or (keyword == "eps" and value < 0):
                least = " of at least 0" if keyword == "eps" else ""
                raise VerifyException(
                    f"{keyword}: expected a number{least}, found {given.constant}"
                )

    def verify_types(self) -> None:
        """Checks operand and result types; each dialect has its own."""
        raise NotImplementedError

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        given = cls._parse_attributes(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        function_type = parser.parse_function_type()
        outputs = function_type.outputs.data
        if len(outputs) != 1:
            parser.raise_error(f"expected 1 result, found {len(outputs)}", pos, parser.pos)
        inputs = parser.resolve_operands(operands or (), function_type.inputs.data, pos)
        op = cls(inputs, outputs[0], attributes=given)
        op.attributes |= attributes
        return op

    @classmethod
    def _parse_attributes(cls, parser: Parser) -> Attributes:
        """Those that are there, in the order of `SYNTAX`; the verifier says which are missing."""

        def expression() -> SymExpr:
            with parser.in_angle_brackets():
                return parse_expr(parser)

        dim = constant = bounds = permutation = shape = None
        if parser.parse_optional_keyword("dim"):
            dim = parser.parse_integer(allow_boolean=False)
        if parser.parse_optional_keyword(constant_keyword(cls.entry())):
            constant = expression()
        if parser.parse_optional_keyword("from"):
            first = expression()
            parser.parse_keyword("to")
            bounds = (first, expression())
        if parser.parse_optional_keyword("perm"):
            permutation = tuple(
                parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE,
                    lambda: parser.parse_integer(allow_boolean=False, allow_negative=False),
                )
            )
        if parser.parse_optional_keyword("shape"):
            shape = tuple(
                parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, lambda: parse_expr(parser)
                )
            )
        return Attributes(dim, constant, bounds, permutation, shape)

    def print(self, printer: Printer) -> None:
        if self.inputs:
            printer.print_string(" ")
        printer.print_list(self.inputs, printer.print_ssa_value)
        given = self.attribute_values
        if given.dim is not None:
            printer.print_string(f" dim {given.dim}")
        if given.constant is not None:
            printer.print_string(f" {constant_keyword(self.operator)} <{given.constant}>")
        if given.bounds is not None:
            printer.print_string(f" from <{given.bounds[0]}> to <{given.bounds[1]}>")
        if given.permutation is not None:
            printer.print_string(f" perm {list(given.permutation)}")
        if given.shape is not None:
            printer.print_string(f" shape {shape_text(given.shape)}")
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
