"""Covers of programs by several kernels: what is cut where, what stays one kernel, what it computes."""

from __future__ import annotations

import numpy as np
import pytest

from prism.dialects.kernel import GraphDefOp
from prism.search.cost import CostModel, Family, assumed_sizes
from prism.search.cover import Cover, Library
from prism.search.engine import LOOPS, generate
from prism.search.from_ir import (
    Workload,
    candidate_funcs,
    read_program,
    read_workload,
    workload_funcs,
)
from prism.search.graphs import from_terms
from prism.search.programs import choices

TYPES = """
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!up = tensor<?x?xf16, #sym.shape<[d, h]>>
!down = tensor<?x?xf16, #sym.shape<[h, d]>>
!h = tensor<?x?xf16, #sym.shape<[n, h]>>
"""

GATED_MLP = """
func.func @gated_mlp(%x: !x, %wg: !up, %wu: !up, %wd: !down) -> !x {
  %g = kernel.matmul %x, %wg : (!x, !up) -> !h
  %s = kernel.silu %g : (!h) -> !h
  %u = kernel.matmul %x, %wu : (!x, !up) -> !h
  %m = kernel.mul %s, %u : (!h, !h) -> !h
  %o = kernel.matmul %m, %wd : (!h, !down) -> !x
  func.return %o : !x
}"""


def block(i: int) -> str:
    return f"""
  %n{i} = kernel.rms_norm %x{i} eps <1.0e-5> : (!x) -> !x
  %g{i} = kernel.matmul %n{i}, %wg{i} : (!x, !up) -> !h
  %s{i} = kernel.silu %g{i} : (!h) -> !h
  %u{i} = kernel.matmul %n{i}, %wu{i} : (!x, !up) -> !h
  %m{i} = kernel.mul %s{i}, %u{i} : (!h, !h) -> !h
  %d{i} = kernel.matmul %m{i}, %wd{i} : (!h, !down) -> !x
  %x{i + 1} = kernel.add %d{i}, %x{i} : (!x, !x) -> !x"""


def stacked(count: int) -> str:
    arguments = ", ".join(f"%wg{i}: !up, %wu{i}: !up, %wd{i}: !down" for i in range(count))
    body = "".join(map(block, range(count)))
    return f"func.func @mlp(%x0: !x, {arguments}) -> !x {{{body}\n  func.return %x{count} : !x\n}}"


@pytest.fixture
def workload(parse):
    def read(text: str) -> Workload:
        (func,) = workload_funcs(parse(TYPES + text))
        return read_workload(func)

    return read


def cover_of(workload: Workload, library: Library, **sizes: int):
    table = workload.table
    return Cover(table, workload.outputs, CostModel(sizes), library).kernels()


def products(graph) -> int:
    return sum(step.name == "matmul" for step in graph.steps)


def test_gated_mlp_is_two_kernels_the_hidden_layer_stored_between(workload):
    (program,) = generate(workload(GATED_MLP)).programs
    first, second = program.kernels
    assert [products(k.sgraph.graph) for k in (first, second)] == [2, 1]
    assert len(first.sgraph.graph.inputs) == 3
    assert all(k.sgraph.graph.loops == ("i",) for k in program.kernels)


@pytest.mark.parametrize(
    "name", ["matmul", "rms_norm", "swiglu", "rms_norm_mlp", "attention", "qk_norm_attention"]
)
def test_what_one_kernel_does_well_is_not_cut(name, example):
    (func,) = workload_funcs(example(name))
    assert generate(read_workload(func)).programs == ()


def test_each_block_of_a_stack_is_two_kernels_and_searched_once(workload):
    sizes = {"n": 8, "d": 4096, "h": 4096}
    library = Library(LOOPS)
    searched: list[int] = []
    for count in (1, 2, 3):
        kernels = cover_of(workload(stacked(count)), library, **sizes)
        assert kernels is not None
        assert len(kernels) == 2 * count
        assert [products(k.graph) for k in kernels] == [2, 1] * count
        searched.append(len(library.searched))
    # The third block has little that the second had not.
    assert searched[2] - searched[1] < searched[1] / 2


def test_a_program_passes_through_text_and_computes_its_workload(parse, run_passes):
    from prism.verify.evaluate import evaluate_candidate, evaluate_function

    passes = ("prism-generate", "prism-prune", "prism-instantiate-maps")
    module = run_passes(parse(TYPES + GATED_MLP), *passes, reparse=True)
    (func,) = workload_funcs(module)
    programs = [
        f
        for _, f in candidate_funcs(module)
        if sum(isinstance(op, GraphDefOp) for op in f.walk()) == 2
    ]
    # Every map of either kernel is in one.
    assert len(programs) == 4
    kernels = [read_program(f).kernels for f in programs]
    for position in (0, 1):
        assert len({str(dict(k[position].sgraph.maps)) for k in kernels}) == 4
    sizes = {"n": 4, "d": 6, "h": 8}
    random = np.random.default_rng(0)
    inputs = [random.uniform(-1, 1, s) for s in ((4, 6), (6, 8), (6, 8), (8, 6))]
    (expected,) = evaluate_function(func, inputs, sizes)
    for candidate in programs:
        (found,) = evaluate_candidate(candidate, inputs, sizes, {"x": 2, "y": 2, "i": 2})
        assert np.allclose(found, expected)


def test_prune_drops_a_program_without_maps(parse, run_passes):
    module = run_passes(parse(TYPES + GATED_MLP), "prism-generate")
    before = [f.sym_name.data for _, f in candidate_funcs(module)]
    (program,) = [f for _, f in candidate_funcs(module) if len(read_program(f).kernels) > 1]
    assert len(choices(read_program(program))) == 4
    run_passes(module, "prism-prune")
    assert [f.sym_name.data for _, f in candidate_funcs(module)] == before


def test_prices(workload):
    table = workload(GATED_MLP).table
    product = next(t for t, node in enumerate(table.nodes) if node[0] == "matmul")
    model = CostModel({"n": 8, "d": 4096, "h": 4096})
    whole = Family(from_terms(table, [product], (), ()))
    looped = Family(from_terms(table, [product], {product}, ("i",)))
    # Without a loop no block has room for 4096 rows of 64 columns of the weights.
    assert model.cheapest([whole])[0] is None
    graph, seconds = model.cheapest([whole, looped])
    assert graph is looped.graph
    # The weights are read once: 32 MiB at 1.5 TB/s on 64 of 108 units, and a launch.
    assert seconds == pytest.approx(3e-6 + 33.7e6 / 1.5e12 * 108 / 64, rel=0.02)


def test_assumed_sizes_are_many_and_few_rows(workload):
    one = workload(GATED_MLP)
    shapes, rows = one.table.shapes, one.table.shapes[one.outputs[0]]
    many, few = assumed_sizes(shapes, rows, {"d": 512})
    assert many == {"n": 4096, "d": 512, "h": 4096}
    assert few == {"n": 8, "d": 512, "h": 4096}
    assert assumed_sizes(shapes, rows, {"n": 3}) == [{"n": 3, "d": 4096, "h": 4096}]


def test_llama_layer_is_eight_kernels_beside_the_cache(example):
    (func,) = workload_funcs(example("llama_layer"))
    sizes = {"b": 8, "k": 8, "g": 4, "h": 4096, "d": 4096, "f": 14336}
    one = read_workload(func)
    kernels = cover_of(one, Library(LOOPS), **sizes)
    assert kernels is not None
    plain = [one.table.nodes[k.results[0]][0] for k in kernels if k.graph is None]
    # A reshape moves nothing; the caches are copied with one position more, as the workload says.
    assert sorted(plain) == ["concat"] * 2 + ["reshape"] * 4
    graphs = [k.graph for k in kernels if k.graph is not None]
    # Norm with Q, K and V; rotation; scores; exponentials; values; output; norm with gate and up; down.
    assert [products(g) for g in graphs] == [3, 0, 1, 0, 1, 1, 2, 1]


@pytest.mark.parametrize("name", ["fused_qkv", "gqa_decode", "geglu"])
def test_candidates_of_examples_compute_their_workload(name, example, run_passes):
    from prism.dialects.sym import shape_of
    from prism.verify.evaluate import evaluate_candidate, evaluate_function

    passes = ("prism-generate", "prism-prune", "prism-instantiate-maps")
    module = run_passes(example(name), *passes, reparse=True)
    (func,) = workload_funcs(module)
    shapes = [shape_of(argument.type) for argument in func.body.block.args]
    names = sorted({symbol for shape in shapes for size in shape for symbol in size.symbols()})
    sizes = {symbol: 2 + 2 * (i % 2) for i, symbol in enumerate(names)}
    random = np.random.default_rng(0)
    inputs = [
        random.uniform(-1, 1, [int(size.evaluate(sizes)) for size in shape]) for shape in shapes
    ]
    expected = evaluate_function(func, inputs, sizes)
    candidates = [f for _, f in candidate_funcs(module)]
    assert candidates
    for candidate in [*candidates[:6], *candidates[-2:]]:
        found = evaluate_candidate(candidate, inputs, sizes, dict.fromkeys("xyzij", 2))
        for one, other in zip(found, expected, strict=True):
            assert np.allclose(one, other), candidate.sym_name.data


def test_of_too_many_graphs_the_cheapest_are_kept_and_that_is_said(example, monkeypatch):
    from prism.search import engine

    (func,) = workload_funcs(example("rms_norm_mlp"))
    one = read_workload(func)
    every = generate(one)
    monkeypatch.setattr(engine, "MAX_GRAPHS", 3)
    kept = generate(one)
    assert every.complete
    assert not kept.complete
    assert len(kept.sgraphs) == 3
    # Without a loop the weights fit no block: those that have one remain.
    assert all(s.graph.loops for s in kept.sgraphs)
