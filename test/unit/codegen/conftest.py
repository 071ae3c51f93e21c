"""Building threadblock graphs, lowering them and running the PTX in the simulator."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import TensorType, f16, f32
from xdsl.ir import Attribute, SSAValue

from prism.codegen.emit import EmittedKernel, emit_kernel
from prism.codegen.limits import check_limits
from prism.codegen.lower_graph import lower_graph
from prism.codegen.lower_thread import lower_kernel
from prism.dialects.kernel import GraphDefOp
from prism.dialects.layouts import PARTIAL, result_layout
from prism.dialects.operators import OPERATORS
from prism.dialects.shapes import ONE, result_shape
from prism.dialects.sym import MapAttr, tensor_type
from prism.dialects.sym_expr import SymExpr
from prism.dialects.threadblock import (
    OPS,
    AccumOp,
    InputOp,
    OutputOp,
    TileType,
    YieldOp,
    result_shape_of_tiles,
)
from prism.simulator import Simulator
from prism.tune.target import load_target

TARGET = load_target("sm_80")


class Body:
    """The inside of a graph under construction."""

    def __init__(self, graph: GraphDefOp) -> None:
        self.graph = graph
        self.block = graph.body.block

    def input(self, index: int, imap: Mapping[str, int], fmap: Mapping[str, int]) -> SSAValue:
        op = InputOp(self.block.args[index], MapAttr.of(imap), MapAttr.of(fmap))
        self.block.add_op(op)
        return op.result

    def op(
        self, name: str, *inputs: SSAValue, dim: int | None = None, constant: object = None
    ) -> SSAValue:
        operator = OPERATORS[name]
        tiles = [value.type for value in inputs]
        whole = result_shape(operator, [tile.whole for tile in tiles], dim)
        ones = [[size == ONE for size in tile.whole] for tile in tiles]
        axes = (*self.graph.grid_axes, *self.graph.loop_axes)
        layouts = [
            (axis, result_layout(operator, [tile.layout(axis) for tile in tiles], ones, dim))
            for axis in axes
        ]
        owed = [axis for axis, layout in layouts if layout == PARTIAL]
        type = TileType(result_shape_of_tiles(whole, layouts), f32, owed)
        expression = None if constant is None else SymExpr.of(constant)
        op = OPS[name](inputs, type, dim=dim, constant=expression)
        self.block.add_op(op)
        return op.result

    def accum(self, value: SSAValue, axis: str = "i") -> SSAValue:
        op = AccumOp(value, axis)
        self.block.add_op(op)
        return op.result

    def output(
        self, value: SSAValue, omap: Mapping[str, int], type: Attribute | None = None
    ) -> SSAValue:
        op = OutputOp(value, MapAttr.of(omap), type or self.graph.results_[0].type)
        self.block.add_op(op)
        return op.result


def tensor(*sizes: str | int, element: Attribute = f16) -> TensorType:
    """A tensor type of symbolic sizes."""
    return tensor_type([SymExpr.of(size) for size in sizes], element)


def build_graph(
    tensors: Sequence[Attribute],
    result: Attribute,
    body: Callable[[Body], SSAValue],
    grid: Sequence[str] = (),
    loops: Sequence[str] = (),
) -> GraphDefOp:
    """The graph over tensors whose output `body(Body)` gives; result types follow from the layout table."""
    return build_graph_of_results(tensors, [result], lambda b: [body(b)], grid, loops)


def build_graph_of_results(
    tensors: Sequence[Attribute],
    results: Sequence[Attribute],
    body: Callable[[Body], Sequence[SSAValue]],
    grid: Sequence[str] = (),
    loops: Sequence[str] = (),
) -> GraphDefOp:
    """The graph over tensors whose outputs `body(Body)` gives."""
    source = test.TestOp(result_types=tensors)
    graph = GraphDefOp(source.results, results, grid, loops)
    graph.body.block.add_op(YieldOp(*body(Body(graph))))
    graph.verify()
    return graph


def emit_graph(
    graph: GraphDefOp, sizes: Mapping[str, int], params: Mapping[str, int]
) -> EmittedKernel:
    """The PTX of a graph, every step verified."""
    kernel = lower_graph(graph, "k0", sizes, params, TARGET.name)
    check_limits(kernel, TARGET, graph)
    kernel.verify()
    code = lower_kernel(kernel, TARGET.ptx_version)
    code.verify()
    return emit_kernel(code)


def simulate(
    kernel: EmittedKernel, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Runs a kernel and gives its outputs; inputs must not change."""
    simulator = Simulator(sanitize=True, meter=False)
    buffers = [simulator.alloc(array) for array in (*inputs, *outputs)]
    entry = simulator.load(kernel.ptx)[kernel.name]
    entry.launch(
        grid=kernel.grid, block=kernel.block, args=buffers, dynamic_smem=kernel.dynamic_smem
    )
    for array, buffer in zip(inputs, buffers, strict=False):
        np.testing.assert_array_equal(buffer.numpy(), array)
    return [buffer.numpy() for buffer in buffers[len(inputs) :]]


def run_graph(
    graph: GraphDefOp,
    sizes: Mapping[str, int],
    params: Mapping[str, int],
    inputs: Sequence[np.ndarray],
    expected: np.ndarray,
    tolerance: float = 4e-3,
) -> EmittedKernel:
    """Lowers, simulates and compares with a float64 reference, relative to its largest element."""
    kernel = emit_graph(graph, sizes, params)
    dtype = np.float16 if graph.results_[0].type.element_type == f16 else np.float32
    (found,) = simulate(kernel, inputs, [np.full(expected.shape, np.nan, dtype)])
    scale = np.abs(expected).max()
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=tolerance)
    return kernel


@pytest.fixture(scope="session")
def lab() -> SimpleNamespace:
    """The functions of this file."""
    return SimpleNamespace(
        tensor=tensor,
        graph=build_graph,
        graph_of_results=build_graph_of_results,
        emit=emit_graph,
        simulate=simulate,
        run=run_graph,
        target=TARGET,
    )


@pytest.fixture
def rng() -> np.random.Generator:
    """Seeded random numbers."""
    return np.random.default_rng(7)
