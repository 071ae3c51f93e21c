"""
The reference interpreter: what workloads and graphs mean, in float64 numpy.

A workload is evaluated on whole arrays. A candidate is executed as its graph says: block by block,
loop index by loop index, tile by tile, with chunks cut by ceil, so that the last may be short.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from prism.dialects import threadblock
from prism.dialects.kernel import GraphDefOp
from prism.dialects.operator_op import OperatorOp
from prism.dialects.sym import shape_of
from prism.dialects.sym_expr import SymExpr
from prism.errors import PrismError
from prism.verify.encode import op_name

Array: TypeAlias = NDArray[np.float64]

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
                    tensors = [values[value] for value in op.inputs]
                    results = _Execution(op, tensors, sizes, counts).run()
                    values.update(zip(op.results_, results, strict=True))
                case func.ReturnOp():
                    return [values[value] for value in op.arguments]
                case _:
                    raise EvaluationError(f"{op_name(op)} cannot be evaluated")
    raise EvaluationError(f"@{func_op.sym_name.data}: expected func.return as its last op")


def shape_at(value: SSAValue, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor at the sizes of the parameters. Raises EvaluationError if unbound."""
    return tuple(int(_at(size, sizes)) for size in shape_of(value.type))


def _at(expression: SymExpr, sizes: Mapping[str, int]) -> Fraction:
    try:
        return expression.evaluate(sizes)
    except KeyError as error:
        raise EvaluationError(f"the size {error.args[0]} is not bound") from error


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


_UNARY: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "square": np.square,
    "reciprocal": lambda x: 1 / x,
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
}

_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "matmul": np.matmul,
}

_CONSTANT: dict[str, Callable[[Array, float], Array]] = {
    "scale": lambda x, c: x * c,
    "shift": lambda x, c: x + c,
    "rms_norm": lambda x, eps: x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + eps),
}

_REDUCTION: dict[str, Callable[[Array, int], Array]] = {
    "sum": lambda x, dim: np.sum(x, axis=dim, keepdims=True),
    "mean": lambda x, dim: np.mean(x, axis=dim, keepdims=True),
}


def _apply(op: OperatorOp, operands: Sequence[Array], sizes: Mapping[str, int]) -> Array:
    """An operator of the table on arrays."""
    name = op.operator.name
    if name in _UNARY:
        return _UNARY[name](operands[0])
    if name in _BINARY:
        try:
            return _BINARY[name](operands[0], operands[1])
        except ValueError as error:
            shapes = " and ".join(str(operand.shape) for operand in operands)
            raise EvaluationError(f"{op_name(op)}: tiles of shapes {shapes} do not meet") from error
    if name in _CONSTANT and op.constant_value is not None:
        return _CONSTANT[name](operands[0], float(_at(op.constant_value, sizes)))
    if name in _REDUCTION and op.dim_value is not None:
        return _REDUCTION[name](operands[0], op.dim_value)
    raise EvaluationError(f"{op_name(op)} cannot be evaluated")


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
                named = ((op.omap.cuts, grid),)
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
                axis = op.axis.data
                total = self._tile(op.tile, {**indices, axis: 0})
                for index in range(1, self.counts[axis]):
                    tile = self._tile(op.tile, {**indices, axis: index})
                    if tile.shape != total.shape:
                        raise EvaluationError(
                            f"{op_name(op)}: summands of shapes {total.shape} and {tile.shape}"
                        )
                    total = total + tile
                return total
            case OperatorOp() as op:
                tiles = [self._tile(operand, indices) for operand in op.inputs]
                return _apply(op, tiles, self.sizes)
            case _:
                raise EvaluationError(f"%{value.name_hint or '?'} cannot be evaluated")
