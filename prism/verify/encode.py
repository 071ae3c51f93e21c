"""
Encodes functions as terms: a workload as terms over whole tensors, a graph with part, comb and red.

Only operators and maps are read, never the layouts in tile types. A graph is refused here when it
has no meaning whatever the algebra: operands of other shapes, a tile of one iteration used after
its loop, a sum over an axis that the summand does not depend on, blocks that write different values
to one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn

from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from prism.dialects import threadblock
from prism.dialects.expansions import expand
from prism.dialects.kernel import GraphDefOp
from prism.dialects.operator_op import OperatorOp
from prism.dialects.operators import OPERATORS, Attributes
from prism.dialects.shapes import required, result_shape
from prism.dialects.sym import shape_of
from prism.dialects.sym_expr import ONE, Polynomial, SymExpr
from prism.verify.language import BINARY, UNARY
from prism.verify.terms import Constant, IllShapedError, Shape, TermTable, shape_text


class EncodeError(Exception):
    """A function without a term; the message says why, naming the op."""


class NotEqualError(EncodeError):
    """The function computes nothing well-defined, so it is equal to no workload."""


class UnsupportedError(EncodeError):
    """The function has something that the encoder does not know, so nothing is decided."""


@dataclass(frozen=True)
class Step:
    """An accum or output and its term; `settled` if the term depends on no loop any more."""

    op: Operation
    term: int
    settled: bool


@dataclass(frozen=True)
class Encoded:
    """The terms that a function returns, the sums and outputs on the way and the axes in use."""

    outputs: tuple[int, ...]
    steps: tuple[Step, ...]
    axes: tuple[str, ...]


@dataclass
class _Graph:
    """The scope of one threadblock graph: its axes under names unique in the function."""

    grid: tuple[str, ...]
    loops: tuple[str, ...]
    prefix: str
    done: dict[SSAValue, frozenset[str]] = field(default_factory=dict[SSAValue, frozenset[str]])

    def axis(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def depth(self, axis: str) -> int:
        """The nesting depth of a loop axis (in its unique name), -1 for a grid axis."""
        name = axis[len(self.prefix) :]
        return self.loops.index(name) if name in self.loops else -1


def encode_function(function: func.FuncOp, table: TermTable) -> Encoded:
    """
    The terms that a workload or candidate returns.

    Raises NotEqualError or UnsupportedError.
    """
    return _Encoder(table).function(function)


class _Encoder:
    def __init__(self, table: TermTable) -> None:
        self.table = table
        self.values: dict[SSAValue, int] = {}
        self.steps: list[Step] = []
        self.axes: list[str] = []
        self.shapes: dict[int, tuple[SymExpr, ...]] = {}
        self.graphs = 0

    def function(self, function: func.FuncOp) -> Encoded:
        if len(function.body.blocks) != 1:
            raise UnsupportedError("expected a function with a body of one block")
        for index, argument in enumerate(function.body.block.args):
            self.values[argument] = self.table.input(str(index), _shape(argument))
        outputs: tuple[int, ...] = ()
        for op in function.body.block.ops:
            match op:
                case OperatorOp():
                    self.values[op.result] = self._checked(op, lambda op=op: self._operator(op))
                case GraphDefOp():
                    self._graph(op)
                case func.ReturnOp():
                    outputs = tuple(self.values[value] for value in op.arguments)
                case _:
                    raise UnsupportedError(f"{op_name(op)} is not known to the verifier")
        return Encoded(outputs, tuple(self.steps), tuple(self.axes))

    def _checked(self, op: Operation, build: Callable[[], int]) -> int:
        try:
            return build()
        except IllShapedError as error:
            raise NotEqualError(f"{op_name(op)}: {error}") from error

    def _operator(self, op: OperatorOp) -> int:
        """The term of an operator of the table, on whole tensors or on tiles."""
        operands = [self.values[value] for value in op.inputs]
        for value, operand in zip(op.inputs, operands, strict=True):
            self.shapes.setdefault(operand, shape_of(value.type) if _is_tensor(value) else ())
        try:
            return expand(self, op.operator.name, operands, op.attribute_values)
        except VerifyException as error:
            raise UnsupportedError(f"{op_name(op)}: {error}") from error
        except UnsupportedError as error:
            raise UnsupportedError(f"{op_name(op)} is not known to the verifier{error}") from error

    def shape(self, value: int) -> tuple[SymExpr, ...]:
        """The shape of a term that is an operand of a composite, or inside its expansion."""
        return self.shapes[value]

    def apply(self, name: str, operands: Sequence[int], attributes: Attributes) -> int:
        """The term of an operator that is no composite. Raises UnsupportedError."""
        term = self._apply(name, operands, attributes)
        shapes = [self.shapes.get(operand, ()) for operand in operands]
        if all(shapes) and term not in self.shapes:
            self.shapes[term] = result_shape(OPERATORS[name], shapes, attributes)
        return term

    def _apply(self, name: str, operands: Sequence[int], attributes: Attributes) -> int:
        table, first = self.table, operands[0]
        rank = len(table.shape(first))
        match name:
            case "matmul":
                return table.matmul(*operands)
            case "sum":
                return table.sum(rank - required(attributes.dim, "dim"), first)
            case "max":
                return table.max(rank - required(attributes.dim, "dim"), first)
            case "transpose":
                return self._transpose(required(attributes.permutation, "permutation"), first)
            case "slice":
                dim = required(attributes.dim, "dim")
                if len(table.shape(first)[dim]) > 1:
                    raise UnsupportedError(" along a dim that an axis cuts")
                window = table.window(*required(attributes.bounds, "bounds"))
                return table.slice(first, rank - dim, window)
            case "scale":
                return self._scale(required(attributes.constant, "constant"), first)
            case "shift":
                return self._shift(required(attributes.constant, "constant"), first)
            case "at_least":
                return self._at_least(required(attributes.constant, "constant"), first)
            case "at_most":
                least = -required(attributes.constant, "constant")
                minus = self._scale(_MINUS_ONE, first)
                return self._scale(_MINUS_ONE, self._at_least(least, minus))
            case "pow":
                return self._power(required(attributes.constant, "constant"), first)
            case _ if name in BINARY:
                return table.binary(name, *operands)
            case _ if name in UNARY:
                return table.unary(name, first)
            case _:
                raise UnsupportedError("")

    def _transpose(self, permutation: Sequence[int], operand: int) -> int:
        """Exchanges two dims at a time, until dim i is dim `permutation[i]` of the operand."""
        rank, found = len(permutation), list(range(len(permutation)))
        for dim, wanted in enumerate(permutation):
            at = found.index(wanted)
            if at != dim:
                operand = self.table.swap(operand, rank - at, rank - dim)
                found[at], found[dim] = found[dim], found[at]
        return operand

    def _at_least(self, constant: SymExpr, operand: int) -> int:
        """The maximum with a constant, which is 0 times the operand plus it."""
        level = self._shift(constant, self.table.scale(Constant(Fraction(0)), operand))
        return self.table.binary("maximum", operand, level)

    def _power(self, constant: SymExpr, operand: int) -> int:
        """Products, reciprocals and roots; other exponents are not known."""
        exponent = constant.as_constant()
        table = self.table
        if exponent is None or exponent == 0 or abs(exponent) > _MAX_POWER:
            raise UnsupportedError(f" with the exponent {constant}")
        if exponent.denominator not in (1, 2):
            raise UnsupportedError(f" with the exponent {constant}")
        base = operand if exponent.denominator == 1 else table.unary("sqrt", operand)
        power = base
        for _ in range(abs(exponent.numerator) - 1):
            power = table.binary("mul", power, base)
        return power if exponent > 0 else table.unary("reciprocal", power)

    def _scale(self, constant: SymExpr, operand: int) -> int:
        """A constant of several summands is the sum of what each gives."""
        terms = [self.table.scale(part, operand) for part in self._constants(constant)]
        total = terms[0]
        for term in terms[1:]:
            total = self.table.binary("add", total, term)
        return total

    def _shift(self, constant: SymExpr, operand: int) -> int:
        for part in self._constants(constant):
            operand = self.table.shift(part, operand)
        return operand

    def _constants(self, expression: SymExpr) -> list[Constant]:
        if expression.denominator != ONE:
            raise UnsupportedError(f"the constant <{expression}> divides by a sum")
        numerator: Polynomial = expression.numerator
        return [self.table.monomial(value, dict(monomial)) for monomial, value in numerator] or [
            Constant(Fraction(0))
        ]

    def _graph(self, op: GraphDefOp) -> None:
        graph = _Graph(op.grid_axes, op.loop_axes, f"{self.graphs}.")
        self.graphs += 1
        self.axes += [graph.axis(name) for name in (*graph.grid, *graph.loops)]
        for argument, value in zip(op.body.block.args, op.inputs, strict=True):
            self.values[argument] = self.values[value]
        for inner in op.body.block.ops:
            if isinstance(inner, threadblock.YieldOp):
                for result, value in zip(op.results_, inner.arguments, strict=True):
                    self.values[result] = self.values[value]
                return
            if len(inner.results) != 1:
                raise UnsupportedError(f"{op_name(inner)} is not known to the verifier")
            (result,) = inner.results
            self.values[result] = self._checked(inner, lambda i=inner: self._tile(i, graph))
            graph.done[result] = self._scope(inner, graph)
        raise UnsupportedError(f"{op_name(op)} does not end with threadblock.yield")

    def _tile(self, op: Operation, graph: _Graph) -> int:
        match op:
            case threadblock.InputOp():
                return self._input(op, graph)
            case threadblock.AccumOp():
                term = self._accum(op, graph)
            case threadblock.OutputOp():
                term = self._output(op, graph)
            case threadblock.TileOperatorOp():
                return self._operator(op)
            case _:
                raise UnsupportedError(f"{op_name(op)} is not known to the verifier")
        settled = all(graph.depth(axis) < 0 for axis in self.table.axes(term))
        self.steps.append(Step(op, term, settled))
        return term

    def _input(self, op: threadblock.InputOp, graph: _Graph) -> int:
        """Grid axes cut first, then loops, the outermost first."""
        if not (op.imap.concrete and op.fmap.concrete):
            raise UnsupportedError(f"{op_name(op)}: the maps are symbolic: instantiate them first")
        term = self.values[op.tensor]
        rank = len(self.table.shape(term))
        imap, fmap = op.imap.cuts, op.fmap.cuts
        self._known_axes(op, imap, graph.grid, "grid")
        self._known_axes(op, fmap, graph.loops, "loop")
        for names, cuts in ((graph.grid, imap), (graph.loops, fmap)):
            for name in names:
                if name in cuts:
                    term = self.table.part(term, rank - cuts[name], graph.axis(name))
        return term

    def _accum(self, op: threadblock.AccumOp, graph: _Graph) -> int:
        name = op.axis.data
        self._known_axes(op, {name: 0}, graph.loops, "loop")
        axis, term = graph.axis(name), self.values[op.tile]
        axes = frozenset[str]().union(*(self.table.axes(self.values[v]) for v in op.operands))
        if axis not in axes:
            self._refuse(
                op, f"the summand does not depend on {name}: it counts as often as the loop runs"
            )
        if any(graph.depth(a) > graph.depth(axis) for a in axes):
            self._refuse(op, "the summand also depends on a loop inside this one")
        match op.kind_value:
            case "sum":
                return self.table.red(term, axis)
            case "max":
                return self.table.redmax(term, axis)
            case "rescaled" if op.maximum is not None:
                return self.table.rescaled(term, self.values[op.maximum], axis)
            case kind:
                raise UnsupportedError(f"{op_name(op)}: kind {kind} is not known to the verifier")

    def _output(self, op: threadblock.OutputOp, graph: _Graph) -> int:
        if not op.omap.concrete:
            raise UnsupportedError(f"{op_name(op)}: the omap is symbolic: instantiate it first")
        if op.omap.new_axis is not None:
            raise UnsupportedError(f"{op_name(op)}: a new dim is not known yet")
        term, omap = self.values[op.tile], op.omap.cuts
        rank = len(self.table.shape(term))
        self._known_axes(op, omap, graph.grid, "grid")
        for name in graph.loops:
            if graph.axis(name) in self.table.axes(term):
                self._refuse(op, f"the tile is one of the loop over {name}, not accumulated")
        for name in graph.grid:
            axis = graph.axis(name)
            depends = axis in self.table.axes(term)
            if depends and name not in omap:
                self._refuse(op, f"blocks along {name} write different values to one place")
            if not depends and name in omap:
                self._refuse(op, f"blocks along {name} write one value to different places")
            if name in omap:
                term = self.table.comb(term, rank - omap[name], axis)
        expected = _shape(op.result)
        if self.table.shape(term) != expected:
            found = shape_text(self.table.shape(term))
            self._refuse(op, f"expected the shape {shape_text(expected)}, found {found}")
        return term

    def _scope(self, op: Operation, graph: _Graph) -> frozenset[str]:
        """The loops after which the result exists; refuses a use before that."""
        done = frozenset[str]().union(*(graph.done.get(v, frozenset()) for v in op.operands))
        for axis in sorted(done):
            for value in op.operands:
                if value not in graph.done:
                    continue
                late = [a for a in self.table.axes(self.values[value]) if graph.depth(a) >= 0]
                if any(graph.depth(a) >= graph.depth(axis) for a in late):
                    loop = axis[len(graph.prefix) :]
                    self._refuse(
                        op, f"uses a tile of the loop over {loop} with a value from after it"
                    )
        if isinstance(op, threadblock.AccumOp):
            done |= {graph.axis(op.axis.data)}
        return done

    def _known_axes(
        self, op: Operation, names: dict[str, int], known: Sequence[str], what: str
    ) -> None:
        for name in names:
            if name not in known:
                self._refuse(op, f"{name} is not a {what} axis of the graph")

    @staticmethod
    def _refuse(op: Operation, reason: str) -> NoReturn:
        raise NotEqualError(f"{op_name(op)}: {reason}")


_MINUS_ONE = SymExpr.constant(-1)

_MAX_POWER = 8


def _is_tensor(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType)


def op_name(op: Operation) -> str:
    """`%m = threadblock.matmul`, for messages."""
    names = [f"%{result.name_hint}" for result in op.results if result.name_hint]
    return f"{', '.join(names)} = {op.name}" if names else op.name


def _shape(value: SSAValue) -> Shape:
    try:
        return tuple((str(size),) for size in shape_of(value.type))
    except VerifyException as error:
        raise UnsupportedError(f"%{value.name_hint or '?'}: {error}") from error
