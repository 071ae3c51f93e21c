"""
How the products of a graph are shared by the warps, and the shared tiles that their operands need.
"""

from __future__ import annotations

from collections.abc import Collection
from math import lcm

from xdsl.ir import SSAValue

from prism.codegen.graph_point import GraphPoint
from prism.codegen.scalar_regions import expression_of
from prism.dialects.operators import Kind
from prism.dialects.thread_ops import matrix_window
from prism.dialects.thread_types import MMA_DEPTH, FragmentType, MmaLayout
from prism.dialects.threadblock import TileOperatorOp, TileType

MAX_CHAINED_REGISTERS = 96
"""Accumulators of a thread up to which a product takes its first operand from registers."""


class OperandSizes:
    """
    Layout per product, and per operand the rows and columns of its shared tile.

    A tile covers what the layout covers; its contracted dim is a multiple of what one step of all
    k warps takes, for every product over that dim. A product whose first operand is computed from
    another product takes it from registers (`chained`): their layouts are chosen together.
    """

    def __init__(self, point: GraphPoint, in_place: Collection[SSAValue] = ()) -> None:
        """`in_place` are products that accumulate over the loop, so that their k may be split."""
        self._point = point
        self._layouts: dict[SSAValue, MmaLayout] = {}
        self.sizes: dict[SSAValue, tuple[int, int]] = {}
        """Rows and columns of the shared tile of each operand of a product."""
        self.chained: dict[SSAValue, SSAValue] = {}
        """Per product that takes its first operand from registers, the product that makes it."""
        products = [
            op
            for op in point.graph.body.block.ops
            if isinstance(op, TileOperatorOp) and op.operator.kind is Kind.MATMUL
        ]
        for op in products:
            self._chain(op)
        depths: dict[object, int] = {}
        for op in products:
            lhs, rhs = (matrix_window(point.window(value, op)) for value in op.inputs)
            if op.result not in self._layouts:
                looped = bool(point.graph.loop_axes) and op.result not in in_place
                self._layouts[op.result] = point.mma_layout(
                    lhs[0].extent, rhs[1].extent, lhs[1].extent, whole=looped
                )
            if op.result not in self.chained:
                key, layout = self._contracted(op), self._layouts[op.result]
                depths[key] = lcm(depths.get(key, 1), MMA_DEPTH * layout.warps[2])
        for op in products:
            rows, columns = self._layouts[op.result].shape
            maker = self.chained.get(op.result)
            if maker is not None:
                self._need(op.inputs[1], self._layouts[maker].shape[1], columns)
                continue
            step = depths[self._contracted(op)]
            extent = point.window(op.inputs[0], op)[-1].extent
            depth = -(-extent // step) * step
            self._need(op.inputs[0], rows, depth)
            self._need(op.inputs[1], depth, columns)

    def _chain(self, op: TileOperatorOp) -> None:
        """Takes the first operand of a product from registers if another product made it."""
        value = op.inputs[0]
        makers = [leaf for leaf in expression_of(value).leaves if self._makes(leaf, value)]
        if self._point.swap or not makers or makers[0] in self.chained:
            return
        rows, middle = (dim.extent for dim in matrix_window(self._point.window(value, op)))
        columns = self._point.window(op.inputs[1], op)[-1].extent
        maker_layout, layout = self._point.chained_layouts(rows, middle, columns)
        if maker_layout.registers + layout.registers > MAX_CHAINED_REGISTERS:
            return
        for maker in makers:
            self._layouts[maker] = maker_layout
        self._layouts[op.result] = layout
        self.chained[op.result] = makers[0]

    def _makes(self, leaf: SSAValue, value: SSAValue) -> bool:
        owner = leaf.owner
        return (
            isinstance(owner, TileOperatorOp)
            and owner.operator.kind is Kind.MATMUL
            and self._point.window(leaf, owner) == self._point.window(value, owner)
        )

    @staticmethod
    def _contracted(op: TileOperatorOp) -> object:
        """The contracted dim as an expression: equal for products that share an operand."""
        type = op.inputs[0].type
        assert isinstance(type, TileType)  # by the threadblock verifiers
        return type.dims[-1]

    def _need(self, value: SSAValue, rows: int, columns: int) -> None:
        old = self.sizes.get(value, (0, 0))
        self.sizes[value] = max(old[0], rows), max(old[1], columns)

    def fragment(self, product: SSAValue, *, whole: bool = False) -> FragmentType:
        """The fragment that a product accumulates in, or with `whole` its sum over k warps."""
        layout = self._layouts[product]
        return FragmentType(layout.shape, layout, partial=layout.warps[2] > 1 and not whole)
