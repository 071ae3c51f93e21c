"""Checks of a threadblock graph that look at more than one op."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from prism.dialects.kernel import GraphDefOp
from prism.dialects.layouts import (
    PARTIAL_EXP,
    PARTIAL_MAX,
    REPL,
    is_scaled,
    is_shift,
    layout_name,
)
from prism.dialects.threadblock import AccumOp, TileType

Maximum = tuple[object, ...]
"""Which maximum tiles are to be corrected by: a value, or its maxima over loops."""


def check_scopes(graph: GraphDefOp) -> None:
    """
    Checks that no op of a loop's body uses what exists only after that loop.

    The layout table alone would let a tile that a loop cuts meet an accumulated one, which would
    take a second pass over the loop. Raises VerifyException naming the operand.
    """
    after: dict[SSAValue, frozenset[str]] = {}
    maxima = _Maxima(graph)
    for op in graph.body.block.ops:
        tiles = [(v, v.type) for v in op.operands if isinstance(v.type, TileType)]
        axes = frozenset[str]().union(*(after.get(value, ()) for value, _ in tiles))
        for value, tile in tiles:
            for axis in sorted(axes):
                if not tile.symbolic and tile.layout(axis) != REPL:
                    raise VerifyException(
                        f"operand %{value.name_hint or '?'} of {op.name}: expected a value from "
                        f"after the loop over {axis}, as another operand is; found layout "
                        f"{layout_name(tile.layout(axis))}"
                    )
        if isinstance(op, AccumOp):
            axes |= {op.axis.data}
        for result in op.results:
            after[result] = axes
        if any(tile.rescaled for _, tile in tiles) or any(
            isinstance(result.type, TileType) and result.type.rescaled for result in op.results
        ):
            maxima.check(op)


class _Maxima:
    """By which maximum the tiles of a graph are to be corrected, per axis."""

    def __init__(self, graph: GraphDefOp) -> None:
        self.axes = (*graph.grid_axes, *graph.loop_axes)
        self.of: dict[tuple[SSAValue, str], Maximum] = {}

    def check(self, op: Operation) -> None:
        """
        Notes the maxima of an op's result. Raises VerifyException if its operands differ in them.
        """
        tiles = [(v, v.type) for v in op.operands if isinstance(v.type, TileType)]
        if any(tile.symbolic for _, tile in tiles):
            return
        for axis in self.axes:
            found: list[Maximum] = []
            for value, tile in tiles:
                layout = tile.layout(axis)
                if layout == PARTIAL_EXP or is_shift(layout) or is_scaled(layout):
                    known = self.of.get((value, axis))
                    if known is None:
                        raise VerifyException(
                            f"operand %{value.name_hint or '?'} of {op.name}: expected to know by "
                            f"which maximum it is corrected over axis {axis}"
                        )
                    found.append(known)
                elif layout == PARTIAL_MAX and _corrects(op, axis):
                    found.append(_maximum(value))
            if len(set(found)) > 1:
                names = ", ".join(f"%{value.name_hint or '?'}" for value, _ in tiles)
                raise VerifyException(
                    f"{op.name}: expected operands that are corrected by one maximum over axis "
                    f"{axis}, found several in {names}"
                )
            for result in op.results if found else ():
                self.of[result, axis] = self._after(op, found[0])

    @staticmethod
    def _after(op: Operation, maximum: Maximum) -> Maximum:
        """A rescaled accum leaves tiles that the loop's whole maximum corrects on other axes."""
        if isinstance(op, AccumOp) and op.maximum is not None:
            return (op.axis.data, maximum)
        return maximum


def _corrects(op: Operation, axis: str) -> bool:
    """Whether an op makes its result depend on a maximum: the sub of a shift, a rescaled accum."""
    if isinstance(op, AccumOp):
        return op.maximum is not None
    (result,) = op.results
    return isinstance(result.type, TileType) and is_shift(result.type.layout(axis))


def _maximum(value: SSAValue) -> Maximum:
    """A maximum over tiles: the value, or a loop's maxima of one."""
    owner = value.owner
    if isinstance(owner, AccumOp) and owner.kind_value == "max":
        return (owner.axis.data, _maximum(owner.tile))
    return (value,)
