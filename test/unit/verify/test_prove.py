"""Verdicts on hand-written and generated graphs."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from prism.verify.api import verify_candidate, verify_candidates
from prism.verify.evaluate import evaluate_candidate, evaluate_function, shape_at
from prism.verify.verdict import Limits

_spec = importlib.util.spec_from_file_location("graphs", Path(__file__).parent / "graphs.py")
assert _spec is not None
assert _spec.loader is not None
graphs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(graphs)

WORKLOADS = ("matmul", "rms_norm", "rms_norm_mlp", "swiglu")


@pytest.mark.parametrize("name", graphs.EQUAL_EDITS)
def test_right_graphs_are_proven(functions, name: str) -> None:
    found = functions(graphs.edited(graphs.EQUAL_EDITS[name]))
    verdict = verify_candidate(found["rms_norm"], found["g"])
    assert (verdict.kind, verdict.reason) == ("equal", "")


@pytest.mark.parametrize("name", graphs.WRONG_EDITS)
def test_wrong_graphs_are_refused_with_a_reason(functions, name: str) -> None:
    edits, reason = graphs.WRONG_EDITS[name]
    found = functions(graphs.edited(edits), verify=False)
    verdict = verify_candidate(found["rms_norm"], found["g"])
    assert verdict.kind == "not_proven"
    assert re.search(reason, verdict.reason), verdict.reason


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_generated_graph_is_proven(candidates, workload: str) -> None:
    function, graphs_ = candidates(workload, dominated=True)
    assert len(graphs_) >= 8
    verdicts = verify_candidates(function, graphs_)
    assert {v.kind for v in verdicts} == {"equal"}, [v.reason for v in verdicts if v.reason]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_proven_graphs_evaluate_equal(candidates, workload: str) -> None:
    """The second judge: execution tile by tile, at several sizes, also ragged ones."""
    function, graphs_ = candidates(workload)
    for n, d, axes in ((3, 5, (2, 2, 3, 4)), (4, 4, (4, 2, 2, 2)), (1, 7, (3, 1, 2, 3))):
        sizes = {"n": n, "d": d, "k": d, "m": n + 1}
        state = np.random.default_rng(n)
        inputs = [state.normal(size=shape_at(a, sizes)) for a in function.body.block.args]
        expected = evaluate_function(function, inputs, sizes)
        for graph in graphs_:
            counts = dict(zip("xyzi", axes, strict=True))
            found = evaluate_candidate(graph, inputs, sizes, counts)
            for left, right in zip(found, expected, strict=True):
                np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9)


def test_verdicts_do_not_depend_on_company_or_order(candidates, functions) -> None:
    function, graphs_ = candidates("rms_norm")
    wrong = functions(graphs.edited(graphs.WRONG_EDITS["rms without the 1/d"][0]))["g"]
    mixed = [wrong, *graphs_, wrong]
    kinds = [v.kind for v in verify_candidates(function, mixed)]
    assert kinds == ["not_proven", *["equal"] * len(graphs_), "not_proven"]
    first = [(v.kind, v.reason) for v in verify_candidates(function, mixed)]
    assert first == [(v.kind, v.reason) for v in verify_candidates(function, mixed)]
    assert first[0] == first[-1]


def test_another_signature_is_refused(example, functions) -> None:
    found = functions(graphs.RIGHT)
    verdict = verify_candidate(example("swiglu"), found["g"])
    assert verdict.kind == "not_proven"
    assert verdict.reason.startswith("the signature is (")


def test_sizes_that_coincide_prove_nothing(functions) -> None:
    """X Y at [d, d] is not Y X, and a sum over one dim is not a sum over the other."""
    text = """
    func.func @f(%x: !w, %y: !w) -> !w { %r = kernel.matmul %x, %y : (!w, !w) -> !w func.return %r : !w }
    func.func @g(%x: !w, %y: !w) -> !w { %r = kernel.matmul %y, %x : (!w, !w) -> !w func.return %r : !w }
    """
    found = functions(text)
    assert verify_candidate(found["f"], found["f"]).kind == "equal"
    assert verify_candidate(found["f"], found["g"]).kind == "not_proven"


def test_dividing_by_a_full_tensor_does_not_pass_a_matmul(functions) -> None:
    """(A / B) C is not (A C) / B, at shapes where both exist; for a column it is."""
    for b, kind in (("!w", "not_proven"), ("!r", "not_proven"), ("!s", "equal")):
        a = "!x" if b == "!s" else "!w"
        text = f"""
        func.func @f(%a: {a}, %b: {b}, %c: !w) -> {a} {{
          %q = kernel.div %a, %b : ({a}, {b}) -> {a}
          %r = kernel.matmul %q, %c : ({a}, !w) -> {a}
          func.return %r : {a}
        }}
        func.func @g(%a: {a}, %b: {b}, %c: !w) -> {a} {{
          %q = kernel.matmul %a, %c : ({a}, !w) -> {a}
          %r = kernel.div %q, %b : ({a}, {b}) -> {a}
          func.return %r : {a}
        }}
        """
        found = functions(text)
        assert verify_candidate(found["f"], found["g"]).kind == kind


def test_a_limit_gives_unknown(functions) -> None:
    found = functions(graphs.RIGHT)
    for limits, reason in (
        (Limits(nodes=10), "the limit of 10 nodes was reached"),
        (Limits(seconds=0.0), "the limit of 0.0 seconds was reached"),
        (Limits(rounds=1), "the limit of 1 rounds of the axioms was reached"),
    ):
        verdict = verify_candidate(found["rms_norm"], found["g"], limits)
        assert (verdict.kind, verdict.reason) == ("unknown", reason)


def test_symbolic_maps_are_not_decided(functions) -> None:
    text = """
    func.func @f(%x: !x) -> !x { %r = kernel.exp %x : (!x) -> !x func.return %r : !x }
    func.func @g(%x: !x) -> !x {
      %o = kernel.graph_def grid [x] loop [] where [at_most_one(m0, m1)] (%xg = %x : !x) -> !x {
        %xt = threadblock.input %xg imap {x = [m0, m1]} fmap {} : !x -> !threadblock.tile<[n / grid.x^m0, d / grid.x^m1], f16>
        %e = threadblock.exp %xt : (!threadblock.tile<[n / grid.x^m0, d / grid.x^m1], f16>) -> !threadblock.tile<[n / grid.x^m0, d / grid.x^m1], f32>
        %r = threadblock.output %e omap {x = [m0, m1]} : !threadblock.tile<[n / grid.x^m0, d / grid.x^m1], f32> -> !x
        threadblock.yield %r : !x
      }
      func.return %o : !x
    }
    """
    found = functions(text)
    verdict = verify_candidate(found["f"], found["g"])
    assert verdict.kind == "unknown"
    assert (
        verdict.reason == "%xt = threadblock.input: the maps are symbolic: instantiate them first"
    )


def test_workloads_with_attention_are_understood(example) -> None:
    for name in ("attention", "qk_norm_attention"):
        function = example(name)
        assert verify_candidate(function, function).kind == "equal"
