"""
Whatever the layout table types computes its erasure: random graphs on two axes, tile by tile.

Operators are drawn from all that the table types on both axes at once, those that leave something
owed more often, so that maxima, shifts and rescaled sums meet each other and ordinary sums.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from prism.dialects import kernel, threadblock
from prism.dialects.kernel import GraphDefOp
from prism.dialects.layouts import PARTIAL, PARTIAL_EXP, PARTIAL_MAX, REPL, cut_dim, result_layout
from prism.dialects.operators import OPERATORS, Attributes
from prism.dialects.shapes import Shape, result_shape
from prism.dialects.sym import AxisMap, MapAttr, tensor_type
from prism.dialects.sym_expr import SymExpr
from prism.dialects.threadblock import (
    AccumOp,
    InputOp,
    OutputOp,
    TileType,
    YieldOp,
    cut_shape,
    result_shape_of_tiles,
)
from prism.dialects.tile_type import OWED_CUT, OWED_WHOLE
from prism.verify.evaluate import evaluate_candidate, evaluate_function

N, H, M, ONE = SymExpr.symbol("n"), SymExpr.symbol("h"), SymExpr.symbol("m"), SymExpr.constant(1)
SIZES = {"n": 3, "h": 5, "m": 4}
SHAPES = ((N, H), (H, M), (N, ONE), (ONE, H))
AXES = ("x", "i")
STEPS = 14

APPLICATIONS = [
    *((name, Attributes()) for name in ("exp", "neg", "relu", "square", "add", "sub", "mul")),
    *((name, Attributes()) for name in ("maximum", "matmul")),
    *((name, Attributes(constant=ONE / 2)) for name in ("scale", "shift")),
    *((name, Attributes(dim=dim)) for name in ("max", "sum") for dim in (0, 1)),
    ("transpose", Attributes(permutation=(1, 0))),
]


Choice = tuple[str, Attributes, tuple[SSAValue, ...], Shape, dict[str, int]]


def owed_of(layouts: dict[str, int]) -> dict[str, str]:
    """What a tile's type lists for the layouts of the axes."""
    owed: dict[str, str] = {}
    for axis, layout in layouts.items():
        dim = cut_dim(layout)
        kinds = {la: kind for kind, la in OWED_WHOLE.items()}
        if dim is not None:
            kinds = {make(dim): kind for kind, make in OWED_CUT.items()}
        if layout in kinds:
            owed[axis] = kinds[layout]
    return owed


@dataclass
class Graph:
    """A random graph and, op by op, the workload that it stands for."""

    draw: random.Random
    body: Block = field(default_factory=Block)
    whole: Block = field(default_factory=Block)
    of: dict[SSAValue, SSAValue] = field(default_factory=dict)
    """By tile the whole tensor that it stands for."""
    after: set[SSAValue] = field(default_factory=set)

    def tile(self, value: SSAValue) -> TileType:
        assert isinstance(value.type, TileType)
        return value.type

    def input(self, shape: tuple[SymExpr, ...]) -> None:
        cuts = {a: self.draw.choice([REPL, REPL, REPL, 0, 1]) for a in AXES}
        if H in shape and self.draw.random() < 0.6:
            cuts["i"] = shape.index(H)  # so that often a loop goes over keys
        cuts = {a: d for a, d in cuts.items() if d != REPL and shape[d] != ONE}
        grid = MapAttr.of({a: d for a, d in cuts.items() if a == "x"})
        loop = MapAttr.of({a: d for a, d in cuts.items() if a == "i"})
        tensor = self.body.insert_arg(tensor_type(shape, f32), len(self.body.args))
        tile = TileType(cut_shape(shape, AxisMap(tuple(cuts.items()))), f32)
        op = InputOp(tensor, grid, loop, tile)
        self.body.add_op(op)
        self.of[op.result] = self.whole.insert_arg(tensor.type, len(self.whole.args))

    def choices(self) -> Iterator[Choice]:
        """All operators that are typed on all axes, with the result's shape and layouts."""
        values = list(self.of)
        for name, given in APPLICATIONS:
            operator = OPERATORS[name]
            operands = [(a,) for a in values]
            if operator.arity == 2:
                operands = [(a, b) for a in values for b in values]
            for chosen in operands:
                tiles = [self.tile(v) for v in chosen]
                if self.after & set(chosen) and any(t.layout("i") != REPL for t in tiles):
                    continue
                try:
                    shape = result_shape(operator, [t.whole for t in tiles], given)
                except VerifyException:
                    continue
                layouts = {
                    axis: result_layout(
                        operator, [t.layout(axis) for t in tiles], [t.ones for t in tiles], given
                    )
                    for axis in AXES
                }
                known = {axis: layout for axis, layout in layouts.items() if layout is not None}
                if len(known) == len(layouts):
                    yield name, given, chosen, shape, known

    def step(self) -> None:
        every = list(self.choices())
        owing = [choice for choice in every if min(choice[4].values()) < REPL]
        correcting = [choice for choice in owing if choice[4]["i"] <= PARTIAL_EXP]
        summed = [choice for choice in correcting if choice[4]["i"] == PARTIAL_EXP]
        weighted = [pool for pool in (every, owing, correcting, summed, summed) if pool]
        name, given, chosen, shape, known = self.draw.choice(self.draw.choice(weighted))
        dims = result_shape_of_tiles(shape, list(known.items()))
        type_ = TileType(dims, f32, owed=owed_of(known))
        op = threadblock.OPS[name](chosen, type_, attributes=given)
        self.body.add_op(op)
        wholes = [self.of[v] for v in chosen]
        result = kernel.OPS[name](wholes, tensor_type(type_.whole, f32), attributes=given)
        self.whole.add_op(result)
        self.of[op.result] = result.result
        if self.after & set(chosen):
            self.after.add(op.result)

    def accumulate(self) -> None:
        """Ends the loop for every tile that owes something over it."""
        maxima = [v for v in self.of if self.tile(v).layout("i") == PARTIAL_MAX]
        for value in list(self.of):
            match self.tile(value).layout("i"):
                case layout if layout == PARTIAL:
                    self._accumulate(value)
                case layout if layout == PARTIAL_MAX:
                    self._accumulate(value, kind="max")
                case layout if layout == PARTIAL_EXP:
                    any(self._accumulate(value, maximum=maximum) for maximum in maxima)
                case _:
                    pass

    def _accumulate(self, value: SSAValue, **options: object) -> bool:
        """Adds an accum if the verifiers accept it, and says whether."""
        op = AccumOp(value, "i", self.tile(value).without("i"), **options)  # type: ignore[arg-type]
        self.body.add_op(op)
        typed = self.well_typed(op)
        if typed:
            self.of[op.result] = self.of[value]
            self.after.add(op.result)
        else:
            op.detach()
        return typed

    def well_typed(self, op: AccumOp) -> bool:
        """Whether the verifiers accept the graph with this accum as its last op."""
        try:
            self.graph([]).verify()
        except VerifyException:
            return False
        return True

    def graph(self, outputs: list[SSAValue]) -> GraphDefOp:
        """A copy of the graph with outputs of some tiles."""
        region = Region(Block())
        copies: dict[SSAValue, SSAValue] = {}
        block = region.block
        for argument in self.body.args:
            copies[argument] = block.insert_arg(argument.type, len(block.args))
        for op in self.body.ops:
            block.add_op(op.clone(copies))
        written: list[OutputOp] = []
        for value in outputs:
            tile = self.tile(value)
            cut = tile.layout("x")
            omap = MapAttr.of({} if cut == REPL else {"x": cut})
            written.append(OutputOp(copies[value], omap, tensor_type(tile.whole, f32)))
        block.add_ops([*written, YieldOp(*(op.result for op in written))])
        source = Block(arg_types=[argument.type for argument in self.body.args])
        types = [op.result.type for op in written]
        return GraphDefOp(list(source.args), types, ["x"], ["i"], region)

    def functions(self) -> tuple[FuncOp, FuncOp, int]:
        """The workload, the candidate and how many tensors both return."""
        whole = [
            v
            for v in self.of
            if self.tile(v).layout("i") == REPL and self.tile(v).layout("x") >= REPL
        ]
        graph = self.graph(whole)
        types = [argument.type for argument in self.body.args]
        results = [result.type for result in graph.results_]
        candidate = FuncOp("g", (types, results))
        entry = candidate.body.block
        graph.operands = list(entry.args)
        entry.add_ops([graph, ReturnOp(*graph.results_)])
        self.whole.add_op(ReturnOp(*(self.of[value] for value in whole)))
        workload = FuncOp("w", (types, results), Region(self.whole))
        ModuleOp([workload, candidate]).verify()
        return workload, candidate, len(whole)


def random_graph(seed: int) -> Graph:
    graph = Graph(random.Random(seed))
    for shape in SHAPES:
        graph.input(shape)
    for _ in range(STEPS):
        graph.step()
    graph.accumulate()
    for _ in range(2):
        graph.step()
    return graph


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_typed_graph_computes_its_erasure() -> None:
    met: Counter[str] = Counter()
    for seed in range(40):
        workload, candidate, count = random_graph(seed).functions()
        numbers = np.random.default_rng(seed)
        shapes = [[int(s.evaluate(SIZES)) for s in shape] for shape in SHAPES]
        inputs = [numbers.uniform(-1, 1, shape) for shape in shapes]
        expected = evaluate_function(workload, inputs, SIZES)
        assert len(expected) == count
        for counts in ({"x": 2, "i": 3}, {"x": 3, "i": 1}):
            found = evaluate_candidate(candidate, inputs, SIZES, counts)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(
                    one, other, rtol=1e-8, atol=1e-8, err_msg=f"seed {seed}:\n{candidate}"
                )
        met += Counter(op.kind_value for op in candidate.walk() if isinstance(op, AccumOp))
    assert min(met[kind] for kind in AccumOp.LAYOUTS) >= 10, met
