"""The e-graph of one proof: the terms of a table under the axioms, through `egglog.bindings`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from egglog import bindings as eb

from prism.verify.axioms import AXIOMS
from prism.verify.language import argument_sorts
from prism.verify.report import Budget, Tree
from prism.verify.rules import CONSTRUCTORS, GROUND, USES, program
from prism.verify.terms import Argument, Size, TermTable

Expr: TypeAlias = eb.Lit | eb.Var | eb.Call

_SPAN = eb.RustSpan(__name__, 0, 0)

_RULESET = re.compile(r"\(ruleset ([\w-]+)\)")

_MAX_I64 = 2**63 - 1


@lru_cache(maxsize=16)
def _commands(
    rank: int, functions: frozenset[str], noting: bool
) -> tuple[list[Any], tuple[str, ...]]:
    """The parsed program and its rulesets; parsing costs more than running, so once per process."""
    text = program(rank, functions, noting=noting)
    return eb.EGraph().parse_program(text), tuple(_RULESET.findall(text))


class EGraph:
    """
    Terms and what is known of them. A term keeps its index of the table (`Ref`); two terms are
    proven equal when their indices are in one class. Only the terms inside `roots` are entered.
    """

    def __init__(
        self,
        table: TermTable,
        roots: Iterable[int],
        axes: Iterable[str],
        *,
        noting: bool = False,
    ) -> None:
        terms = _reachable(table, roots)
        heads = [table.terms[index] for index in terms]
        functions = frozenset(t.head for t in heads) | frozenset(
            str(t.arguments[0]) for t in heads if t.head in ("un", "bin")
        )
        self._terms = frozenset(terms)
        self._egraph = eb.EGraph()
        commands, self._rulesets = _commands(table.rank, functions, noting)
        self._egraph.run_program(*commands)
        actions: list[eb.Set | eb.Expr_] = [
            eb.Expr_(_SPAN, _call("Axis", _string(axis))) for axis in dict.fromkeys(axes)
        ]
        for index in terms:
            term = table.terms[index]
            expression = _call(CONSTRUCTORS[term.head], *_arguments(term.head, term.arguments))
            actions.append(eb.Set(_SPAN, "Ref", [_integer(index)], expression))
            if noting:
                ground = _call(
                    f"{GROUND}{CONSTRUCTORS[term.head]}",
                    *_arguments(term.head, term.arguments, ground=True),
                )
                key = [_call("Ref", _integer(index))]
                actions.append(eb.Set(_SPAN, "ground", key, ground))
            if term.head == "in":
                for dim, size in enumerate(reversed(term.shape), 1):
                    key = [_call("Ref", _integer(index)), _integer(dim)]
                    actions.append(eb.Set(_SPAN, "size", key, _size(size)))
                    if (share := table.share(size)) is not None:
                        numbers = (_rational(share.value), _rational(share.sizes))
                        actions.append(eb.Expr_(_SPAN, _call("share", _size(size), *numbers)))
        self._egraph.run_program(*(eb.ActionCommand(action) for action in actions))

    def run(self, schedule: str) -> bool:
        """Runs an egglog schedule; returns whether anything changed."""
        for output in self._egraph.run_program(*_schedule(schedule)):
            if isinstance(output, eb.RunScheduleOutput):
                return output.report.updated
        raise TypeError("egglog gave no report of a schedule")

    def slices(self, phase: str) -> list[str]:
        """The schedules of the rulesets that a phase consists of."""
        return [f"(run {name})" for name in self._rulesets if name.startswith(f"{phase}-")]

    def nodes(self) -> int:
        """The number of e-nodes and facts."""
        return sum(self._sizes().values())

    def _sizes(self) -> dict[str, int]:
        for output in self._egraph.run_program(eb.PrintSize(_SPAN, None)):
            if isinstance(output, eb.PrintAllFunctionsSize):
                return dict(output.sizes)
        raise TypeError("egglog gave no sizes")

    def __contains__(self, term: int) -> bool:
        """Whether a term of the table is inside the roots."""
        return term in self._terms

    def same(self, left: int, right: int) -> bool:
        """Whether two terms of the table are proven equal."""
        return self._value(left) == self._value(right)

    def erases(self, term: int) -> bool:
        """Whether a term is proven to be a chunk of a term over whole tensors."""
        return self._egraph.lookup_function("erased", [self._value(term)]) is not None

    def tree(self, term: int) -> Tree:
        """The smallest tree proven equal to a term."""
        extract = eb.Extract(_SPAN, _call("Ref", _integer(term)), _integer(0))
        for output in self._egraph.run_program(extract):
            if isinstance(output, eb.ExtractBest):
                return _tree(output.termdag, output.term, Budget())
        raise TypeError("egglog extracted nothing")

    def noted(self, table: TermTable) -> Iterator[tuple[str, list[Argument]]]:
        """
        The instances of axioms that were noted: the name and the values of the variables of the
        left side in their order, terms as indices of the table, a constant as two numbers.
        """
        sizes = self._sizes()
        for axiom in AXIOMS:
            name = f"{USES}{axiom.name}"
            if not sizes.get(name):
                continue
            command = eb.PrintFunction(_SPAN, name, None, None, eb.DefaultPrintFunctionMode())
            for output in self._egraph.run_program(command):
                if isinstance(output, eb.PrintFunctionOutput):
                    reader = _Reader(output.termdag, table)
                    for row, _ in output.terms:
                        yield axiom.name, reader.arguments(row)

    def _value(self, term: int) -> eb.Value:
        _, key = self._egraph.eval_expr(_integer(term))
        value = self._egraph.lookup_function("Ref", [key])
        if value is None:
            raise KeyError(term)
        return value


def _reachable(table: TermTable, roots: Iterable[int]) -> list[int]:
    """The roots and all terms inside them, each after its operands."""
    found: set[int] = set()
    stack = list(roots)
    while stack:
        index = stack.pop()
        if index not in found:
            found.add(index)
            stack += table.operands(index)
    return sorted(found)


@lru_cache(maxsize=64)
def _schedule(text: str) -> list[Any]:
    return eb.EGraph().parse_program(f"(run-schedule {text})")


def _arguments(head: str, arguments: Sequence[Argument], *, ground: bool = False) -> list[Expr]:
    """The arguments of a constructor; a term is a reference to its index."""
    built: list[Expr] = []
    for sort, argument in zip(argument_sorts(head), arguments, strict=True):
        match argument:
            case int() if sort == "term":
                reference = _call("Ref", _integer(argument))
                built.append(_call("ground", reference) if ground else reference)
            case int():
                built.append(_integer(argument))
            case str():
                built.append(_string(argument))
            case Fraction():
                built.append(_rational(argument))
    return built


def _call(name: str, *arguments: Expr) -> Expr:
    return eb.Call(_SPAN, name, list(arguments))


def _integer(value: int) -> Expr:
    return eb.Lit(_SPAN, eb.Int(value))


def _string(value: str) -> Expr:
    return eb.Lit(_SPAN, eb.String(value))


def _rational(value: Fraction) -> Expr:
    return _call("bigrat", _bigint(value.numerator), _bigint(value.denominator))


def _bigint(value: int) -> Expr:
    if abs(value) <= _MAX_I64:
        return _call("bigint", _integer(value))
    return _call("from-string", _string(str(value)))


def _size(size: Size) -> Expr:
    expression = _call("Whole", _string(size[0]))
    for axis in size[1:]:
        expression = _call("Cut", expression, _string(axis))
    return expression


_HEAD_OF = {constructor: head for head, constructor in CONSTRUCTORS.items()}


def _tree(dag: eb.TermDag, term: int, budget: Budget) -> Tree:
    match dag.get(term):
        case eb.TermLit() as literal:
            value = literal.value
            return value.value if isinstance(value, eb.Int | eb.String) else str(value)
        case eb.TermApp() as application:
            if application.name in ("bigrat", "bigint", "from-string"):
                numbers = [_tree(dag, argument, budget) for argument in application.args]
                return Fraction(*(Fraction(str(number)) for number in numbers))
            if not budget.spend():
                return "..."
            arguments = (_tree(dag, argument, budget) for argument in application.args)
            return (_HEAD_OF[application.name], *arguments)
        case other:
            raise ValueError(f"no ground term: {other}")


class _Reader:
    """Reads ground terms out of a DAG as terms of a table."""

    def __init__(self, dag: eb.TermDag, table: TermTable) -> None:
        self._dag = dag
        self._table = table
        self._memo: dict[int, Argument] = {}

    def arguments(self, row: int) -> list[Argument]:
        """The arguments of an application."""
        application = self._dag.get(row)
        if not isinstance(application, eb.TermApp):
            raise ValueError(f"no application: {application}")
        return [self._argument(argument) for argument in application.args]

    def _argument(self, term: int) -> Argument:
        if term not in self._memo:
            self._memo[term] = self._read(term)
        return self._memo[term]

    def _read(self, term: int) -> Argument:
        match self._dag.get(term):
            case eb.TermLit() as literal if isinstance(literal.value, eb.Int | eb.String):
                return literal.value.value
            case eb.TermApp() as application if application.name == "bigrat":
                above, below = (self._argument(argument) for argument in application.args)
                return Fraction(int(above), int(below))
            case eb.TermApp() as application if application.name in ("bigint", "from-string"):
                return int(self._argument(application.args[0]))
            case eb.TermApp() as application:
                arguments = [self._argument(argument) for argument in application.args]
                return self._table.make(_HEAD_OF[application.name[len(GROUND) :]], arguments)
            case other:
                raise ValueError(f"no ground term: {other}")
