"""
The reference interpreter: what workloads and graphs mean, in float64 numpy.

A workload is evaluated on whole arrays. A candidate is executed as its graph says: block by block,
loop index by loop index, tile by tile, with chunks cut by ceil, so that the last may be short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from prism.dialects import threadblock
from prism.dialects.kernel import GraphDefOp
from prism.dialects.operator_op import OperatorOp
from prism.dialects.operators import Kind
from prism.dialects.shapes import ONE, Shape, kept_dims
from prism.dialects.sym import shape_of
from prism.dialects.sym_expr import SymExpr
from prism.errors import PrismError
from prism.verify.encode import op_name
from prism.verify.operator_values import OPERATOR_VALUES, Array, Values

Indices = Mapping[str, int]
"""An index per axis."""


class EvaluationError(PrismError):
    """Inputs that do not fit the function, or a graph that cannot be executed."""


def evaluate_function(
    func_op: func.FuncOp, inputs: Sequence[NDArray[np.generic]], sizes: Mapping[str, int]
) -> list[Array]:
    """
    The results of a workload on `inputs`, in float64, at the sizes of its parameters.

    Undefined values (0 / 0, the log of a negative number) are NaN or infinite as in IEEE 754.
    Raises EvaluationError if an input does not have the shape that its type has at `sizes`.
    """
    return _evaluate(func_op, inputs, sizes, {})


def evaluate_candidate(
    func_op: func.FuncOp,
    inputs: Sequence[NDArray[np.generic]],
    sizes: Mapping[str, int],
    axis_sizes: Mapping[str, int],
) -> list[Array]:
    """
    The results of a candidate, executed tile by tile with `axis_sizes` blocks or iterations.

    `axis_sizes` has an entry for each axis, by its name (`x`, `i`) or parameter (`grid.x`,
    `loop.i`). Where blocks write different values to one element the result is NaN. A tile of a
    loop that is used after it without accum is that of the last iteration. Raises EvaluationError.
    """
    counts = {name.rpartition(".")[2]: count for name, count in axis_sizes.items()}
    for name, count in counts.items():
        if count < 1:
            raise EvaluationError(f"axis {name}: expected a size of at least 1, found {count}")
    return _evaluate(func_op, inputs, sizes, counts)


def _evaluate(
    func_op: func.FuncOp,
    inputs: Sequence[NDArray[np.generic]],
    sizes: Mapping[str, int],
    counts: Mapping[str, int],
) -> list[Array]:
    arguments = func_op.body.block.args
    if len(inputs) != len(arguments):
        raise EvaluationError(
            f"@{func_op.sym_name.data}: expected {len(arguments)} inputs, found {len(inputs)}"
        )
    values: dict[SSAValue, Array] = {}
    for argument, array in zip(arguments, inputs, strict=True):
        expected = shape_at(argument, sizes)
        if array.shape != expected:
            raise EvaluationError(
                f"input %{argument.name_hint or argument.index}: expected the shape {expected}, "
                f"found {array.shape}"
            )
        values[argument] = np.asarray(array, dtype=np.float64)
    with np.errstate(all="ignore"):
        for op in func_op.body.block.ops:
            match op:
                case OperatorOp():
                    operands = [values[value] for value in op.inputs]
                    values[op.result] = _apply(op, operands, sizes)
                case GraphDefOp():
                    sizes = _with_new_dims(op, sizes, counts)
                    tensors = [values[value] for value in op.inputs]
                    results = _Execution(op, tensors, sizes, counts).run()
                    values.update(zip(op.results_, results, strict=True))
                case func.ReturnOp():
                    return [values[value] for value in op.arguments]
                case _:
                    raise EvaluationError(f"{op_name(op)} cannot be evaluated")
    raise EvaluationError(f"@{func_op.sym_name.data}: expected func.return as its last op")


def _with_new_dims(
    graph: GraphDefOp, sizes: Mapping[str, int], counts: Mapping[str, int]
) -> Mapping[str, int]:
    """The sizes with those of new leading dims of a graph's outputs: the counts of their axes."""
    found = dict(sizes)
    for op in graph.body.block.ops:
        if not isinstance(op, threadblock.OutputOp) or (axis := op.omap.new_axis) is None:
            continue
        name = str(shape_of(op.result.type)[0])
        if found.setdefault(name, counts.get(axis, 1)) != counts.get(axis, 1):
            raise EvaluationError(f"the size {name} is that of several axes, which differ")
    return found


def shape_at(value: SSAValue, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor at the sizes of the parameters. Raises EvaluationError if unbound."""
    return tuple(_size(size, sizes) for size in shape_of(value.type))


def _size(size: SymExpr, sizes: Mapping[str, int]) -> int:
    value = _at(size, sizes)
    if value.denominator != 1:
        raise EvaluationError(f"the size {size} is {value}: expected an integer")
    return int(value)


def _at(expression: SymExpr, sizes: Mapping[str, int]) -> Fraction:
    try:
        return expression.evaluate(sizes)
    except KeyError as error:
        raise EvaluationError(f"the size {error.args[0]} is not bound") from error


def _apply(op: OperatorOp, operands: Sequence[Array], sizes: Mapping[str, int]) -> Array:
    """An operator of the table on arrays."""
    given = op.attribute_values
    at = _size if op.operator.kind is Kind.SLICE else _at
    bounds = tuple(float(at(bound, sizes)) for bound in given.bounds or ())
    values = Values(
        dim=given.dim or 0,
        constant=0.0 if given.constant is None else float(_at(given.constant, sizes)),
        bounds=(bounds[0], bounds[1]) if bounds else (0.0, 0.0),
        permutation=given.permutation or (),
        shape=() if given.shape is None else _shape_of_result(op, operands[0], given.shape, sizes),
    )
    try:
        return OPERATOR_VALUES[op.operator.name](operands, values)
    except ValueError as error:
        shapes = " and ".join(str(operand.shape) for operand in operands)
        raise EvaluationError(f"{op_name(op)}: tiles of shapes {shapes} do not meet") from error


def _shape_of_result(
    op: OperatorOp, operand: Array, target: Shape, sizes: Mapping[str, int]
) -> tuple[int, ...]:
    """
    The shape to broadcast or reshape to: `target`, with the operand's own sizes in dims that it
    keeps, which in a tile may be cut.
    """
    shape = [_size(size, sizes) for size in target]
    value = op.inputs[0].type
    source = value.whole if isinstance(value, threadblock.TileType) else shape_of(value)
    kept = (
        {dim: dim for dim, size in enumerate(source) if size != ONE}
        if op.operator.kind is Kind.BROADCAST
        else kept_dims(source, target)
    )
    for dim, place in kept.items():
        shape[place] = operand.shape[dim]
    return tuple(shape)


def chunk(extent: int, count: int, index: int) -> slice:
    """The index-th of `count` chunks of a dim, of ceil(extent / count) elements but at the end."""
    size = -(-extent // count)
    return slice(min(index * size, extent), min((index + 1) * size, extent))


class _Execution:
    """One graph on whole arrays; `memo` holds the tiles of the current block."""

    def __init__(
        self,
        graph: GraphDefOp,
        tensors: Sequence[Array],
        sizes: Mapping[str, int],
        counts: Mapping[str, int],
    ) -> None:
        self.graph = graph
        self.sizes = sizes
        self.counts = counts
        self.tensors: dict[SSAValue, Array] = dict(zip(graph.body.block.args, tensors, strict=True))
        self.memo: dict[tuple[SSAValue, tuple[int, ...]], Array] = {}
        self.varies = self._loops_of_values()
        for axis in (*graph.grid_axes, *graph.loop_axes):
            if axis not in counts:
                raise EvaluationError(f"axis {axis}: expected a size")
        for op in graph.body.block.ops:
            self._check_axes(op)

    def _check_axes(self, op: Operation) -> None:
        """Raises EvaluationError if an op names an axis that the graph does not have."""
        grid, loops = self.graph.grid_axes, self.graph.loop_axes
        match op:
            case threadblock.InputOp():
                named = ((op.imap.cuts, grid), (op.fmap.cuts, loops))
            case threadblock.AccumOp():
                named = (((op.axis.data,), loops),)
            case threadblock.OutputOp():
                new = () if op.omap.new_axis is None else (op.omap.new_axis,)
                named = (((*op.omap.cuts, *new), grid),)
            case _:
                return
        for axes, known in named:
            for axis in axes:
                if axis not in known:
                    raise EvaluationError(f"{op_name(op)}: the graph has no such axis {axis}")

    def _loops_of_values(self) -> dict[SSAValue, tuple[str, ...]]:
        """The loop axes that each tile varies with, in loop order."""
        varies: dict[SSAValue, tuple[str, ...]] = {}
        for op in self.graph.body.block.ops:
            axes = {axis for operand in op.operands for axis in varies.get(operand, ())}
            if isinstance(op, threadblock.InputOp):
                axes |= op.fmap.cuts.keys()
            elif isinstance(op, threadblock.AccumOp):
                axes -= {op.axis.data}
            ordered = tuple(axis for axis in self.graph.loop_axes if axis in axes)
            varies.update(dict.fromkeys(op.results, ordered))
        return varies

    def run(self) -> list[Array]:
        """The results of the graph."""
        terminator = self.graph.body.block.last_op
        if not isinstance(terminator, threadblock.YieldOp):
            raise EvaluationError(f"{op_name(self.graph)}: expected threadblock.yield at its end")
        outputs: list[threadblock.OutputOp] = []
        for value in terminator.arguments:
            if not isinstance(value.owner, threadblock.OutputOp):
                raise EvaluationError(f"{op_name(self.graph)}: yields what is no output")
            outputs.append(value.owner)
        results = [np.full(shape_at(output.result, self.sizes), np.nan) for output in outputs]
        written = [np.zeros(result.shape, dtype=bool) for result in results]
        grid = self.graph.grid_axes
        for indices in product(*(range(self.counts[axis]) for axis in grid)):
            self.memo.clear()
            block = dict(zip(grid, indices, strict=True))
            for output, result, done in zip(outputs, results, written, strict=True):
                self._write(output, block, result, done)
        return results

    def _write(
        self,
        output: threadblock.OutputOp,
        block: Indices,
        result: Array,
        written: NDArray[np.bool_],
    ) -> None:
        """Writes a block's tile; an element that another block wrote otherwise becomes NaN."""
        cuts = output.omap.cuts
        new = output.omap.new_axis
        if new is not None:
            result, written = result[block[new]], written[block[new]]
        place = self._place(
            result.shape, {axis: cuts[axis] for axis in block if axis in cuts}, block
        )
        tile = self._tile(output.tile, block)
        if result[place].shape != tile.shape:
            raise EvaluationError(
                f"{op_name(output)}: a tile of shape {tile.shape} is written to a place of shape "
                f"{result[place].shape}"
            )
        conflict = written[place] & ~np.isclose(result[place], tile, equal_nan=True)
        result[place] = np.where(conflict, np.nan, tile)
        written[place] = True

    def _place(
        self, shape: Sequence[int], cuts: Mapping[str, int], indices: Indices
    ) -> tuple[slice, ...]:
        """The slices that the indices of axes choose; later axes cut what earlier ones leave."""
        place = [slice(0, extent) for extent in shape]
        for axis, dim in cuts.items():
            outer = place[dim]
            inner = chunk(outer.stop - outer.start, self.counts[axis], indices[axis])
            place[dim] = slice(outer.start + inner.start, outer.start + inner.stop)
        return tuple(place)

    def _tile(self, value: SSAValue, indices: Indices) -> Array:
        """The tile of a value at indices of grid and loops; a loop without one is at its end."""
        loops = self.varies[value]
        at = {axis: indices.get(axis, self.counts[axis] - 1) for axis in loops}
        key = (value, tuple(at.values()))
        if key not in self.memo:
            block = {axis: indices[axis] for axis in self.graph.grid_axes}
            self.memo[key] = self._compute(value, {**block, **at})
        return self.memo[key]

    def _compute(self, value: SSAValue, indices: Indices) -> Array:
        match value.owner:
            case threadblock.InputOp() as op:
                tensor = self.tensors[op.tensor]
                imap, fmap = op.imap.cuts, op.fmap.cuts
                axes = (*self.graph.grid_axes, *self.graph.loop_axes)
                cuts = {a: {**imap, **fmap}[a] for a in axes if a in imap or a in fmap}
                return tensor[self._place(tensor.shape, cuts, indices)]
            case threadblock.AccumOp() as op:
                return self._accumulate(op, indices)
            case OperatorOp() as op:
                tiles = [self._tile(operand, indices) for operand in op.inputs]
                return _apply(op, tiles, self.sizes)
            case _:
                raise EvaluationError(f"%{value.name_hint or '?'} cannot be evaluated")

    def _accumulate(self, op: threadblock.AccumOp, indices: Indices) -> Array:
        axis, kind = op.axis.data, op.kind_value
        steps = [{**indices, axis: index} for index in range(self.counts[axis])]
        tiles = [self._tile(op.tile, step) for step in steps]
        for tile in tiles:
            if tile.shape != tiles[0].shape:
                raise EvaluationError(
                    f"{op_name(op)}: summands of shapes {tiles[0].shape} and {tile.shape}"
                )
        if op.maximum is not None:
            return _rescaled(tiles, [self._tile(op.maximum, step) for step in steps])
        if kind not in _FOLDS:
            raise EvaluationError(f"{op_name(op)}: no such kind {kind}")
        return reduce(_FOLDS[kind], tiles)


_FOLDS: dict[str, Callable[[Array, Array], Array]] = {"sum": np.add, "max": np.maximum}


def _rescaled(tiles: Sequence[Array], maxima: Sequence[Array]) -> Array:
    """
    The sum of t_i exp(m_i - M), M the maximum of the m_i, as `threadblock.accum` says.
    """
    whole = reduce(np.maximum, maxima)
    total = np.zeros_like(tiles[0])
    for tile, maximum in zip(tiles, maxima, strict=True):
        total = total + np.where(np.isneginf(maximum), 0, tile * np.exp(maximum - whole))
    return total
