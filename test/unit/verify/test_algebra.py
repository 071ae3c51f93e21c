"""What the axioms prove together, and what they must not."""

import time
from functools import reduce
from itertools import count

import pytest

from prism.verify import prove
from prism.verify.audit import build_term
from prism.verify.language import parse, variables
from prism.verify.prove import close
from prism.verify.terms import Constant, TermTable
from prism.verify.verdict import Limits


def proven(left: str, right: str, shapes: str, limits: Limits | None = None) -> bool | None:
    """Whether two terms are proven equal, None if a limit was reached; shapes as `A: n d, B: d 1`."""
    table = TermTable()
    binding: dict[str, int | str | Constant] = {"i": "0.i", "j": "0.j", "x": "0.x", "y": "0.y"}
    for entry in shapes.split(", "):
        name, _, sizes = entry.partition(": ")
        binding[name] = table.input(name, tuple((size,) for size in sizes.split()))
    goal = (build_term(table, parse(left), binding), build_term(table, parse(right), binding))
    axes = [axis for axis in binding.values() if isinstance(axis, str)]
    closure = close(table, axes, [goal], limits or Limits(), time.perf_counter())
    if closure.limit is not None:
        return None
    return closure.egraph.same(*goal)


EQUAL = [
    ("(add A A)", "(scale 2 A)", "A: n d"),
    ("(sub A A)", "(scale 0 A)", "A: n d"),
    ("(div (mul A B) C)", "(mul A (div B C))", "A: n d, B: n d, C: n d"),
    ("(div A (mul B C))", "(div (div A B) C)", "A: n d, B: n d, C: n d"),
    ("(mul (div A r) (div B r))", "(div (mul A B) (square r))", "A: n d, B: n d, r: n 1"),
    ("(square A)", "(mul A A)", "A: n d"),
    (
        "(square (add A B))",
        "(add (add (square A) (scale 2 (mul A B))) (square B))",
        "A: n d, B: n d",
    ),
    ("(exp (add A B))", "(mul (exp A) (exp B))", "A: n d, B: n d"),
    ("(exp (sub A B))", "(div (exp A) (exp B))", "A: n d, B: n d"),
    ("(log (div (exp A) (exp B)))", "(sub A B)", "A: n d, B: n d"),
    ("(sum 1 (add A B))", "(add (sum 1 A) (sum 1 B))", "A: n d, B: n d"),
    ("(matmul (mul A s) C)", "(mul (matmul A C) s)", "A: n k, s: n 1, C: k d"),
    ("(matmul (div A s) C)", "(div (matmul A C) s)", "A: n k, s: n 1, C: k d"),
    ("(matmul A (div B r))", "(div (matmul A B) r)", "A: n k, B: k d, r: 1 d"),
    # Associativity where the two contracted dims differ, as in a low-rank adapter.
    (
        "(matmul X (add W (matmul A B)))",
        "(add (matmul X W) (matmul (matmul X A) B))",
        "X: n d, W: d m, A: d 16, B: 16 m",
    ),
    (
        "(scale (/ 4) (sum 1 (square (sub A (scale (/ 4) (sum 1 A))))))",
        "(sub (scale (/ 4) (sum 1 (square A))) (square (scale (/ 4) (sum 1 A))))",
        "A: n 4",
    ),
    ("(matmul (swap B 1 2) (swap A 1 2))", "(swap (matmul A B) 1 2)", "A: n k, B: k d"),
    ("(matmul A (swap B 1 2))", "(swap (matmul B (swap A 1 2)) 1 2)", "A: n k, B: d k"),
    (
        "(matmul A (swap B 1 2))",
        "(comb (red (matmul (part A 1 i) (swap (part (part B 2 x) 1 i) 1 2)) i) 1 x)",
        "A: n k, B: d k",
    ),
    (
        "(swap A 1 2)",
        "(comb (comb (swap (part (part A 3 x) 1 y) 1 2) 2 y) 3 x)",
        "A: b n d",
    ),
    ("(silu A)", "(div A (shift 1 (exp (neg A))))", "A: n d"),
    ("(rsqrt A)", "(sqrt (reciprocal A))", "A: n d"),
    ("(div A (sqrt (shift 1 (square A))))", "(mul A (rsqrt (shift 1 (mul A A))))", "A: n d"),
    (
        "(div (exp A) (sum 1 (exp A)))",
        "(div (exp (sub A m)) (sum 1 (exp (sub A m))))",
        "A: n d, m: n 1",
    ),
    (
        "(div (exp A) (sum 1 (exp A)))",
        "(div (exp (sub A (max 1 A))) (sum 1 (exp (sub A (max 1 A)))))",
        "A: n d",
    ),
    (
        "(log (sum 1 (exp A)))",
        "(add (max 1 A) (log (sum 1 (exp (sub A (max 1 A))))))",
        "A: n d",
    ),
    (
        "(div (matmul (exp A) B) (sum 1 (exp A)))",
        """(div (rescaled (matmul (exp (sub (part A 1 i) (max 1 (part A 1 i)))) (part B 2 i))
            (max 1 (part A 1 i)) i)
        (rescaled (sum 1 (exp (sub (part A 1 i) (max 1 (part A 1 i))))) (max 1 (part A 1 i)) i))""",
        "A: n k, B: k d",
    ),
    ("(max 1 A)", "(redmax (max 1 (part A 1 i)) i)", "A: n d"),
    ("(max 1 (exp A))", "(exp (max 1 A))", "A: n d"),
    ("(max 1 (add A s))", "(add s (max 1 A))", "A: n d, s: n 1"),
    ("(sum 1 (exp A))", "(red (sum 1 (exp (part A 1 i))) i)", "A: n d"),
    ("(sum 1 (exp A))", "(red (red (sum 1 (exp (part (part A 1 i) 1 j))) j) i)", "A: n d"),
    ("(matmul A B)", "(red (matmul (part A 1 i) (part B 2 i)) i)", "A: n k, B: k d"),
    (
        "(matmul (matmul A B) C)",
        "(comb (matmul (matmul (part A 2 x) B) C) 2 x)",
        "A: n k, B: k m, C: m d",
    ),
    (
        "(matmul A B)",
        "(comb (comb (red (matmul (part (part A 2 x) 1 i) (part (part B 1 y) 2 i)) i) 1 y) 2 x)",
        "A: n k, B: k d",
    ),
    (
        "(div (matmul A B) s)",
        "(red (div (matmul (part A 1 i) (part B 2 i)) s) i)",
        "A: n k, B: k d, s: n 1",
    ),
    ("(matmul A B)", "(comb (matmul (part A 3 x) (part B 3 x)) 3 x)", "A: b n k, B: b k d"),
]


@pytest.mark.parametrize(("left", "right", "shapes"), EQUAL)
def test_proves(left: str, right: str, shapes: str) -> None:
    assert proven(left, right, shapes) is True


DIFFERENT = [
    ("(swap A 1 2)", "A", "A: d d"),
    ("(matmul (swap A 1 2) (swap B 1 2))", "(swap (matmul A B) 1 2)", "A: d d, B: d d"),
    ("(swap (swap A 1 2) 2 3)", "(swap (swap A 2 3) 1 2)", "A: d d d"),
    ("(sum 1 (swap A 1 2))", "(sum 1 A)", "A: d d"),
    (
        "(scale (/ 4) (sum 1 (square (sub A (scale (/ 4) (sum 1 A))))))",
        "(sub (scale (/ 4) (sum 1 (square A))) (square (scale (/ 4) (sum 1 A))))",
        "A: n 5",
    ),
    ("(matmul (div A B) C)", "(div (matmul A C) B)", "A: d d, B: d d, C: d d"),
    ("(matmul (div A B) C)", "(div (matmul A C) B)", "A: d d, B: 1 d, C: d d"),
    ("(matmul A B)", "(matmul B A)", "A: d d, B: d d"),
    ("(div A B)", "(div B A)", "A: n d, B: n d"),
    ("(sum 1 A)", "(sum 2 A)", "A: d d"),
    ("(sqrt (square A))", "A", "A: n d"),
    ("(div (mul A B) B)", "A", "A: n d, B: n d"),
    ("(sum 1 (square A))", "(square (sum 1 A))", "A: n d"),
    ("(max 1 (neg A))", "(neg (max 1 A))", "A: n d"),
    ("(max 1 (mul A s))", "(mul (max 1 A) s)", "A: n d, s: n 1"),
    ("(max 1 A)", "(max 2 A)", "A: d d"),
    ("(redmax (exp (max 1 A)) i)", "(red (max 1 (part A 1 i)) i)", "A: n d"),
    (
        "(div (exp A) (sum 1 (exp A)))",
        "(div (exp A) (sum 2 (exp A)))",
        "A: d d",
    ),
    (
        "(sum 1 (exp A))",
        "(red (sum 1 (exp (sub (part A 1 i) (max 1 (part A 1 i))))) i)",
        "A: n d",
    ),
    ("(sqrt (sum 1 (square A)))", "(sqrt (scale 2 (sum 1 (square A))))", "A: n d"),
    ("(square (sqrt A))", "A", "A: n d"),
    ("(matmul (part A 1 i) (part B 2 i))", "(matmul A B)", "A: n k, B: k d"),
    ("(red (exp (matmul (part A 1 i) (part B 2 i))) i)", "(exp (matmul A B))", "A: n k, B: k d"),
    (
        "(red (div (matmul (part A 1 i) (part B 2 i)) (sum 1 (part A 1 i))) i)",
        "(div (matmul A B) (sum 1 A))",
        "A: n k, B: k d",
    ),
    (
        "(red (mul (sum 1 (part A 1 i)) (sum 1 (part B 1 i))) i)",
        "(mul (sum 1 A) (sum 1 B))",
        "A: n k, B: n k",
    ),
    ("(red (matmul A B) i)", "(matmul A B)", "A: n k, B: k d"),
    ("(comb (comb (part (part A 1 x) 1 y) 1 y) 1 x)", "(part A 1 x)", "A: n d"),
    ("(red (matmul (part A 1 i) (part B 2 i)) i)", "(matmul B A)", "A: d d, B: d d"),
]


@pytest.mark.parametrize(("left", "right", "shapes"), DIFFERENT)
def test_refuses(left: str, right: str, shapes: str) -> None:
    assert proven(left, right, shapes) is False


def test_ten_summands_end_in_a_verdict() -> None:
    names = "ABCDEFGHKL"
    left = reduce(lambda a, b: f"(add {a} {b})", names)
    right = reduce(lambda a, b: f"(add {a} {b})", reversed(names))
    shapes = ", ".join(f"{name}: n d" for name in names)
    assert proven(left, right, shapes) is True
    assert proven(left, right.replace("(add L K)", "(add L L)"), shapes) in (False, None)


def test_limits_hold_where_associativity_explodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten summands against ten factors: never equal, and each has 3^10 ways to be computed."""
    # What is free of earlier work may serve this one, so what the process holds need not grow.
    held = count()
    monkeypatch.setattr(prove, "resident_bytes", lambda: 100 * next(held))
    names = "ABCDEFGHKL"
    table = TermTable()
    binding: dict[str, int | str | Constant] = {
        name: table.input(name, (("n",), ("d",))) for name in names
    }
    sums, products = (
        build_term(table, parse(reduce(lambda a, b: f"({head} {a} {b})", names)), binding)
        for head in ("add", "mul")
    )
    for limits, reached in (
        (Limits(), "nodes"),
        (Limits(nodes=10**8, seconds=1.0), "seconds"),
        (Limits(nodes=10**8, memory=150), "memory"),
        (Limits(nodes=10**8, rounds=3), "rounds"),
    ):
        start = time.perf_counter()
        closure = close(table, [], [(sums, products)], limits, start)
        assert closure.limit == reached
        assert not closure.egraph.same(sums, products)
        assert closure.egraph.nodes() <= 1.1 * limits.nodes


def test_what_a_process_held_before_is_no_part_of_a_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the proofs after a large one in the same process would all end as unknown."""
    monkeypatch.setattr(prove, "resident_bytes", lambda: 100 * Limits().memory)
    case = ("(exp (sub A B))", "(div (exp A) (exp B))", "A: n d, B: n d")
    assert proven(*case, Limits()) is True


def test_a_limit_never_proves() -> None:
    case = ("(exp (sub A B))", "(div (exp A) (exp B))", "A: n d, B: n d")
    assert proven(*case, Limits(rounds=1)) is None
    assert proven(*case, Limits(nodes=1)) is None
    assert proven(*case, Limits(seconds=0.0)) is None
    assert proven(*case, Limits(rounds=8)) is True


def test_patterns_are_well_formed() -> None:
    assert variables(parse("(scale (* c e) (part A d a))")) == {
        "c": "constant",
        "e": "constant",
        "A": "term",
        "d": "dim",
        "a": "axis",
    }
    for text in ("(mul A)", "(nothing A)", "(exp A", "exp A)", ""):
        with pytest.raises(ValueError, match=r"."):
            parse(text)
