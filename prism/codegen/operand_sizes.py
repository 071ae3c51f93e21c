"""
How the products of a graph are shared by the warps, and the shared tiles that their operands need.
"""

from __future__ import annotations

from math import lcm

from xdsl.ir import SSAValue

from prism.codegen.graph_point import GraphPoint
from prism.dialects.operators import Kind
from prism.dialects.thread_ops import matrix_window
from prism.dialects.thread_types import MMA_DEPTH, FragmentType, MmaLayout
from prism.dialects.threadblock import TileOperatorOp, TileType


class OperandSizes:
    """
    Layout per product, and per operand the rows and columns of its shared tile.

    A tile covers what the layout covers; its contracted dim is a multiple of what one step of all
    k warps takes, for every product over that dim.
    """

    def __init__(self, point: GraphPoint) -> None:
        self._layouts: dict[SSAValue, MmaLayout] = {}
        self.sizes: dict[SSAValue, tuple[int, int]] = {}
        """Rows and columns of the shared tile of each operand of a product."""
        products = [
            op
            for op in point.graph.body.block.ops
            if isinstance(op, TileOperatorOp) and op.operator.kind is Kind.MATMUL
        ]
        depths: dict[object, int] = {}
        for op in products:
            lhs, rhs = (matrix_window(point.window(value, op)) for value in op.inputs)
            layout = point.mma_layout(lhs[0].extent, rhs[1].extent, lhs[1].extent)
            self._layouts[op.result] = layout
            key = self._contracted(op)
            depths[key] = lcm(depths.get(key, 1), MMA_DEPTH * layout.warps[2])
        for op in products:
            rows, columns = self._layouts[op.result].shape
            step = depths[self._contracted(op)]
            extent = point.window(op.inputs[0], op)[-1].extent
            depth = -(-extent // step) * step
            self._need(op.inputs[0], rows, depth)
            self._need(op.inputs[1], depth, columns)

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
