"""What tuning needs to know of a candidate at given sizes: axes, operands, products, other work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from prism.dialects.kernel import GraphDefOp
from prism.dialects.operators import Kind
from prism.dialects.sym import as_tensor, axis_parameter, shape_of
from prism.dialects.sym_expr import SymExpr
from prism.dialects.threadblock import AccumOp, InputOp, OutputOp, TileOperatorOp, TileType
from prism.errors import PrismError

BYTES = {"f16": 2, "bf16": 2, "f32": 4}


class SpaceError(PrismError):
    """A graph has no parameter point as asked: an axis that cuts unlike dims, a bad override."""


@dataclass(frozen=True)
class Axis:
    """
    One axis: the whole size of the dims that it cuts, and the grid axis that cuts them first.

    `batch` says that it cuts no dim of a matrix, only dims before the last two.
    """

    name: str
    size: int
    outer: str | None
    batch: bool = False

    @property
    def parameter(self) -> str:
        """The parameter that is the axis's size."""
        return axis_parameter(self.name)

    @property
    def is_grid(self) -> bool:
        """Whether blocks, not loop steps, are its indices."""
        return self.parameter.startswith("grid.")


@dataclass(frozen=True)
class Operand:
    """An input or output: its shape in numbers, element size, and the dim that each axis cuts."""

    shape: tuple[int, ...]
    element_bytes: int
    cuts: Mapping[str, int]


@dataclass(frozen=True)
class Tile:
    """Whole sizes of a value, the axes that cut each dim, and whether the loop computes it."""

    sizes: tuple[int, ...]
    axes: tuple[tuple[str, ...], ...]
    looped: bool


@dataclass(frozen=True)
class Product:
    """A matrix product: whole sizes m, n, k, and the axes that cut each of them."""

    sizes: tuple[int, int, int]
    axes: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Graph:
    """
    What tuning needs to know of a candidate at given sizes.

    `sums` are the operands of reductions: their elements are read one by one.
    """

    name: str
    axes: tuple[Axis, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    products: tuple[Product, ...]
    sums: tuple[Tile, ...] = ()

    @cached_property
    def grid(self) -> tuple[str, ...]:
        """The names of the grid axes."""
        return tuple(axis.name for axis in self.axes if axis.is_grid)

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """The names of the loop axes."""
        return tuple(axis.name for axis in self.axes if not axis.is_grid)


def graph_def(candidate: FuncOp) -> GraphDefOp:
    """The graph of a candidate; raises `SpaceError` if it does not have exactly one."""
    graphs = [op for op in candidate.walk() if isinstance(op, GraphDefOp)]
    if len(graphs) != 1:
        raise SpaceError(f"@{candidate.sym_name.data}: expected one graph, found {len(graphs)}")
    return graphs[0]


def read_graph(candidate: FuncOp, sizes: Mapping[str, int]) -> Graph:
    """
    Read a candidate with concrete maps.

    Raises `SpaceError` if an axis cuts unlike dims or a size is no number at these sizes.
    """
    graph = graph_def(candidate)
    name = candidate.sym_name.data
    inputs: list[Operand] = []
    outputs: list[Operand] = []
    products: list[Product] = []
    sums: list[Tile] = []
    looped: dict[SSAValue, bool] = {}
    for op in graph.body.block.ops:
        _note_loop(op, looped)
        match op:
            case InputOp():
                cuts = {**op.imap.cuts, **op.fmap.cuts}
                inputs.append(_operand(name, op.tensor.type, cuts, sizes))
            case OutputOp():
                outputs.append(_operand(name, op.result.type, op.omap.cuts, sizes))
            case TileOperatorOp() if op.operator.kind is Kind.MATMUL:
                products.append(_product(op, sizes))
            case TileOperatorOp() if op.operator.kind in (Kind.SUM, Kind.MAX):
                sums.append(_tile(op.inputs[0].type, sizes, looped[op.result]))
            case _:
                pass
    axes = tuple(
        _axis(name, axis, (*inputs, *outputs), graph.grid_axes)
        for axis in (*graph.grid_axes, *graph.loop_axes)
    )
    return Graph(name, axes, tuple(inputs), tuple(outputs), tuple(products), tuple(sums))


def _note_loop(op: Operation, looped: dict[SSAValue, bool]) -> None:
    """A value is of the loop if it depends on an input that a loop cuts and on no accum."""
    if isinstance(op, InputOp):
        inside = bool(op.fmap.cuts)
    elif isinstance(op, AccumOp):
        inside = False
    else:
        inside = any(looped.get(operand, False) for operand in op.operands)
    for result in op.results:
        looped[result] = inside


def _operand(
    name: str, kind: Attribute, cuts: Mapping[str, int], sizes: Mapping[str, int]
) -> Operand:
    tensor = as_tensor(kind)
    shape: list[int] = []
    for size in shape_of(tensor):
        if missing := sorted(size.symbols() - sizes.keys()):
            raise SpaceError(f"@{name}: a size depends on {missing[0]}, which has no value")
        shape.append(int(size.evaluate(sizes)))
    element = str(tensor.element_type)
    if element not in BYTES:
        raise SpaceError(f"@{name}: no parameters for element type {element}")
    return Operand(tuple(shape), BYTES[element], cuts)


def _tile(kind: Attribute, sizes: Mapping[str, int], looped: bool) -> Tile:
    if not isinstance(kind, TileType):
        raise VerifyException("expected a tile")
    whole = tuple(int(size.evaluate(sizes)) for size in kind.whole)
    return Tile(whole, tuple(_axes_of(dim) for dim in kind.dims), looped)


def _product(op: TileOperatorOp, sizes: Mapping[str, int]) -> Product:
    lhs, rhs = (_tile(value.type, sizes, False) for value in op.inputs)
    return Product(
        (lhs.sizes[-2], rhs.sizes[-1], lhs.sizes[-1]), (lhs.axes[-2], rhs.axes[-1], lhs.axes[-1])
    )


def _axes_of(dim: SymExpr) -> tuple[str, ...]:
    parameters = (name for name in dim.symbols() if name.startswith(("grid.", "loop.")))
    return tuple(sorted(name.partition(".")[2] for name in parameters))


def _axis(name: str, axis: str, operands: Sequence[Operand], grid: tuple[str, ...]) -> Axis:
    found: set[tuple[int, str | None]] = set()
    batch = True
    for operand in operands:
        if axis not in operand.cuts:
            continue
        dim = operand.cuts[axis]
        batch = batch and dim < len(operand.shape) - 2
        outer = [a for a, d in operand.cuts.items() if d == dim and a in grid and a != axis]
        found.add((operand.shape[dim], outer[0] if outer and axis not in grid else None))
    if len(found) != 1:
        parts = ", ".join(sorted(str(size) for size, _ in found)) or "none"
        raise SpaceError(f"@{name}: expected axis {axis} to cut dims of one extent, found {parts}")
    size, outer = next(iter(found))
    return Axis(axis, size, outer, batch)
