"""Spaces, costs and choices: exact small cases, limits, overrides, and what must be refused."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp

from prism.dialects.kernel import VERDICT, GraphDefOp, VerdictAttr
from prism.dialects.kernel import Verdict as VerdictData
from prism.dialects.sym import MapAttr
from prism.dialects.threadblock import OutputOp
from prism.errors import PrismError
from prism.tune import choose as choose_module
from prism.tune import tune as tune_room
from prism.tune.choose import TuneError, choose
from prism.tune.cost import Cost, cost, price
from prism.tune.graph import Axis, Graph, Operand, Product, SpaceError, Tile, read_graph
from prism.tune.space import Point, Space
from prism.tune.target import load_target
from prism.tune.tune import NotProvenError, tune_module
from prism.tune.usage import Usage, blocks_per_sm, estimate_usage
from prism.verify.api import is_candidate

from .conftest import proven

A100 = load_target("sm_80")


def candidates(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and is_candidate(op)]


def graph_of(candidate: FuncOp) -> GraphDefOp:
    return next(op for op in candidate.walk() if isinstance(op, GraphDefOp))


def with_axes(module: ModuleOp, grid: tuple[str, ...], loops: tuple[str, ...]) -> Iterator[FuncOp]:
    for candidate in candidates(module):
        graph = graph_of(candidate)
        if (graph.grid_axes, graph.loop_axes) == (grid, loops):
            yield candidate


# X[8, d] cut by i, W[d, d] cut by x and i: rms_norm's fused graph, as plain numbers.
def fused(n: int = 8, d: int = 4096) -> Graph:
    return Graph(
        "g",
        (Axis("x", d, None), Axis("i", d, None)),
        (Operand((n, d), 2, {"i": 1}), Operand((d, d), 2, {"x": 1, "i": 0})),
        (Operand((n, d), 2, {"x": 1}),),
        (Product((n, d, d), ((), ("x",), ("i",))),),
    )


def point(x: int, i: int, warps: int = 4, swap: int = 1, d: int = 4096) -> Point:
    return Point({"x": x, "i": i}, {"x": -(-d // x), "i": -(-d // i)}, warps, swap)


def usage_of(graph: Graph, each: Point) -> Usage:
    return estimate_usage(graph, each.tiles, each.warps, each.swap, each.stages)


def cost_of(graph: Graph, each: Point) -> Cost:
    found = cost(graph, each, usage_of(graph, each), A100)
    assert found is not None
    return found


def points(graph: Graph, overrides: dict[str, int]) -> Iterator[Point]:
    return Space(graph, None, overrides).points()


def test_reads_a_candidate():
    for candidate in with_axes(proven("rms_norm"), ("x",), ("i",)):
        graph = read_graph(candidate, {"n": 8, "d": 4096})
        if graph.inputs[1].cuts == {"x": 1, "i": 0}:
            summed = graph.sums[0]
            expected = replace(fused(), name=candidate.sym_name.data, sums=graph.sums)
            assert graph == expected
            if summed == Tile((8, 4096), ((), ("i",)), True):
                return
    pytest.fail("the fused graph is missing")


def test_points_cover_the_dims():
    graph = fused(d=1000)
    found = list(points(graph, {}))
    assert len(found) == len(set(map(repr, found)))
    for each in found:
        for axis in graph.axes:
            tile, count = each.tiles[axis.name], each.counts[axis.name]
            assert (count - 1) * tile < axis.size <= count * tile
    assert {each.tiles["x"] for each in found} == {8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 1000}


def test_a_loop_divides_the_tile_of_its_grid_axis():
    graph = Graph("g", (Axis("x", 100, None), Axis("i", 100, "x")), (), (), ())
    for each in points(graph, {}):
        assert each.counts["i"] == -(-each.tiles["x"] // each.tiles["i"])


def test_parameters():
    assert point(64, 32).parameters() == {
        "grid.x": 64,
        "tile.x": 64,
        "loop.i": 128,
        "tile.i": 32,
        "warps": 4,
        "swap": 1,
        "stages": 1,
    }


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ({"grid.x": 64, "loop.i": 64, "warps": 4, "swap": 0}, point(64, 64, 4, 0)),
        ({"tile.x": 48, "tile.i": 16, "warps": 1, "swap": 1}, point(48, 16, 1, 1)),
        ({"grid.x": 100, "tile.i": 16, "warps": 1, "swap": 1}, point(41, 16, 1, 1)),
    ],
)
def test_overrides(overrides: dict[str, int], expected: Point):
    assert list(points(fused(), {**overrides, "stages": 1})) == [expected]


@pytest.mark.parametrize(
    "overrides", [{"loop.i": 5000}, {"grid.x": 0}, {"tile.x": 64, "grid.x": 63}, {"tile.i": -1}]
)
def test_overrides_that_no_tiling_meets(overrides: dict[str, int]):
    assert list(points(fused(), overrides)) == []


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"warps": 3}, "warps=3: expected one of 1, 2, 4, 8"),
        ({"swap": 2}, "swap=2: expected one of 0, 1"),
        ({"grid.y": 1}, "no parameter 'grid.y'"),
    ],
)
def test_bad_overrides(overrides: dict[str, int], message: str):
    with pytest.raises(SpaceError, match=message):
        list(points(fused(), overrides))


def test_an_axis_must_cut_dims_of_one_extent():
    candidate = next(with_axes(proven("matmul"), ("x",), ("i",)))
    sizes = {"n": 8, "k": 64, "m": 32}
    read_graph(candidate, sizes)
    for op in candidate.walk():
        if isinstance(op, OutputOp):
            op.omap = MapAttr.of({"x": 1 - op.omap.cuts["x"]})
    with pytest.raises(SpaceError, match="expected axis x to cut dims of one extent, found 32, 8"):
        read_graph(candidate, sizes)


def test_occupancy_limits():
    # One limit each: threads 2048/256, shared memory 164 KiB / (40 + 1), registers, blocks.
    assert blocks_per_sm(Usage(0, 256, 32), A100) == 8
    assert blocks_per_sm(Usage(40 * 1024, 64, 32), A100) == 4
    assert blocks_per_sm(Usage(0, 256, 128), A100) == 2
    assert blocks_per_sm(Usage(0, 32, 16), A100) == 32
    assert blocks_per_sm(Usage(163 * 1024, 32, 16), A100) == 1
    assert blocks_per_sm(Usage(163 * 1024 + 1, 32, 16), A100) == 0


def test_bytes_of_the_fused_kernel():
    each = point(64, 64)
    found = cost_of(fused(), each)
    assert found.blocks == 64
    whole = 2 * (8 * 4096 + 4096 * 4096 + 8 * 4096)
    assert found.dram_bytes == whole
    # Each of 64 blocks reads all of X, its part of W, and writes its part of the output.
    assert found.global_bytes == 2 * (64 * 8 * 4096 + 4096 * 4096 + 8 * 4096)
    assert found.seconds > whole / A100.dram_bytes_per_second


def test_usage_of_a_block():
    usage = usage_of(fused(), point(64, 128))
    assert usage.smem_bytes == 2 * (8 * 128 + 128 * 64)
    assert usage.threads == 128


def test_too_much_shared_memory_is_no_point():
    each = point(192, 512)
    assert cost(fused(), each, usage_of(fused(), each), A100) is None
    assert cost(fused(), each, usage_of(fused(), each), load_target("sm_90")) is not None


def test_grid_limit_of_the_target():
    graph = replace(
        fused(), axes=(Axis("x", 4096, None), Axis("y", 8, None), Axis("i", 4096, None))
    )
    each = Point({"x": 64, "y": 1, "i": 64}, {"x": 64, "y": 65536, "i": 64}, 4, 1)
    assert cost(graph, each, Usage(1024, 128, 64), A100) is None


def test_costs_rank_as_they_should():
    def seconds(each: Point) -> float:
        return cost_of(fused(), each).seconds

    # Few blocks leave SMs idle; small steps pay latency; short rows waste DRAM fetches.
    assert seconds(point(64, 128)) < seconds(point(256, 128))
    assert seconds(point(64, 128)) < seconds(point(64, 16))
    assert seconds(point(32, 256)) < seconds(point(8, 256))


# W[d, d] cut by x and i, X[16, d] cut by y and i: rows over grid.y read W twice.
ROWS = Graph(
    "rows",
    (Axis("x", 4096, None), Axis("y", 16, None), Axis("i", 4096, None)),
    (Operand((16, 4096), 2, {"y": 0, "i": 1}), Operand((4096, 4096), 2, {"x": 1, "i": 0})),
    (Operand((16, 4096), 2, {"x": 1, "y": 0}),),
    (Product((16, 4096, 4096), (("y",), ("x",), ("i",))),),
)


def rows_point(y: int, warps: int) -> Point:
    counts = {"x": 128, "y": 16 // y, "i": 8}
    return Point({"x": 32, "y": y, "i": 512}, counts, warps, 1)


def test_what_is_read_twice_counts_twice():
    once, twice = cost_of(ROWS, rows_point(16, 8)), cost_of(ROWS, rows_point(8, 8))
    weights, rows, out = 2 * 4096 * 4096, 2 * 16 * 4096 * 128, 2 * 16 * 4096
    assert once.global_bytes == weights + rows + out
    assert twice.global_bytes == 2 * weights + rows + out
    assert twice.terms["l2"] > 1.6 * once.terms["l2"]
    assert once.counts.instructions < twice.counts.instructions
    assert once.seconds < twice.seconds


@pytest.mark.parametrize("term", ["global_bytes", "dram_bytes", "instructions", "mma_flops"])
def test_more_of_anything_never_costs_less(term: str):
    each = point(64, 128)
    found = cost_of(fused(), each)
    more = replace(found.counts, **{term: 100 * getattr(found.counts, term)})
    dearer = price(fused(), each, usage_of(fused(), each), more, A100)
    assert dearer is not None
    assert dearer.seconds > found.seconds


def test_choice_is_lowered_and_deterministic():
    sizes = {"n": 8, "d": 4096}
    functions = candidates(proven("rms_norm"))
    first, second = (choose(functions, sizes, A100) for _ in range(2))
    assert (first.candidate, first.parameters) == (second.candidate, second.parameters)
    graph = graph_of(first.candidate)
    assert graph.loop_axes == ("i",)
    # Multiply first, divide after the loop, X read by one input.
    names = [op.name for op in graph.body.block.ops]
    assert names.index("threadblock.div") > names.index("threadblock.accum")
    assert names.count("threadblock.input") == 2
    assert first.cost.blocks >= A100.sm_count


@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100"])
def test_every_target_has_a_choice(target: str):
    choice = choose(
        candidates(proven("matmul")), {"n": 7, "k": 1000, "m": 130}, load_target(target)
    )
    assert choice.cost.seconds > 0


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 70), st.integers(1, 3000), st.integers(1, 3000))
def test_any_matmul_shape_has_a_choice(n: int, k: int, m: int):
    choice = choose(candidates(proven("matmul")), {"n": n, "k": k, "m": m}, A100)
    assert choice.parameters["warps"] in (1, 2, 4, 8)


def test_nothing_fits(monkeypatch: pytest.MonkeyPatch):
    from prism.codegen.errors import CannotLower

    def refuse(*arguments: object) -> object:
        raise CannotLower("no such thing")

    monkeypatch.setattr(choose_module, "lowering_cost", refuse)
    with pytest.raises(
        TuneError, match=r"points tried\); first refusal: @matmul__g\d: no such thing"
    ):
        choose(candidates(proven("matmul")), {"n": 8, "k": 64, "m": 64}, A100)


def test_overrides_of_a_choice():
    functions = candidates(proven("rms_norm"))
    sizes = {"n": 8, "d": 512}
    choice = choose(functions, sizes, A100, {"grid.x": 8, "loop.i": 4, "warps": 2})
    assert choice.parameters["grid.x"] == 8
    assert choice.parameters["tile.i"] == 128
    with pytest.raises(SpaceError, match=r"no tiling of the proven graphs has loop\.i=600"):
        choose(functions, sizes, A100, {"loop.i": 600})
    with pytest.raises(SpaceError, match="no proven graph has a parameter 'split'"):
        choose(functions, sizes, A100, {"split": 2})
    with pytest.raises(SpaceError, match="warps=3"):
        choose(functions, sizes, A100, {"warps": 3})


def test_tuned_module():
    module = proven("rms_norm")
    (choice,) = tune_module(module, "n=8,d=256", "sm_90", "rms_norm__g5", "tile.x=64,tile.i=32")
    module.verify()
    (candidate,) = candidates(module)
    assert candidate is choice.candidate
    assert candidate.sym_name.data == "rms_norm__g5"
    assert candidate.attributes["kernel.target"] == StringAttr("sm_90")
    sizes = candidate.attributes["kernel.sizes"]
    assert isinstance(sizes, DictionaryAttr)
    assert {k: v.value.data for k, v in sizes.data.items() if isinstance(v, IntegerAttr)} == {
        "n": 8,
        "d": 256,
    }
    params = graph_of(candidate).params
    assert params is not None
    assert str(params.data["grid.x"]) == "4 : i64"
    assert [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)] == [
        "rms_norm",
        "rms_norm__g5",
    ]


def change_verdict(module: ModuleOp, kind: str) -> None:
    for candidate in candidates(module):
        verdict = candidate.attributes[VERDICT]
        assert isinstance(verdict, VerdictAttr)
        candidate.attributes[VERDICT] = VerdictAttr(VerdictData(kind, verdict.data.digest))


@pytest.mark.parametrize("kind", ["not_proven", "unknown"])
def test_only_proven_graphs_are_tuned(kind: str):
    module = proven("matmul")
    change_verdict(module, kind)
    with pytest.raises(NotProvenError, match="not proven equal to any of 8 candidate graphs"):
        tune_module(module, "n=8,k=64,m=64", "sm_80")


def test_a_graph_without_verdict_is_not_tuned():
    module = proven("matmul")
    for candidate in candidates(module):
        del candidate.attributes[VERDICT]
    with pytest.raises(NotProvenError):
        tune_module(module, "n=8,k=64,m=64", "sm_80", "matmul__g3")


def test_a_stale_verdict_is_refused():
    module = proven("rms_norm")
    for op in list(module.walk()):
        if op.name == "threadblock.shift":
            del op.properties["constant"]
            op.properties["constant"] = next(
                scale.properties["constant"]
                for scale in module.walk()
                if scale.name == "threadblock.scale"
            )
    with pytest.raises(NotProvenError, match="verdict is of another workload or graph"):
        tune_module(module, "n=8,d=64", "sm_80")


@pytest.mark.parametrize(
    ("shape", "target", "graph", "overrides", "message"),
    [
        ("n=8", "sm_80", "", "", "size 'k' has no value"),
        ("n=8,k=8,m=8", "sm_1", "", "", "unknown target 'sm_1'"),
        ("n=8,k=8,m=8", "sm_80", "other", "", "no candidate graph @other"),
        ("n=8,k=8,m=8", "sm_80", "", "warps", "expected NAME=INTEGER"),
    ],
)
def test_bad_requests(shape: str, target: str, graph: str, overrides: str, message: str):
    with pytest.raises(PrismError, match=message):
        tune_module(proven("matmul"), shape, target, graph, overrides)


def test_module_without_candidates():
    module = proven("matmul")
    for candidate in candidates(module):
        candidate.detach()
    with pytest.raises(NotProvenError, match="no candidate graph"):
        tune_module(module, "n=8,k=8,m=8", "sm_80")


def test_equal_subgraphs_are_tuned_once(monkeypatch: pytest.MonkeyPatch):
    module = proven("matmul")
    for op in list(module.ops):
        assert isinstance(op, FuncOp)
        twin = op.clone()
        twin.properties["sym_name"] = StringAttr(f"other_{op.sym_name.data}")
        if "kernel.candidate_of" in twin.attributes:
            twin.attributes["kernel.candidate_of"] = SymbolRefAttr("other_matmul")
        module.body.block.add_op(twin)
    calls: list[int] = []

    def note(*arguments: object) -> object:
        calls.append(len(calls))
        return choose(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(tune_room, "choose", note)
    first, second = tune_module(module, "n=8,k=64,m=64", "sm_80")
    assert calls == [0]
    assert second.candidate.sym_name.data == f"other_{first.candidate.sym_name.data}"
    assert second.parameters == first.parameters
    module.verify()
