"""
Exact execution of workloads and graphs, tile by tile as a kernel would do, with `Exact` numbers.

The second judge of a proof: it shares with the prover what an operator computes on an element, and
neither terms nor axioms nor the encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
from xdsl.dialects import func
from xdsl.ir import SSAValue

from prism.dialects import threadblock
from prism.dialects.expansions import expand
from prism.dialects.kernel import GraphDefOp
from prism.dialects.operator_op import OperatorOp
from prism.dialects.operators import Attributes
from prism.dialects.shapes import required
from prism.dialects.sym import shape_of
from prism.dialects.sym_expr import SymExpr
from prism.verify.denotation import (
    BINARY_MEANING,
    UNARY_MEANING,
    chunk,
    largest,
    rescaled_sum,
    total,
)
from prism.verify.encode import op_name
from prism.verify.exact import UNDEFINED, Exact, ExactArray, each, exact

Sizes = Mapping[str, int]


class NotExecutableError(Exception):
    """Something that cannot be executed exactly; the message names the op."""


class Memo:
    """
    What was computed at sizes of the parameters, by what it was computed from: the graphs of one
    workload share most of their tiles. No array in it may be written to.
    """

    def __init__(self) -> None:
        self.computed = 0
        self._known: dict[Hashable, tuple[Sequence[ExactArray], ExactArray]] = {}

    def get(
        self, what: Hashable, operands: Sequence[ExactArray], compute: Callable[[], ExactArray]
    ) -> ExactArray:
        """The result of `what` on arrays, which are told apart by identity."""
        key = (what, tuple(map(id, operands)))
        if key not in self._known:
            self.computed += 1
            # The operands are kept, so that their ids stay their own.
            self._known[key] = (operands, compute())
        return self._known[key][1]


def execute(
    function: func.FuncOp,
    inputs: Sequence[ExactArray],
    sizes: Sizes,
    counts: Mapping[str, int],
    memo: Memo | None = None,
) -> list[ExactArray]:
    """
    The results of a function at sizes of its parameters, each axis of its graphs with as many
    indices as `counts` says. Raises NotExecutableError, and UndecidedError of `exact`. A `memo` is
    shared by functions that are executed on the same inputs at the same sizes.
    """
    memo = memo or Memo()
    values: dict[SSAValue, ExactArray] = dict(zip(function.body.block.args, inputs, strict=True))
    for op in function.body.block.ops:
        match op:
            case OperatorOp():
                operands = [values[value] for value in op.inputs]
                values[op.result] = _operator(op, operands, sizes, memo)
            case GraphDefOp():
                tensors = [values[value] for value in op.inputs]
                results = _graph(op, tensors, sizes, counts, memo)
                values.update(zip(op.results_, results, strict=True))
            case func.ReturnOp():
                return [values[value] for value in op.arguments]
            case _:
                raise NotExecutableError(op_name(op))
    raise NotExecutableError("a function without func.return")


def _operator(
    op: OperatorOp, operands: Sequence[ExactArray], sizes: Sizes, memo: Memo
) -> ExactArray:
    name, attributes = op.operator.name, op.attribute_values
    try:
        return memo.get(
            (name, attributes), operands, lambda: expand(_Arrays(sizes), name, operands, attributes)
        )
    except NotExecutableError as error:
        raise NotExecutableError(op_name(op)) from error


@dataclass(frozen=True)
class _Arrays:
    """Builds the expansions of composites as arrays."""

    sizes: Sizes

    def shape(self, value: ExactArray) -> tuple[SymExpr, ...]:
        return tuple(SymExpr.constant(size) for size in value.shape)

    def apply(
        self, name: str, operands: Sequence[ExactArray], attributes: Attributes
    ) -> ExactArray:
        first = operands[0]
        match name:
            case "matmul":
                left, right = operands
                return total(left[..., :, :, None] * right[..., None, :, :], -2)
            case "sum":
                dim = required(attributes.dim, "dim")
                return np.expand_dims(total(first, dim), dim)
            case "max":
                dim = required(attributes.dim, "dim")
                return np.expand_dims(largest(first, dim), dim)
            case "transpose":
                return np.transpose(first, required(attributes.permutation, "permutation"))
            case "slice":
                dim = required(attributes.dim, "dim")
                ends = required(attributes.bounds, "bounds")
                start, end = (int(bound.evaluate(self.sizes)) for bound in ends)
                return np.moveaxis(np.moveaxis(first, dim, 0)[start:end], 0, dim)
            case "scale":
                return each(self._constant(attributes).__mul__, first)
            case "shift":
                return each(self._constant(attributes).__add__, first)
            case "at_least":
                return each(self._constant(attributes).maximum, first)
            case "at_most":
                return each(self._constant(attributes).minimum, first)
            case "pow":
                exponent = self._number(attributes)
                return each(partial(_power, exponent), first)
            case _ if name in UNARY_MEANING:
                return each(UNARY_MEANING[name], first)
            case _ if name in BINARY_MEANING:
                return each(BINARY_MEANING[name], *operands)
            case _:
                raise NotExecutableError(name)

    def _number(self, attributes: Attributes) -> Fraction:
        return required(attributes.constant, "constant").evaluate(self.sizes)

    def _constant(self, attributes: Attributes) -> Exact:
        return exact(self._number(attributes))


def _power(exponent: Fraction, base: Exact) -> Exact:
    if exponent.denominator not in (1, 2) or exponent == 0:
        raise NotExecutableError("pow")
    root = base if exponent.denominator == 1 else base.sqrt()
    power = root
    for _ in range(abs(exponent.numerator) - 1):
        power = power * root
    return power if exponent > 0 else 1 / power


def _graph(
    graph: GraphDefOp,
    tensors: Sequence[ExactArray],
    sizes: Sizes,
    counts: Mapping[str, int],
    memo: Memo,
) -> list[ExactArray]:
    last = graph.body.block.last_op
    if not isinstance(last, threadblock.YieldOp):
        raise NotExecutableError(op_name(graph))
    inputs: dict[SSAValue, ExactArray] = dict(zip(graph.body.block.args, tensors, strict=True))
    results: list[ExactArray] = []
    for value in last.arguments:
        output = value.owner
        if not isinstance(output, threadblock.OutputOp) or output.omap.new_axis is not None:
            raise NotExecutableError(op_name(graph))
        shape = [int(size.evaluate(sizes)) for size in shape_of(output.result.type)]
        results.append(np.full(shape, UNDEFINED, dtype=object))
    for indices in product(*(range(counts[axis]) for axis in graph.grid_axes)):
        at = dict(zip(graph.grid_axes, indices, strict=True))
        block = _Block(graph, inputs, sizes, counts, at, memo)
        for value, result in zip(last.arguments, results, strict=True):
            output = value.owner
            if isinstance(output, threadblock.OutputOp):
                place = block.place(result.shape, output.omap.cuts, {})
                result[place] = block.tile(output.tile, {})
    return results


@dataclass
class _Block:
    """One block of a graph: the tiles of each value by the indices of the loops it varies with."""

    graph: GraphDefOp
    inputs: Mapping[SSAValue, ExactArray]
    sizes: Sizes
    counts: Mapping[str, int]
    indices: Mapping[str, int]
    shared: Memo
    _memo: dict[tuple[SSAValue, tuple[tuple[str, int], ...]], ExactArray] = field(
        default_factory=dict[tuple[SSAValue, tuple[tuple[str, int], ...]], ExactArray]
    )

    def tile(self, value: SSAValue, loops: Mapping[str, int]) -> ExactArray:
        """The tile at indices of the loops around it."""
        key = (value, tuple(sorted(loops.items())))
        if key not in self._memo:
            self._memo[key] = self._compute(value, loops)
        return self._memo[key]

    def _compute(self, value: SSAValue, loops: Mapping[str, int]) -> ExactArray:
        match value.owner:
            case threadblock.InputOp() as op:
                tensor = self.inputs[op.tensor]
                place = self.place(tensor.shape, {**op.imap.cuts, **op.fmap.cuts}, loops)
                bounds = tuple((cut.start, cut.stop) for cut in place)
                return self.shared.get(bounds, [tensor], lambda: tensor[place])
            case threadblock.AccumOp() as op:
                tiles = self._family(op.tile, op.axis.data, loops)
                if op.maximum is not None:
                    maxima = self._family(op.maximum, op.axis.data, loops)
                    both = [*tiles, *maxima]
                    return self.shared.get("rescaled", both, lambda: rescaled_sum(tiles, maxima))
                fold = largest if op.kind_value == "max" else total
                return self.shared.get(fold, tiles, lambda: fold(np.stack(tiles), 0))
            case OperatorOp() as op:
                tiles = [self.tile(v, loops) for v in op.inputs]
                return _operator(op, tiles, self.sizes, self.shared)
            case _:
                raise NotExecutableError(f"%{value.name_hint or '?'}")

    def _family(self, value: SSAValue, axis: str, loops: Mapping[str, int]) -> list[ExactArray]:
        return [self.tile(value, {**loops, axis: index}) for index in range(self.counts[axis])]

    def place(
        self, shape: Sequence[int], cuts: Mapping[str, int], loops: Mapping[str, int]
    ) -> tuple[slice, ...]:
        """The elements that axes choose, grid axes before loops, the outermost first."""
        bounds = [(0, extent) for extent in shape]
        indices = {**self.indices, **loops}
        for axis in (*self.graph.grid_axes, *self.graph.loop_axes):
            if axis in cuts:
                if axis not in indices:
                    raise NotExecutableError(f"axis {axis} outside of its loop")
                start, end = bounds[cuts[axis]]
                first, last = chunk(end - start, self.counts[axis], indices[axis])
                bounds[cuts[axis]] = (start + first, start + last)
        return tuple(slice(start, end) for start, end in bounds)
