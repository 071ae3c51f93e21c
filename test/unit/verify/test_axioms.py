"""Every axiom holds on its instances, and every side condition matters: the audit in small."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from prism.verify.audit import Rule, check, converse
from prism.verify.axioms import AXIOMS, IRREVERSIBLE, Axiom
from prism.verify.instantiate import Condition
from prism.verify.language import variables
from prism.verify.sign_facts import SIGN_FACTS

_spec = importlib.util.spec_from_file_location(
    "audit_axioms", Path(__file__).parents[3] / "tools" / "audit_axioms.py"
)
assert _spec is not None
assert _spec.loader is not None
tool = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = tool  # dataclasses look their module up
_spec.loader.exec_module(tool)

RULES: list[Rule] = [*AXIOMS, *SIGN_FACTS]


@pytest.mark.parametrize("rule", RULES, ids=tool.name_of)
def test_rule_holds(rule: Rule) -> None:
    outcome = check(rule, seed=1, most=40)
    assert outcome.failure is None, outcome.text
    assert outcome.decided >= 40


CONDITIONS = [(rule, condition) for rule in RULES for condition in rule.when]


@pytest.mark.parametrize(
    ("rule", "condition"), CONDITIONS, ids=[f"{tool.name_of(r)}-{c[0]}" for r, c in CONDITIONS]
)
def test_dropping_a_condition_is_noticed(rule: Rule, condition: Condition) -> None:
    assert check(rule, seed=3, skip=condition).failure is not None


@pytest.mark.parametrize("axiom", [a for a in AXIOMS if a.both], ids=lambda axiom: axiom.name)
def test_axiom_used_both_ways_holds_from_right_to_left(axiom: Axiom) -> None:
    reverse = converse(axiom)
    assert reverse is not None
    assert check(reverse, seed=2, most=40).failure is None


@pytest.mark.parametrize("name", sorted(IRREVERSIBLE))
def test_a_wrong_converse_is_noticed(name: str) -> None:
    axiom = next(axiom for axiom in AXIOMS if axiom.name == name)
    assert not axiom.both
    reverse = converse(axiom)
    assert reverse is not None
    assert check(reverse, seed=4).failure is not None
    assert any(
        "converse is wrong" in p for p in tool.audit(axiom, 1, 60, irreversible=False).problems
    )


def test_the_tool_reports_what_is_wrong() -> None:
    axiom = next(axiom for axiom in AXIOMS if axiom.name == "sum-mul")
    assert tool.audit(axiom, 1, 40, irreversible=False).problems == ()
    dropped = replace(axiom, when_text=())
    assert "sum-mul is wrong" in tool.audit(dropped, 1, 40, irreversible=False).problems[0]
    needless = replace(axiom, when_text=(*axiom.when_text, "(unit (sum d A) d)"))
    assert tool.audit(needless, 1, 40, irreversible=False).problems == (
        "sum-mul: dropping (unit (sum d A) d) goes unnoticed",
    )
    (problem,) = tool.audit(axiom, 1, 40, irreversible=True).problems
    assert problem == "sum-mul: no instance shows that the converse is wrong"


def test_there_are_120_axioms_of_unique_names_and_bound_variables() -> None:
    assert len(AXIOMS) >= 120
    assert len({axiom.name for axiom in AXIOMS}) == len(AXIOMS)
    assert {axiom.name for axiom in AXIOMS} >= IRREVERSIBLE
    for axiom in AXIOMS:
        bound = variables(axiom.left)
        assert variables(axiom.right).keys() <= bound.keys(), axiom.name
        for condition in axiom.when:
            assert variables(condition).keys() <= bound.keys(), axiom.name


WRONG = {
    "dividing by a tensor of full shape passes a matmul": (
        "(matmul (div A B) C)",
        "(div (matmul A C) B)",
    ),
    "matmul commutes": ("(matmul A B)", "(matmul B A)"),
    "division commutes": ("(div A B)", "(div B A)"),
    "a sum over an axis of a replicated tensor is the tensor": ("(red A a)", "A"),
    "exp is linear": ("(red (exp A) a)", "(exp (red A a))"),
    "a partial divisor": ("(red (div A B) a)", "(div A (red B a))"),
    "a divisor moved out of a cut contraction": (
        "(red (matmul (div (part A 1 a) (sum 1 (part A 1 a))) B) a)",
        "(div (red (matmul (part A 1 a) B) a) (sum 1 A))",
    ),
    "a chunk is the whole": ("(sum d (part A d a))", "(sum d A)"),
    "sums over different dims": ("(sum 1 A)", "(sum 2 A)"),
    "softmax over another dim": (
        "(div (exp A) (sum 1 (exp A)))",
        "(div (exp A) (sum 2 (exp A)))",
    ),
    "a root of squares": ("(sqrt (square A))", "A"),
    "a root of a product of negative numbers": ("(sqrt (mul A B))", "(mul (sqrt A) (sqrt B))"),
    "rms is the root of a sum": (
        "(div A (sqrt (scale c (sum 1 (square A)))))",
        "(div A (sqrt (sum 1 (square A))))",
    ),
    "the product of two sums": ("(red (mul A B) a)", "(mul (red A a) (red B a))"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_audit_refuses_wrong_axioms(name: str) -> None:
    left, right = WRONG[name]
    assert check(Axiom(name, AXIOMS[0].kind, left, right), seed=4).failure is not None
