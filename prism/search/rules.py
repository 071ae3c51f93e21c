"""
The algebra of the search: laws between terms, as data, each with the conditions under which it
holds.

Patterns are written with the operators of the table; one-letter names are variables. Dims count
from the last one, 0, so that a law holds at every rank. Elementwise operators broadcast where a
size is 1. `sum` and the scalar operators take their dim or constant first.

Conditions: `one b 0` - b has size 1 in that dim; `same a b 0` - a and b have the same size in that
dim; `batch a b` - the same sizes in all dims but the last two; `nonneg a` - no element is negative;
`product k l p` - the constant p is k times l; `inverse k l` - l is 1 / k; `mean k a d` - k is 1
over the size of a in dim d.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

Pattern = str | tuple["Pattern", ...]
"""A variable or literal, or an operator with its arguments."""


@dataclass(frozen=True)
class Rule:
    """One law: `left` may be rewritten to `right` where the conditions hold, and back if `both`."""

    left: str
    right: str
    conditions: tuple[str, ...] = ()
    both: bool = True
    family: str = ""

    @cached_property
    def name(self) -> str:
        """How messages and tests call the law."""
        return f"{self.left} {'=' if self.both else '->'} {self.right}"


def parse_pattern(text: str) -> Pattern:
    """Reads `(mul (div a b) c)` as nested tuples."""
    stack: list[list[Pattern]] = [[]]
    for token in text.replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            stack.append([])
        elif token == ")":
            done = tuple(stack.pop())
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    ((pattern,),) = stack
    return pattern


def _family(name: str, *rules: Rule) -> tuple[Rule, ...]:
    return tuple(Rule(r.left, r.right, r.conditions, r.both, name) for r in rules)


_COLUMN = ("one b 0", "batch a b")
"""b has one column and the batches of a."""

COMMUTATION = _family(
    "commutation",
    # a + b = b + a
    Rule("(add a b)", "(add b a)", both=False),
    # a b = b a
    Rule("(mul a b)", "(mul b a)", both=False),
    # max(a, b) = max(b, a)
    Rule("(maximum a b)", "(maximum b a)", both=False),
    # sums over two dims in either order
    Rule("(sum i (sum j a))", "(sum j (sum i a))", both=False),
)

ASSOCIATION = _family(
    "association",
    # (a + b) + c = a + (b + c)
    Rule("(add (add a b) c)", "(add a (add b c))"),
    # (a b) c = a (b c)
    Rule("(mul (mul a b) c)", "(mul a (mul b c))"),
    # (A B) C = A (B C)
    Rule("(matmul (matmul a b) c)", "(matmul a (matmul b c))"),
)

MATMUL = _family(
    "matmul algebra",
    # (A / b) C = (A C) / b for a column b: nothing of it is contracted
    Rule("(matmul (div a b) c)", "(div (matmul a c) b)", ("one b 0", "batch a b")),
    # (A b) C = (A C) b for a column b
    Rule("(matmul (mul a b) c)", "(mul (matmul a c) b)", ("one b 0", "batch a b")),
    # A (C / b) = (A C) / b for a row b
    Rule("(matmul a (div c b))", "(div (matmul a c) b)", ("one b 1", "batch c b")),
    # A (C b) = (A C) b for a row b
    Rule("(matmul a (mul c b))", "(mul (matmul a c) b)", ("one b 1", "batch c b")),
    # A C + B C = (A + B) C, where the sum does not broadcast the contracted dim
    Rule("(add (matmul a c) (matmul b c))", "(matmul (add a b) c)", ("same a b 0", "batch a b")),
    Rule("(sub (matmul a c) (matmul b c))", "(matmul (sub a b) c)", ("same a b 0", "batch a b")),
    # C A + C B = C (A + B), likewise
    Rule("(add (matmul c a) (matmul c b))", "(matmul c (add a b))", ("same a b 1", "batch a b")),
    Rule("(sub (matmul c a) (matmul c b))", "(matmul c (sub a b))", ("same a b 1", "batch a b")),
)

SUM = _family(
    "parallel sum",
    # sum(a / b) = sum(a) / b where b has one element along the summed dim
    Rule("(sum d (div a b))", "(div (sum d a) b)", ("one b d",)),
    # sum(a b) = sum(a) b, likewise
    Rule("(sum d (mul a b))", "(mul (sum d a) b)", ("one b d",)),
    # sum(a) + sum(b) = sum(a + b) where the sum does not broadcast the summed dim
    Rule("(add (sum d a) (sum d b))", "(sum d (add a b))", ("same a b d",)),
    Rule("(sub (sum d a) (sum d b))", "(sum d (sub a b))", ("same a b d",)),
    # summing the rows of A B sums the rows of A; summing its columns sums the columns of B
    Rule("(sum 1 (matmul a b))", "(matmul (sum 1 a) b)"),
    Rule("(sum 0 (matmul a b))", "(matmul a (sum 0 b))"),
)

QUOTIENTS = _family(
    "quotients",
    # (a / b) c = (a c) / b
    Rule("(mul (div a b) c)", "(div (mul a c) b)"),
    # (a / b) / c = a / (b c)
    Rule("(div (div a b) c)", "(div a (mul b c))"),
    # a c + b c = (a + b) c; factoring only: multiplying out is more work and breeds terms
    Rule("(add (mul a c) (mul b c))", "(mul (add a b) c)", both=False),
    Rule("(sub (mul a c) (mul b c))", "(mul (sub a b) c)", both=False),
    # a / c + b / c = (a + b) / c
    Rule("(add (div a c) (div b c))", "(div (add a b) c)", both=False),
    Rule("(sub (div a c) (div b c))", "(div (sub a b) c)", both=False),
)

POWERS = _family(
    "powers",
    # a a = a^2
    Rule("(mul a a)", "(square a)"),
    # sqrt(a)^2 = a where the root exists
    Rule("(square (sqrt a))", "a", ("nonneg a",), both=False),
    # sqrt(a^2) = |a| = a
    Rule("(sqrt (square a))", "a", ("nonneg a",), both=False),
    # (a b)^2 = a^2 b^2
    Rule("(square (mul a b))", "(mul (square a) (square b))"),
    # (a / b)^2 = a^2 / b^2
    Rule("(square (div a b))", "(div (square a) (square b))"),
)

SCALES = _family(
    "scales",
    # constants pass products, sums and numerators
    Rule("(scale k (matmul a b))", "(matmul (scale k a) b)"),
    Rule("(scale k (matmul a b))", "(matmul a (scale k b))"),
    Rule("(scale k (mul a b))", "(mul (scale k a) b)"),
    Rule("(scale k (div a b))", "(div (scale k a) b)"),
    Rule("(scale k (sum d a))", "(sum d (scale k a))"),
    Rule("(add (scale k a) (scale k b))", "(scale k (add a b))", both=False),
    Rule("(sub (scale k a) (scale k b))", "(scale k (sub a b))", both=False),
    # a / (k b) = 1/k (a / b)
    Rule("(div a (scale k b))", "(scale l (div a b))", ("inverse k l",), both=False),
    # k (l a) = (k l) a
    Rule("(scale k (scale l a))", "(scale p a)", ("product k l p",), both=False),
    # (k a)^2 = k^2 a^2
    Rule("(square (scale k a))", "(scale p (square a))", ("product k k p",), both=False),
    # 1 a = a, a + a = 2 a
    Rule('(scale "1" a)', "a", both=False),
    Rule("(add a a)", '(scale "2" a)', both=False),
)

CENTERING = _family(
    "centering",
    # A column that is subtracted before a product: (A - b) C = A C - b (1 C), 1 C being column sums
    Rule("(matmul (sub a b) c)", "(sub (matmul a c) (mul b (sum 1 c)))", _COLUMN, both=False),
    Rule("(matmul (add a b) c)", "(add (matmul a c) (mul b (sum 1 c)))", _COLUMN, both=False),
    # ((A - b) g) C = (A g) C - (b g) C for a column b, where g has the contracted dim
    Rule(
        "(matmul (mul (sub a b) g) c)",
        "(sub (matmul (mul a g) c) (matmul (mul b g) c))",
        ("one b 0", "same a g 0", "batch a b"),
        both=False,
    ),
    # sum((a - mean a)^2) = sum(a^2) - (sum a)^2 / size: one pass over a
    Rule(
        "(sum d (square (sub a (scale k (sum d a)))))",
        "(sub (sum d (square a)) (scale k (square (sum d a))))",
        ("mean k a d",),
        both=False,
    ),
)

SPELLINGS = _family(
    "spellings",
    # other ways to write a quotient and silu; one way only, for they add nothing to build with
    Rule("(rsqrt a)", "(reciprocal (sqrt a))", both=False),
    Rule("(mul a (reciprocal b))", "(div a b)", both=False),
    Rule("(mul a (sigmoid a))", "(silu a)", both=False),
    Rule("(maximum a a)", "a", both=False),
)

RULES: tuple[Rule, ...] = (
    *COMMUTATION,
    *ASSOCIATION,
    *MATMUL,
    *SUM,
    *QUOTIENTS,
    *POWERS,
    *SCALES,
    *CENTERING,
    *SPELLINGS,
)
"""Every law of the search."""

COMMUTATIVE = frozenset(
    pattern[0]
    for rule in COMMUTATION
    if len(pattern := parse_pattern(rule.left)) == 3 and pattern[1:] == ("a", "b")
)
"""The operators whose operands may be swapped."""

NONNEGATIVE: tuple[tuple[str, tuple[str, ...]], ...] = (
    # which terms have no negative element, for real operands
    ("(square a)", ()),
    ("(exp a)", ()),
    ("(sqrt a)", ()),
    ("(sigmoid a)", ()),
    ("(relu a)", ()),
    ("(reciprocal a)", ("nonneg a",)),
    ("(sum d a)", ("nonneg a",)),
    ("(scale k a)", ("positive k", "nonneg a")),
    ("(shift k a)", ("positive k", "nonneg a")),
    ("(add a b)", ("nonneg a", "nonneg b")),
    ("(mul a b)", ("nonneg a", "nonneg b")),
    ("(div a b)", ("nonneg a", "nonneg b")),
    ("(matmul a b)", ("nonneg a", "nonneg b")),
    ("(maximum a b)", ("nonneg a",)),
)
"""
When a term is nonnegative: its pattern, and the conditions (`positive k`: a constant above 0).
"""
