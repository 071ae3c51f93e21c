"""Workloads beyond the paper's: nested loops, several outputs, the products of a layer norm first."""

from __future__ import annotations

import pytest

from prism.dialects.layouts import REPL
from prism.search.engine import generate
from prism.search.from_ir import Workload, read_workload, workload_funcs
from prism.search.graphs import Graph
from prism.search.layouts import step_layouts
from prism.search.maps import assignments
from prism.search.sgraph import solutions

TYPES = """
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!up = tensor<?x?xf16, #sym.shape<[d, h]>>
!down = tensor<?x?xf16, #sym.shape<[h, d]>>
!h = tensor<?x?xf16, #sym.shape<[n, h]>>
!a = tensor<?x16xf16, #sym.shape<[d, 16]>>
!b = tensor<16x?xf16, #sym.shape<[16, d]>>
!r = tensor<?x16xf16, #sym.shape<[n, 16]>>
!row = tensor<?x1xf16, #sym.shape<[n, 1]>>
"""

LORA = """
func.func @lora(%x: !x, %w: !w, %a: !a, %b: !b) -> !x {
  %p = kernel.matmul %x, %w : (!x, !w) -> !x
  %q = kernel.matmul %x, %a : (!x, !a) -> !r
  %s = kernel.matmul %q, %b : (!r, !b) -> !x
  %o = kernel.add %p, %s : (!x, !x) -> !x
  func.return %o : !x
}"""

GATED_MLP = """
func.func @gated_mlp(%x: !x, %wg: !up, %wu: !up, %wd: !down) -> !x {
  %g = kernel.matmul %x, %wg : (!x, !up) -> !h
  %s = kernel.silu %g : (!h) -> !h
  %u = kernel.matmul %x, %wu : (!x, !up) -> !h
  %m = kernel.mul %s, %u : (!h, !h) -> !h
  %o = kernel.matmul %m, %wd : (!h, !down) -> !x
  func.return %o : !x
}"""

ADD_RMS_NORM = """
func.func @add_rms_norm(%x: !x, %y: !x) -> (!x, !x) {
  %s = kernel.add %x, %y : (!x, !x) -> !x
  %o = kernel.rms_norm %s eps <1.0e-5> : (!x) -> !x
  func.return %o, %s : !x, !x
}"""

LAYER_NORM_LINEAR = """
func.func @layer_norm_linear(%x: !x, %w: !w) -> !x {
  %m = kernel.mean %x dim 1 : (!x) -> !row
  %c = kernel.sub %x, %m : (!x, !row) -> !x
  %s = kernel.square %c : (!x) -> !x
  %v = kernel.mean %s dim 1 : (!x) -> !row
  %e = kernel.shift %v by <1.0e-5> : (!row) -> !row
  %r = kernel.sqrt %e : (!row) -> !row
  %q = kernel.div %c, %r : (!x, !row) -> !x
  %o = kernel.matmul %q, %w : (!x, !w) -> !x
  func.return %o : !x
}"""


@pytest.fixture
def workload(parse):
    def read(text: str) -> Workload:
        (func,) = workload_funcs(parse(TYPES + text))
        return read_workload(func)

    return read


def names(graph: Graph) -> list[str]:
    return [step.name for step in graph.steps]


def operands(graph: Graph, index: int) -> list[str]:
    return [graph.steps[o].name for o in graph.steps[index].operands]


def test_lora_is_one_loop_with_both_products_of_x(workload):
    found = [s.graph for s in generate(workload(LORA)).sgraphs if s.graph.loops]
    # X W and X A are accumulated in one loop over d that reads X once; B comes after it.
    fused = [
        g
        for g in found
        if [operands(g, i) for i, step in enumerate(g.steps) if step.name == "matmul"].count(
            ["accum", "input"]
        )
        and names(g).count("accum") == 2
        and names(g).count("matmul") == 3
    ]
    assert fused
    assert all(names(g).count("input") == 4 for g in fused)


def test_gated_mlp_with_its_down_projection_is_one_nest_of_loops(workload):
    (nest,) = [s for s in generate(workload(GATED_MLP)).sgraphs if len(s.graph.loops) == 2]
    graph = nest.graph
    assert graph.loops == ("i", "j")
    accums = {i: s.attribute for i, s in enumerate(graph.steps) if s.name == "accum"}
    assert list(accums.values()) == ["j", "j", "i"]
    # The outer loop cuts the hidden dim h, the inner one d, for each chunk of h anew.
    loops = {loops for _, loops in assignments(nest)}
    assert loops == {((REPL, 1, 1, 0, REPL), (1, 0, 0, REPL, REPL))}
    outer = step_layouts(graph, "i", next(iter(loops))[0])
    assert [outer[i] for i, axis in accums.items() if axis == "j"] == [1, 1]


def test_the_constraints_of_a_nest_admit_just_its_rows(workload):
    (nest,) = [s for s in generate(workload(GATED_MLP)).sgraphs if len(s.graph.loops) == 2]
    admitted = set[tuple[tuple[int, ...], ...]]()
    of_loops = {
        name
        for (_, axis), entry in nest.maps.items()
        if axis in nest.graph.loops and not isinstance(entry, int)
        for name in entry
    }
    variables = [name for name in nest.variables if name in of_loops]
    constraints = [c for c in nest.constraints if of_loops.issuperset(c.variables)]
    for values in solutions(variables, constraints):
        rows: list[tuple[int, ...]] = []
        for axis in nest.graph.loops:
            row: list[int] = []
            for tensor in nest.graph.tensors:
                entry = nest.maps.get((tensor, axis), ())
                assert not isinstance(entry, int)
                row.append(next((d for d, v in enumerate(entry) if values[v]), REPL))
            rows.append(tuple(row))
        admitted.add(tuple(rows))
    assert admitted == {loops for _, loops in assignments(nest)}


def test_a_nest_passes_through_text(parse, run_passes):
    passes = ("prism-generate", "prism-prune", "prism-instantiate-maps")
    direct = run_passes(parse(TYPES + GATED_MLP), *passes)
    assert str(direct) == str(run_passes(parse(TYPES + GATED_MLP), *passes, reparse=True))
    assert "loop [i, j]" in str(direct)


def test_a_second_loop_does_not_cut_a_dim_of_constant_size(example):
    (func,) = workload_funcs(example("attention"))
    assert all(len(s.graph.loops) < 2 for s in generate(read_workload(func)).sgraphs)


def test_attention_reads_keys_and_values_once_in_one_loop(example):
    (func,) = workload_funcs(example("attention"))
    found = [s for s in generate(read_workload(func)).sgraphs if names(s.graph).count("accum") == 2]
    (one_pass,) = [s for s in found if names(s.graph).count("sum") == 1]
    assert names(one_pass.graph) == [
        *["input"] * 3, "matmul", "exp", "matmul", "accum", "sum", "accum", "div", "output",
    ]  # fmt: skip
    # Q [b, g, 128] whole, Kt [b, 128, h] and V [b, h, 128] cut along h.
    assert {loops for _, loops in assignments(one_pass)} == {((REPL, 2, 1, REPL),)}


def test_qk_norm_attention_normalizes_and_attends_in_one_pass(example):
    (func,) = workload_funcs(example("qk_norm_attention"))
    loops = [s for s in generate(read_workload(func)).sgraphs if s.graph.loops]
    one_pass = [
        s
        for s in loops
        if {rows for _, rows in assignments(s)} == {((REPL, 2, 1, REPL),)}
        and names(s.graph).count("accum") == 2
    ]
    assert one_pass
    assert all(names(s.graph).count("input") == 3 for s in one_pass)


def test_add_rms_norm_has_two_outputs_and_adds_once(workload):
    (found,) = generate(workload(ADD_RMS_NORM)).sgraphs
    assert names(found.graph).count("add") == 1
    assert len(found.graph.outputs) == 2
    assert {grid for grid, _ in assignments(found)} == {(), ((0, 0, 0, 0),)}


def test_layer_norm_multiplies_first_in_one_pass_over_x(workload):
    found = [s for s in generate(workload(LAYER_NORM_LINEAR)).sgraphs if s.graph.loops]
    assert found
    for sgraph in found:
        graph = sgraph.graph
        # The product is X W itself: mean and deviation are applied after the loop.
        products = [i for i, step in enumerate(graph.steps) if step.name == "matmul"]
        assert [operands(graph, i) for i in products] == [["input", "input"]]
        assert names(graph).count("input") == 2
        assert {loops for _, loops in assignments(sgraph)} == {((1, 0, REPL),)}
