"""Where the values of a graph are while it is lowered: shared tiles, fragments, and when."""

from __future__ import annotations

from enum import Enum
from math import prod

from xdsl.dialects.builtin import TensorType, bf16, f16, f32
from xdsl.ir import Attribute, Operation, SSAValue

from prism.codegen.block_builder import BlockBuilder
from prism.codegen.errors import CannotLower
from prism.codegen.graph_point import GraphPoint, shared_type
from prism.codegen.operand_sizes import OperandSizes
from prism.codegen.scalar_regions import expression_of, scalar_region
from prism.dialects.kernel import GraphDefOp
from prism.dialects.operators import Kind
from prism.dialects.sym import as_tensor, shape_of
from prism.dialects.thread import (
    MapOp,
    SpillOp,
)
from prism.dialects.thread_ops import Window, matrix_window
from prism.dialects.thread_types import (
    ELEMENT_BYTES,
    MAX_TENSOR_BYTES,
    TENSOR_RANKS,
    DimWindow,
    FragmentType,
)
from prism.dialects.threadblock import AccumOp, InputOp, TileOperatorOp


class Stage(Enum):
    """When a value exists, relative to the loop."""

    BEFORE = "before"
    BODY = "body"
    AFTER = "after"


def stages_of(graph: GraphDefOp) -> dict[SSAValue, Stage]:
    """The stage of each value: a loop's body makes what depends on a tile that the loop cuts."""
    stages: dict[SSAValue, Stage] = {}
    for op in graph.body.block.ops:
        used = {stages.get(operand, Stage.BEFORE) for operand in op.operands}
        if isinstance(op, InputOp):
            stage = Stage.BODY if op.fmap.cuts else Stage.BEFORE
        elif isinstance(op, AccumOp) or Stage.AFTER in used:
            stage = Stage.AFTER
        else:
            stage = Stage.BODY if Stage.BODY in used else Stage.BEFORE
        for result in op.results:
            stages[result] = stage
    return stages


class GraphValues:
    """
    The values of one graph at a parameter point, and how to get at them.

    Elementwise operators have no place of their own: they are computed from what has one, where
    they are used.
    """

    def __init__(self, point: GraphPoint) -> None:
        self._point = point
        self._graph = point.graph
        self._stages = stages_of(point.graph)
        self._folded = {op.tile for op in self._accums() if self._accumulates_in_place(op)}
        self._operands = OperandSizes(point, self._folded)
        graph_types = [*self._graph.inputs, *self._graph.results_]
        elements = {as_tensor(value.type).element_type for value in self._graph.inputs}
        # what products multiply: mma.sync takes operands of one type
        self._half: Attribute = bf16 if bf16 in elements else f16
        self._builder = BlockBuilder([self._static_tensor(value) for value in graph_types])
        arguments = self._builder.entry.args
        for argument, source in zip(arguments, graph_types, strict=True):
            argument.name_hint = source.name_hint
        inputs = arguments[: len(self._graph.inputs)]
        self._tensors: dict[SSAValue, SSAValue] = dict(
            zip(self._graph.body.block.args, inputs, strict=True)
        )
        self._outputs = arguments[len(self._graph.inputs) :]
        # where a value is: in shared memory as it is, as a fragment, as an operand of a product
        self._tiles: dict[SSAValue, SSAValue] = {}
        self._fragments: dict[SSAValue, SSAValue] = {}
        self._operand_tiles: dict[SSAValue, SSAValue] = {}
        # values computed as fragments, zero beyond their part
        self._held: dict[tuple[SSAValue, FragmentType], SSAValue] = {}

    def _static_tensor(self, value: SSAValue) -> TensorType:
        """The tensor type with the sizes of this point."""
        tensor = as_tensor(value.type)
        if tensor.element_type not in ELEMENT_BYTES:
            raise CannotLower(
                f"element type: expected f16, bf16 or f32, found {tensor.element_type}", self._graph
            )
        shape = [self._point.size(size, self._graph) for size in shape_of(tensor)]
        if len(shape) not in TENSOR_RANKS:
            raise CannotLower(f"tensor of rank {len(shape)}: expected rank 2 or 3", self._graph)
        size = prod(shape) * ELEMENT_BYTES[tensor.element_type]
        if size > MAX_TENSOR_BYTES:
            raise CannotLower(
                f"tensor of {size} bytes: expected at most {MAX_TENSOR_BYTES}", self._graph
            )
        return TensorType(tensor.element_type, shape)

    def _accums(self) -> list[AccumOp]:
        return [op for op in self._graph.body.block.ops if isinstance(op, AccumOp)]

    def _accumulates_in_place(self, accum: AccumOp) -> bool:
        """Whether the accumulated product or sum has no other use, so that the loop carries it."""
        owner = accum.tile.owner
        if not isinstance(owner, TileOperatorOp) or len(list(accum.tile.uses)) != 1:
            return False
        return owner.operator.kind in (Kind.MATMUL, Kind.SUM)

    def _window(self, value: SSAValue) -> Window:
        """The part of its whole tensor that a value is, with the dim of a batch."""
        owner = value.owner
        return self._point.window(value, owner if isinstance(owner, Operation) else self._graph)

    def _matrix(self, value: SSAValue) -> tuple[DimWindow, DimWindow]:
        """The part of rows and columns that a value is."""
        return matrix_window(self._window(value))

    def _sizes(self, value: SSAValue) -> tuple[int, int]:
        """The rows and columns of a whole part."""
        rows, columns = self._matrix(value)
        return rows.extent, columns.extent

    def _hold(self, value: SSAValue, type: FragmentType) -> SSAValue:
        """A value as a fragment, zero beyond its part, computed once."""
        held = self._held.get((value, type))
        if held is None:
            held = self._held[value, type] = self._map(value, type, self._matrix(value))
        return held

    def _fragment_type(self, leaf: SSAValue) -> FragmentType | None:
        """The type of the fragment that a value is, None if it is a shared tile."""
        owner = leaf.owner
        if isinstance(owner, AccumOp):
            if owner.tile not in self._folded:
                return self._layout_of(owner.tile)
            owner = owner.tile.owner
        if isinstance(owner, TileOperatorOp) and owner.operator.kind is Kind.MATMUL:
            return self._operands.fragment(owner.result, whole=True)
        return None

    def _layout_of(self, value: SSAValue) -> FragmentType:
        """The layout to compute a value in: that of a fragment it is made of, else row by row."""
        return self._layout_covering(value, self._sizes(value))

    def _layout_covering(self, value: SSAValue, sizes: tuple[int, int]) -> FragmentType:
        for leaf in expression_of(value).leaves:
            type = self._fragment_type(leaf)
            if type is None or self._matrix(leaf) != self._matrix(value):
                continue
            if all(held >= size for held, size in zip(type.sizes, sizes, strict=True)):
                return type
        return FragmentType(sizes, self._point.rows_layout(*sizes))

    def _map(
        self,
        value: SSAValue,
        type: FragmentType,
        within: Window | None = None,
        add_to: SSAValue | None = None,
    ) -> SSAValue:
        """
        A value as a fragment, zero beyond `within`; added to another fragment if one is given.

        Leaves that are fragments of another layout go through shared memory.
        """
        expression = expression_of(value)
        if within is None and add_to is None and self._fragment_type(value) == type:
            return self._fragments[value]
        sources: list[SSAValue] = []
        tiles: list[SSAValue] = []
        for leaf in expression.leaves:
            # a fragment of one row may be padded to the result's type, yet be broadcast
            same = self._matrix(leaf) == self._matrix(value)
            if same and self._fragment_type(leaf) == type:
                sources.append(self._fragments[leaf])
            else:
                tiles.append(self._tile_of(leaf))
                sources.append(tiles[-1])
        if add_to is not None:
            sources.append(add_to)
        region = scalar_region(expression, self._point, accumulate=add_to is not None)
        mapped = self._builder.add(MapOp(sources, type, region, within), reads=tiles).result
        mapped.name_hint = value.name_hint
        return mapped

    def _tile_of(self, leaf: SSAValue) -> SSAValue:
        """A value that is no elementwise result as a shared tile; a fragment is spilled as f32."""
        tile = self._tiles.get(leaf)
        if tile is None:
            tile = self._alloc(self._sizes(leaf), f32, leaf)
            self._builder.add(SpillOp(self._fragments[leaf], tile), writes=[tile])
            self._tiles[leaf] = tile
        return tile

    def _alloc(
        self,
        sizes: tuple[int, int],
        element: Attribute,
        value: SSAValue,
        stages: int = 1,
    ) -> SSAValue:
        """A shared tile for a value, with its name."""
        tile = self._builder.alloc(shared_type(sizes, element, stages))
        tile.name_hint = value.name_hint
        return tile
