"""Every axiom holds on its instances, and every side condition matters: the audit in small."""

import pytest

from prism.verify.audit import Condition, Instance, instances
from prism.verify.axioms import AXIOMS, Axiom
from prism.verify.language import variables
from prism.verify.sign_facts import SIGN_FACTS, SignFact
from prism.verify.terms import IllShapedError


def holds(axiom: Axiom, instance: Instance) -> bool:
    try:
        right = instance.build(axiom.right)
    except IllShapedError:
        return False
    return instance.agree(instance.build(axiom.left), right)


@pytest.mark.parametrize("axiom", AXIOMS, ids=lambda axiom: axiom.name)
def test_axiom_holds(axiom: Axiom) -> None:
    found = list(instances(axiom, seed=1, number=60))
    assert len(found) == 60
    for instance in found:
        assert holds(axiom, instance), (instance.binding, instance.sizes, instance.counts)


@pytest.mark.parametrize("axiom", [a for a in AXIOMS if a.both], ids=lambda axiom: axiom.name)
def test_axiom_holds_from_right_to_left(axiom: Axiom) -> None:
    text = Axiom(axiom.name, axiom.kind, axiom.right_text, axiom.left_text, axiom.when_text)
    for instance in instances(text, seed=2, number=60):
        assert holds(text, instance), (instance.binding, instance.sizes, instance.counts)


CONDITIONS = [(axiom, condition) for axiom in AXIOMS for condition in axiom.when]


@pytest.mark.parametrize(
    ("axiom", "condition"), CONDITIONS, ids=[f"{a.name}-{c[0]}" for a, c in CONDITIONS]
)
def test_dropping_a_condition_is_noticed(axiom: Axiom, condition: Condition) -> None:
    drawn = instances(axiom, seed=3, number=400, skip=condition)
    assert any(not holds(axiom, instance) for instance in drawn)


@pytest.mark.parametrize("fact", SIGN_FACTS, ids=lambda fact: f"{fact.predicate}-{fact.term_text}")
def test_sign_fact_holds(fact: SignFact) -> None:
    found = list(instances(fact, seed=1, number=60))
    assert len(found) == 60
    for instance in found:
        assert instance.has_sign(fact.predicate, instance.build(fact.term))


FACT_CONDITIONS = [(fact, condition) for fact in SIGN_FACTS for condition in fact.when]


@pytest.mark.parametrize(
    ("fact", "condition"),
    FACT_CONDITIONS,
    ids=[f"{f.predicate}-{f.term_text}-{c[0]}" for f, c in FACT_CONDITIONS],
)
def test_dropping_a_condition_of_a_sign_fact_is_noticed(
    fact: SignFact, condition: Condition
) -> None:
    drawn = instances(fact, seed=3, number=400, skip=condition)
    assert any(not i.has_sign(fact.predicate, i.build(fact.term)) for i in drawn)


def test_names_are_unique_and_right_sides_are_bound() -> None:
    assert len({axiom.name for axiom in AXIOMS}) == len(AXIOMS)
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
    "a chunk is the whole": ("(sum d (part A d a))", "(sum d A)"),
    "sums over different dims": ("(sum 1 A)", "(sum 2 A)"),
    "a root of squares": ("(sqrt (square A))", "A"),
    "the product of two sums": ("(red (mul A B) a)", "(mul (red A a) (red B a))"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_audit_refuses_wrong_axioms(name: str) -> None:
    left, right = WRONG[name]
    axiom = Axiom(name, AXIOMS[0].kind, left, right)
    assert any(not holds(axiom, instance) for instance in instances(axiom, seed=4, number=100))
