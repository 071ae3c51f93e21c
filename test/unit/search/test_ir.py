"""From IR to values and back: the passes work on printed text alone."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from prism.search.from_ir import (
    candidate_funcs,
    read_candidate,
    read_program,
    read_workload,
    workload_funcs,
)
from prism.search.graphs import canonical
from prism.search.maps import assignments

PASSES = ("prism-generate", "prism-prune", "prism-instantiate-maps")
TYPES = """
  !t = tensor<?x?xf16, #sym.shape<[n, d]>>
  !w = tensor<?x?xf16, #sym.shape<[d, d]>>
"""


def names(module) -> list[str]:
    return [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)]


@pytest.mark.parametrize("name", ["matmul", "rms_norm", "swiglu"])
def test_passes_need_nothing_but_text(name, example, run_passes):
    direct = run_passes(example(name), *PASSES)
    through_text = run_passes(example(name), *PASSES, reparse=True)
    assert str(direct) == str(through_text)


def test_a_symbolic_candidate_reads_back_as_its_sgraph(example, run_passes):
    from prism.search.engine import generate

    module = example("rms_norm")
    (func,) = workload_funcs(module)
    expected = generate(read_workload(func)).sgraphs
    run_passes(module, "prism-generate", reparse=True)
    found = [read_candidate(f) for _, f in candidate_funcs(module)]
    assert [s.graph for s in found] == [s.graph for s in expected]
    assert [dict(s.maps) for s in found] == [dict(s.maps) for s in expected]
    assert [s.constraints for s in found] == [s.constraints for s in expected]


def test_a_concrete_candidate_reads_back_as_one_assignment(example, run_passes):
    module = run_passes(example("swiglu"), *PASSES, reparse=True)
    found = [read_candidate(f) for _, f in candidate_funcs(module)]
    maps = [list(assignments(s)) for s in found]
    assert [len(one) for one in maps] == [1] * 8
    assert len({(canonical(s.graph), one[0]) for s, one in zip(found, maps, strict=True)}) == 8


def test_candidates_follow_their_workload_and_keep_names_free(parse, run_passes):
    module = parse(
        TYPES
        + """
        func.func @first(%x: !t, %w: !w) -> !t {
          %o = kernel.matmul %x, %w : (!t, !w) -> !t
          func.return %o : !t
        }
        func.func @first__s0() { func.return }
        func.func @second(%x: !t) -> !t {
          %o = kernel.exp %x : (!t) -> !t
          func.return %o : !t
        }"""
    )
    run_passes(module, "prism-generate")
    assert names(module) == ["first", "first__s1", "first__s2", "first__s0", "second", "second__s0"]
    run_passes(module, "prism-instantiate-maps")
    assert names(module)[:2] == ["first", "first__g0"]
    assert sum("second__g" in name for name in names(module)) == 4


def test_several_results_are_several_outputs(parse, run_passes):
    module = parse(
        TYPES
        + """
        func.func @two(%x: !t, %y: !t, %w: !w) -> (!t, !t) {
          %s = kernel.add %x, %y : (!t, !t) -> !t
          %o = kernel.matmul %s, %w : (!t, !w) -> !t
          func.return %o, %s : !t, !t
        }"""
    )
    run_passes(module, *PASSES, reparse=True)
    programs = [read_program(f) for _, f in candidate_funcs(module)]
    assert all(len(p.outputs) == 2 for p in programs)
    graphs = [p.kernels[0].sgraph.graph for p in programs if len(p.kernels) == 1]
    assert graphs
    assert all(len(g.outputs) == 2 for g in graphs)
    # S is an output, so no loop may cut d.
    assert all(not g.loops for g in graphs)


def test_an_unused_argument_is_no_input(parse, run_passes):
    module = parse(
        TYPES
        + """
        func.func @f(%x: !t, %unused: !w) -> !t {
          %o = kernel.exp %x : (!t) -> !t
          func.return %o : !t
        }"""
    )
    run_passes(module, *PASSES, reparse=True)
    assert {len(read_candidate(f).graph.inputs) for _, f in candidate_funcs(module)} == {1}


def test_what_the_search_cannot_treat_stays_with_a_remark(parse, run_passes, capsys):
    module = parse(
        TYPES
        + """
        func.func @called(%x: !t) -> !t { func.return %x : !t }
        func.func @f(%x: !t) -> !t {
          %y = func.call @called(%x) : (!t) -> !t
          %o = kernel.exp %y : (!t) -> !t
          func.return %o : !t
        }"""
    )
    before = str(module)
    run_passes(module, *PASSES)
    assert str(module) == before
    assert capsys.readouterr().err == (
        "remark: @f: nothing better found, input kept: func.call is no operator of the table\n"
    )


def test_a_candidate_of_nothing_is_an_error(example, run_passes):
    module = run_passes(example("matmul"), "prism-generate")
    (func,) = workload_funcs(module)
    func.detach()
    for name in PASSES[1:]:
        with pytest.raises(PassFailedException, match="no workload @matmul"):
            run_passes(module, name)


def test_the_report_says_what_was_dropped_and_why(example, capsys):
    from prism.passes.generate import GeneratePass
    from prism.passes.prune import PrunePass

    module = example("rms_norm")
    GeneratePass(dominated=True).apply(None, module)  # pyright: ignore[reportArgumentType]
    PrunePass(report=True).apply(None, module)  # pyright: ignore[reportArgumentType]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 7
    assert lines[0] == (
        "prune: @rms_norm__s0: dominated by @rms_norm__s4, which does the same with less work"
    )
    assert lines[-1] == "prune: @rms_norm: kept 3 of 9"
