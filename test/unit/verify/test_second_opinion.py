"""What is proven is executed exactly, and a disagreement is an error that names the graph."""

import importlib.util
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from prism.verify import prove as prove_module
from prism.verify.api import verify_candidates
from prism.verify.evaluate import evaluate_candidate, evaluate_function
from prism.verify.exact import UNDEFINED, ZERO, Exact, UndecidedError, each, exact, numbers, same
from prism.verify.execute import execute
from prism.verify.refute import size_names
from prism.verify.second_opinion import POINTS, DisagreementError, SecondOpinion
from prism.verify.verdict import Verdict

_spec = importlib.util.spec_from_file_location("graphs", Path(__file__).parent / "graphs.py")
assert _spec is not None
assert _spec.loader is not None
graphs = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(graphs)


@pytest.mark.parametrize("name", ["matmul", "rms_norm", "swiglu", "softmax"])
def test_generated_graphs_are_confirmed(candidates, name: str) -> None:
    workload, found = candidates(name)
    opinion = SecondOpinion(workload)
    assert {opinion.confirm(graph) for graph in found} == {POINTS}


@pytest.mark.parametrize(
    "name", ["add for mul", "mul for div", "swapped division", "no root", "another eps"]
)
def test_wrong_graphs_are_named(functions, name: str) -> None:
    found = functions(graphs.edited(graphs.WRONG_EDITS[name][0]), verify=False)
    with pytest.raises(DisagreementError, match="@g is proven equal to @rms_norm but"):
        SecondOpinion(found["rms_norm"]).confirm(found["g"])


def test_a_wrong_proof_is_an_error(functions, monkeypatch) -> None:
    """With a prover that calls everything equal, verification fails instead of saying so."""
    found = functions(graphs.edited(graphs.WRONG_EDITS["mul for div"][0]), verify=False)
    workload, graph = found["rms_norm"], found["g"]
    decision = prove_module._Decision(Verdict("equal"))
    monkeypatch.setattr(
        prove_module._Proof,
        "decide",
        lambda self, found: {graph.encoded.outputs: decision for graph in found},
    )
    with pytest.raises(DisagreementError, match="bug of Prism"):
        verify_candidates(workload, [graph])
    assert verify_candidates(workload, [graph], opinion=False)[0].kind == "equal"


@pytest.mark.parametrize("name", ["rms_norm", "swiglu", "softmax", "lora"])
def test_exact_execution_agrees_with_float64(candidates, name: str) -> None:
    workload, found = candidates(name)
    sizes = dict.fromkeys(size_names(workload), 3)
    counts = {"x": 2, "y": 2, "z": 2, "i": 2, "j": 2, "k": 2}
    state = np.random.default_rng(0)
    arguments = workload.body.block.args
    shapes = [[int(s) if str(s).isdigit() else 3 for s in a.type.get_shape()] for a in arguments]
    shapes = [[3 if size < 0 else size for size in shape] for shape in shapes]
    floats = [state.integers(-4, 5, shape) / 2 for shape in shapes]
    exacts = [each(lambda x: exact(Fraction(float(x))), array) for array in floats]
    for graph in (workload, *found[:4]):
        left = execute(graph, exacts, sizes, counts)
        right = (
            evaluate_function(graph, floats, sizes)
            if graph is workload
            else evaluate_candidate(graph, floats, sizes, counts)
        )
        for a, b in zip(left, right, strict=True):
            np.testing.assert_allclose(np.vectorize(float)(a), b, 1e-12, 1e-12)


def test_exact_numbers() -> None:
    third = exact(Fraction(1, 3))
    assert (third + third + third).value == 1
    assert exact(Fraction(9, 4)).sqrt().value == Fraction(3, 2)
    assert third.exp().log().same(third)
    assert not third.exp().log().same(exact(Fraction(1, 3) + Fraction(1, 10**50)))
    assert (exact(2).sqrt() * exact(2).sqrt()).same(exact(2))
    assert exact(1) / ZERO is UNDEFINED
    assert exact(-1).sqrt() is UNDEFINED
    assert exact(0).log() is UNDEFINED
    assert not UNDEFINED.same(ZERO)
    assert float(exact(1).tanh()) == pytest.approx(np.tanh(1), abs=1e-15)
    assert float(exact(1).gelu()) == pytest.approx(0.8413447460685429, abs=1e-15)
    assert float(exact(1).gelu_tanh()) == pytest.approx(0.8411919906082768, abs=1e-15)
    with pytest.raises(UndecidedError):
        (third.exp() - third.exp()).sign()
    with pytest.raises(UndecidedError):
        exact(10**9).exp()
    array = np.array([[third, UNDEFINED]], dtype=object)
    assert same(array, array.copy())
    assert [n.defined for n in numbers(array)] == [True, False]
    assert isinstance(array[0, 0], Exact)
