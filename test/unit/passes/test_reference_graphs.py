"""
What the passes print against the oracle: every graph that the paper's implementation verifies is there.

Read independently of the search's own values: graphs are compared as canonical text made from the
printed IR and from the oracle, with degenerate loops (fmap none everywhere) read as no loop,
composite operators expanded, and equal terms merged (a term's text is its identity).
"""

import io
import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.parser import Parser
from xdsl.passes import PassPipeline
from xdsl.printer import Printer
from xdsl.universe import Universe

from prism.dialects.kernel import CANDIDATE_OF, VERDICT, GraphDefOp, VerdictAttr
from prism.dialects.threadblock import AccumOp, InputOp, OutputOp, TileOperatorOp

ROOT = Path(__file__).parents[3]
ORACLE = json.loads((ROOT / "test/unit/search/reference_graphs.json").read_text())["workloads"]
PIPELINE = "prism-generate,prism-prune,prism-instantiate-maps,prism-verify"
COMMUTATIVE = ("mul", "add", "maximum")
SIZES = {"rms_norm": "d", "rms_norm_mlp": "d", "swiglu": "d"}


def apply(name: str, *operands: str) -> str:
    if name in COMMUTATIVE:
        operands = tuple(sorted(operands))
    return f"{name}({', '.join(operands)})"


def load(text: str) -> tuple[Context, ModuleOp]:
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context, Parser(context, text).parse_module()


def run_passes(path: Path) -> ModuleOp:
    """The module after the passes, printed and parsed back."""
    context, module = load(path.read_text())
    passes = Universe.get_multiverse().all_passes
    PassPipeline.parse_spec(passes, PIPELINE).apply(context, module)
    module.verify()
    stream = io.StringIO()
    Printer(stream).print_op(module)
    return load(stream.getvalue())[1]


def maps_text(maps: list[tuple[str, list[int | None], int | None]], axes: int) -> str:
    """The maps of a graph, the same for every order of its grid axes."""
    return min(
        str([(name, [grid[axis] for axis in order], loop) for name, grid, loop in maps])
        for order in permutations(range(axes))
    ).replace("None", "-")


def canonical_ir(graph: GraphDefOp) -> str:
    terms: dict[SSAValue, str] = {}
    maps: list[tuple[str, list[int | None], int | None]] = []
    arguments = list(graph.body.block.args)
    grid, loops = graph.grid_axes, graph.loop_axes
    assert len(loops) <= 1
    output = ""
    for op in graph.body.block.ops:
        match op:
            case InputOp():
                assert isinstance(op.tensor, SSAValue)
                name = f"in{arguments.index(op.tensor)}"  # pyright: ignore
                terms[op.result] = name
                loop = op.fmap.cuts.get(loops[0]) if loops else None
                maps.append((name, [op.imap.cuts.get(axis) for axis in grid], loop))
            case AccumOp():
                terms[op.result] = apply("accum", terms[op.tile])
            case OutputOp():
                maps.append(("out", [op.omap.cuts.get(axis) for axis in grid], None))
                output = terms[op.tile]
            case TileOperatorOp():
                extra = [str(op.dim_value)] if op.dim_value is not None else []
                extra += [f"<{op.constant_value}>"] if op.constant_value is not None else []
                operands = [terms[value] for value in op.inputs]
                terms[op.result] = apply(op.operator.name, *operands, *extra)
            case _:
                pass
    return f"{maps_text(sorted(set_of(maps), key=str), len(grid))} {output}"


def set_of(maps: list[Any]) -> list[Any]:
    """The maps without repetitions: an input that two operators read is one term."""
    return [m for i, m in enumerate(maps) if m not in maps[:i]]


def canonical_oracle(graph: dict[str, Any], size: str) -> str:
    looped = any(op.get("fmap") is not None for op in graph["ops"])
    terms: list[str] = []
    maps: list[tuple[str, list[int | None], int | None]] = []

    def accum(term: str) -> str:
        return apply("accum", term) if looped else term

    def root_mean_square(total: str) -> str:
        mean = apply("scale", total, f"<1 / {size}>")
        return apply("sqrt", apply("shift", mean, "<1 / 100000>"))

    output = ""
    for op in graph["ops"]:
        operands = [terms[i] for i in op["operands"]]
        match op["op"]:
            case "input":
                name = f"in{len(terms)}"
                maps.append((name, op["imap"], op["fmap"]))
                terms.append(name)
            case "output":
                maps.append(("out", op["omap"], None))
                output = operands[0]
            case "accum":
                terms.append(accum(operands[0]))
            case "rms_norm":
                total = apply("sum", apply("square", operands[0]), "1")
                terms.append(apply("div", operands[0], root_mean_square(total)))
            case "accum_rms_last":
                total = accum(apply("sum", apply("square", operands[0]), "1"))
                terms.append(root_mean_square(total))
            case name:
                terms.append(apply(name, *operands))
    return f"{maps_text(sorted(maps, key=str), graph['grid_axes'])} {output}"


@pytest.mark.parametrize("workload", ["rms_norm", "swiglu", "rms_norm_mlp"])
def test_every_graph_of_the_oracle_is_printed_and_proven(workload: str) -> None:
    module = run_passes(ROOT / "examples" / f"{workload}.mlir")
    proven: set[str] = set()
    for op in module.ops:
        if isinstance(op, func.FuncOp) and CANDIDATE_OF in op.attributes:
            verdict = op.attributes[VERDICT]
            assert isinstance(verdict, VerdictAttr)
            (graph,) = (inner for inner in op.walk() if isinstance(inner, GraphDefOp))
            if verdict.data.kind == "equal":
                proven.add(canonical_ir(graph))
    expected = {canonical_oracle(graph, SIZES[workload]) for graph in ORACLE[workload]}
    assert expected <= proven
    assert len(expected) == {"rms_norm": 9, "swiglu": 6, "rms_norm_mlp": 2}[workload]


def test_the_oracle_reader_tells_graphs_apart() -> None:
    """Without this, a reader that maps all graphs to one text would pass."""
    texts = {canonical_oracle(graph, "d") for graph in ORACLE["rms_norm"]}
    assert len(texts) == 9
    assert any("accum(matmul(in0, in1))" in text for text in texts)
    assert any(
        text.endswith(
            "div(matmul(in0, in1), sqrt(shift(scale(sum(square(in0), 1), <1 / d>), <1 / 100000>)))"
        )
        for text in texts
    )
