"""
Lowers a tuned threadblock graph to a `thread.kernel`, by a rule per operator.

Inputs become shared tiles, products fragments, sums shared vectors; elementwise operators are
folded into the map, reduction or store that uses them. What a loop does not cut is computed before
it, what is accumulated exists after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Region, SSAValue

from prism.codegen.errors import CannotLower
from prism.codegen.global_memory import vector_elements
from prism.codegen.graph_point import GraphPoint, shared_type
from prism.codegen.graph_values import GraphValues, Stage
from prism.codegen.known_ops import check_known
from prism.codegen.scalar_regions import expression_of, scalar_region
from prism.dialects.kernel import GraphDefOp
from prism.dialects.operators import Kind
from prism.dialects.sym import as_tensor
from prism.dialects.thread import (
    CopyOp,
    KernelOp,
    MapOp,
    MmaOp,
    ReduceOp,
    ReturnOp,
    SpillOp,
    StoreOp,
    SumLanesOp,
    SumWarpsOp,
    ZeroOp,
)
from prism.dialects.thread import YieldOp as ThreadYieldOp
from prism.dialects.thread_ops import fragment_of
from prism.dialects.thread_sums import folded_layout, scratch_type
from prism.dialects.thread_types import (
    ELEMENT_BYTES,
    DimWindow,
    FragmentType,
    MmaLayout,
    RowsLayout,
)
from prism.dialects.threadblock import AccumOp, InputOp, OutputOp, TileOperatorOp, TileType, YieldOp

WIDEST_STORE = 8
"""Elements of the widest store of f16."""


def lower_graph(
    graph: GraphDefOp, name: str, sizes: Mapping[str, int], params: Mapping[str, int], target: str
) -> KernelOp:
    """
    The thread kernel of a graph for sizes of the workload and tuning parameters (see `GraphPoint`).

    Its arguments are the graph's inputs, then its results. Raises CannotLower, located at the op,
    for a graph or a parameter that has no lowering; `prism.codegen.limits` checks a target's
    limits.
    """
    check_known(graph)
    return _GraphLowering(GraphPoint(graph, sizes, params)).run(name, target)


class _GraphLowering(GraphValues):
    # the stages

    def run(self, name: str, target: str) -> KernelOp:
        """Builds the kernel."""
        loops = self._graph.loop_axes
        if len(loops) > 1:
            raise CannotLower(
                f"loop axes [{', '.join(loops)}]: only one is lowered yet", self._graph
            )
        batch, axis = self._point.batch(), self._point.batch_axis
        if batch > 1 and axis is not None:
            self._builder.loop(axis, batch, (), lambda _: self._lower_body(loops))
        else:
            self._lower_body(loops)
        body = self._builder.finish(ReturnOp())
        return KernelOp(name, self._point.grid, self._point.warps, target, body)

    def _lower_body(self, loops: Sequence[str]) -> Sequence[SSAValue]:
        self._lower_stage(Stage.BEFORE)
        if loops:
            self._lower_loop(loops[0])
        self._lower_stage(Stage.AFTER)
        self._lower_outputs()
        return ()

    def _lower_stage(self, stage: Stage) -> None:
        for op in self._graph.body.block.ops:
            match op:
                case InputOp() if self._stages[op.result] is stage:
                    self._lower_input(op)
                case TileOperatorOp() if self._stages[op.result] is stage:
                    self._lower_operator(op)
                case _:
                    pass

    def _lower_loop(self, axis: str) -> None:
        accums = self._accums()
        inits = [self._builder.add(ZeroOp(self._carried_type(accum))).result for accum in accums]

        def body(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            self._lower_stage(Stage.BODY)
            return [
                self._accumulate(accum, value) for accum, value in zip(accums, carried, strict=True)
            ]

        count, stages = self._point.count(axis), self._point.stages
        held_before = dict(self._held)
        if stages == 1 or count == 1:
            results = self._builder.loop(axis, count, inits, body)
        else:
            inputs = [
                op
                for op in self._graph.body.block.ops
                if isinstance(op, InputOp) and self._stages[op.result] is Stage.BODY
            ]
            copies = [
                (self._tensors[op.tensor], self._window(op.result), self._input_tile(op, stages))
                for op in inputs
            ]
            results = self._builder.pipelined_loop(axis, count, stages, copies, inits, body)
        # what the body made is not visible after it
        self._held = held_before
        for accum, value in zip(accums, results, strict=True):
            value.name_hint = accum.result.name_hint
            self._finish_accum(accum, value)

    def _lower_input(self, op: InputOp) -> None:
        if op.result not in self._tiles:
            self._copy_input(op)
        if op.result in self._operands.sizes and op.result not in self._operand_tiles:
            self._make_operand(op.result)

    def _copy_input(self, op: InputOp) -> None:
        tile = self._input_tile(op)
        asynchronous = self._point.stages > 1 and self._stages[op.result] is Stage.BEFORE
        copy = CopyOp(
            self._tensors[op.tensor], self._window(op.result), tile, asynchronous=asynchronous
        )
        self._builder.copy(copy)

    def _input_tile(self, op: InputOp, stages: int = 1) -> SSAValue:
        """The shared tile of an input, with stages if a pipeline fills it."""
        sizes = self._sizes(op.result)
        operand = self._operands.sizes.get(op.result)
        # a dim of size 1 is broadcast elsewhere, which the padding of an operand would hide
        if operand is not None and (1 not in sizes or self._only_multiplied(op.result)):
            sizes = operand
        else:
            operand = None
        element = as_tensor(self._tensors[op.tensor].type).element_type
        tile = self._alloc(sizes, element, op.result, stages)
        self._tiles[op.result] = tile
        if op.result in self._operands.sizes:
            if element != self._half:
                raise CannotLower(
                    f"operand of a product: expected {self._half}, found {element}", op
                )
            if operand is not None:
                self._operand_tiles[op.result] = tile
        return tile

    def _only_multiplied(self, value: SSAValue) -> bool:
        """Whether a value has no other uses than in products."""
        users = (use.operation for use in value.uses)
        return all(
            isinstance(user, TileOperatorOp) and user.operator.kind is Kind.MATMUL for user in users
        )

    def _lower_operator(self, op: TileOperatorOp) -> None:
        if op.result not in self._folded:
            match op.operator.kind:
                case Kind.MATMUL:
                    zero = self._builder.add(ZeroOp(self._operands.fragment(op.result)))
                    self._fragments[op.result] = self._whole(self._multiply(op, zero.result))
                case Kind.SUM:
                    zero = self._builder.add(ZeroOp(self._sum_type(op)))
                    self._store_sum(op, self._reduce(op, zero.result), op.result)
                case _:
                    pass
        if op.result in self._operands.sizes:
            self._make_operand(op.result)

    # products

    def _multiply(self, op: TileOperatorOp, acc: SSAValue) -> SSAValue:
        rhs = self._operand_tiles[op.inputs[1]]
        maker = self._operands.chained.get(op.result)
        if maker is not None:
            lhs = self._hold(op.inputs[0], self._operands.fragment(maker))
            return self._builder.add(MmaOp(lhs, rhs, acc), reads=[rhs]).result
        lhs = self._operand_tiles[op.inputs[0]]
        return self._builder.add(MmaOp(lhs, rhs, acc), reads=[lhs, rhs]).result

    def _whole(self, fragment: SSAValue) -> SSAValue:
        """The fragment with the sum over k warps that it may owe."""
        type = fragment_of(fragment)
        if not type.owed:
            return fragment
        scratch = self._builder.alloc(scratch_type(type))
        op = SumWarpsOp(fragment, scratch)
        return self._builder.add(op, reads=[scratch], writes=[scratch]).result

    def _make_operand(self, value: SSAValue) -> None:
        """Computes an operand of a product into shared memory, zeros beyond its part."""
        sizes = self._operands.sizes[value]
        fragment = self._map(value, self._layout_covering(value, sizes), self._matrix(value))
        tile = self._alloc(sizes, self._half, value)
        self._builder.add(SpillOp(fragment, tile), writes=[tile])
        self._operand_tiles[value] = tile

    # sums

    def _dim(self, op: TileOperatorOp) -> int:
        """The dim of a matrix that a sum runs over: 0 for its rows, 1 for its columns."""
        return (op.dim_value or 0) - (len(self._window(op.inputs[0])) - 2)

    def _folded_type(self, op: TileOperatorOp) -> FragmentType | None:
        """The type of a summand that stays in the registers of a product; None if it does not."""
        type = self._layout_of(op.inputs[0])
        layout = type.layout.data
        if self._dim(op) != 1 or not isinstance(layout, MmaLayout):
            return None
        return type

    def _sum_layout(self, op: TileOperatorOp) -> tuple[RowsLayout, int]:
        """The layout of the threads' sums, and the vectors that they read."""
        rows, columns = self._sizes(op.inputs[0])
        layout = self._point.rows_layout(rows, columns)
        if self._dim(op) == 0:
            return RowsLayout(layout.threads, layout.threads, 1), 1
        return RowsLayout(layout.threads, layout.lanes, 1), layout.vector

    def _sum_type(self, op: TileOperatorOp) -> FragmentType:
        folded = self._folded_type(op)
        if folded is not None and isinstance(folded.layout.data, MmaLayout):
            layout = folded_layout(folded.layout.data)
            return FragmentType(layout.shape, layout)
        layout, _ = self._sum_layout(op)
        rows, columns = self._sizes(op.inputs[0])
        return FragmentType((1, columns) if self._dim(op) == 0 else (rows, layout.lanes), layout)

    def _reduce(self, op: TileOperatorOp, acc: SSAValue) -> SSAValue:
        (summand,) = op.inputs
        folded = self._folded_type(op)
        if folded is not None:
            held = self._hold(summand, folded)
            region = Region(Block(arg_types=[f32]))
            region.block.add_op(ThreadYieldOp(region.block.args[0]))
            reduce = ReduceOp(1, 1, [held], self._matrix(summand), acc, region)
            return self._builder.add(reduce).result
        expression = expression_of(summand)
        sources = [self._tile_of(leaf) for leaf in expression.leaves]
        _, vector = self._sum_layout(op)
        dim = self._dim(op)
        region = scalar_region(expression, self._point)
        reduce = ReduceOp(dim, vector, sources, self._matrix(summand), acc, region)
        return self._builder.add(reduce, reads=sources).result

    def _store_sum(self, op: TileOperatorOp, fragment: SSAValue, value: SSAValue) -> None:
        """Puts the threads' sums together in a shared vector."""
        rows, columns = self._sizes(op.result)
        layout = fragment_of(fragment).layout.data
        if isinstance(layout, MmaLayout):
            fragment = self._sum_columns(fragment, layout, rows)
        tile = self._alloc((rows, columns), f32, value)
        finish = SpillOp if self._dim(op) == 0 else SumLanesOp
        self._builder.add(finish(fragment, tile), writes=[tile])
        self._tiles[value] = tile

    def _sum_columns(self, fragment: SSAValue, layout: MmaLayout, rows: int) -> SSAValue:
        """The sums of each warp along the columns, as a fragment row by row."""
        columns = layout.warps[0] if layout.swap else layout.warps[1]
        tile = self._builder.alloc(shared_type((rows, columns), f32))
        self._builder.add(SumLanesOp(fragment, tile), writes=[tile])
        rows_layout = self._point.wide_rows_layout(columns, 1)
        acc = self._builder.add(ZeroOp(FragmentType((rows, rows_layout.lanes), rows_layout)))
        region = Region(Block(arg_types=[f32]))
        region.block.add_op(ThreadYieldOp(region.block.args[0]))
        window = DimWindow(rows), DimWindow(columns)
        reduce = ReduceOp(1, 1, [tile], window, acc.result, region)
        return self._builder.add(reduce, reads=[tile]).result

    # accumulators

    def _carried_type(self, accum: AccumOp) -> FragmentType:
        owner = accum.tile.owner
        if accum.tile in self._folded and isinstance(owner, TileOperatorOp):
            if owner.operator.kind is Kind.MATMUL:
                return self._operands.fragment(owner.result)
            return self._sum_type(owner)
        return self._layout_of(accum.tile)

    def _accumulate(self, accum: AccumOp, carried: SSAValue) -> SSAValue:
        owner = accum.tile.owner
        if accum.tile in self._folded and isinstance(owner, TileOperatorOp):
            if owner.operator.kind is Kind.MATMUL:
                return self._multiply(owner, carried)
            return self._reduce(owner, carried)
        return self._map(accum.tile, fragment_of(carried), add_to=carried)

    def _finish_accum(self, accum: AccumOp, value: SSAValue) -> None:
        owner = accum.tile.owner
        if (
            accum.tile in self._folded
            and isinstance(owner, TileOperatorOp)
            and owner.operator.kind is Kind.SUM
        ):
            self._store_sum(owner, value, accum.result)
        else:
            self._fragments[accum.result] = self._whole(value)
        if accum.result in self._operands.sizes:
            self._make_operand(accum.result)

    # results

    def _lower_outputs(self) -> None:
        terminator = self._graph.body.block.last_op
        assert isinstance(terminator, YieldOp)  # by GraphDefOp.verify_
        for result, tensor in zip(terminator.arguments, self._outputs, strict=True):
            op = result.owner
            if not isinstance(op, OutputOp):
                raise CannotLower("result of the graph: expected a threadblock.output", terminator)
            owed = op.tile.type.partial if isinstance(op.tile.type, TileType) else ()
            if owed:
                raise CannotLower(
                    f"output: a sum over axis {owed[0]} is still owed; reductions across blocks "
                    "are not lowered yet",
                    op,
                )
            fragment = self._rows(op, self._map(op.tile, self._layout_of(op.tile)), tensor)
            once = [axis for axis in self._graph.grid_axes if axis not in op.omap.cuts]
            self._builder.add(StoreOp(fragment, tensor, self._window(op.tile), once))

    def _rows(self, op: OutputOp, fragment: SSAValue, tensor: SSAValue) -> SSAValue:
        """
        The fragment row by row, so that threads store wide vectors: mma fragments hold at most two
        neighbours. As it is if the tensor's rows allow no wider stores.
        """
        window = self._window(op.tile)
        layout = fragment_of(fragment).layout.data
        element = as_tensor(tensor.type).element_type
        vector = vector_elements(window, ELEMENT_BYTES[element], WIDEST_STORE)
        if not isinstance(layout, MmaLayout) or vector <= (1 if layout.swap else 2):
            return fragment
        sizes = self._sizes(op.tile)
        tile = self._alloc(sizes, element, op.tile)
        self._builder.add(SpillOp(fragment, tile), writes=[tile])
        region = Region(Block(arg_types=[f32]))
        region.block.add_op(ThreadYieldOp(region.block.args[0]))
        rows = FragmentType(sizes, self._point.wide_rows_layout(sizes[1], vector))
        return self._builder.add(MapOp([tile], rows, region), reads=[tile]).result
