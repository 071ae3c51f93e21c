"""
One e-graph for a workload: saturated once with the rules, bounded, and read out into dictionaries.

After that every question - which operators can compute this class, are these two terms equal - is a
look-up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from prism.dialects.operators import Attributes
from prism.dialects.sym_expr import SymExpr
from prism.search.egg_program import NAMES, closure, constant_facts, program, term_commands
from prism.search.rules import COMMUTATIVE, RULES, Rule
from prism.search.stopwatch import SATURATION
from prism.search.terms import INPUT, Attribute, TermTable, attribute_text

if TYPE_CHECKING:
    from egglog import bindings

ClassId = int
"""
A class of equal terms, numbered by their smallest member: operands of a smallest member come first.
"""

ClassNode = tuple[str, Attribute, tuple[ClassId, ...]]
"""An e-node: operator, attribute (a dim counts from the first, as in the IR), operand classes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Bounds of saturation; past one of them the result is still sound, but need not be complete.
    """

    iterations: int = 8
    nodes: int = 20_000


@dataclass(frozen=True, slots=True)
class Classes:
    """
    What saturation found: `nodes[c]` are the ways to compute class c, sorted; `of_term[t]` is the
    class of a term.

    `saturated` says that no bound cut the search short.
    """

    nodes: tuple[tuple[ClassNode, ...], ...]
    of_term: dict[int, ClassId]
    saturated: bool


@SATURATION.times
def saturate(
    table: TermTable,
    terms: Sequence[int],
    limits: Limits = Limits(),
    rules: tuple[Rule, ...] = RULES,
) -> Classes:
    """Puts `terms` and their subterms into a fresh e-graph, applies `rules`, and reads it out."""
    from egglog import bindings as eb

    order = table.topological(terms)
    constants = frozenset(a for t in order if isinstance(a := table.nodes[t][1], SymExpr))
    graph = eb.EGraph()
    declarations, step, analysis = program(rules)
    graph.run_program(*declarations)
    graph.run_program(*constant_facts(constants))
    graph.run_program(*term_commands(table, order))
    saturated = False
    for _ in range(limits.iterations):
        (report,) = graph.run_program(*step)
        saturated = isinstance(report, eb.RunScheduleOutput) and not report.report.updated
        if saturated or _count(graph) > limits.nodes:
            break
    # The last step may have built terms whose sizes are not derived yet.
    graph.run_program(*analysis)
    texts: dict[str, Attribute] = dict(closure(constants))
    texts |= {attribute_text(a): a for t in order if isinstance(a := table.nodes[t][1], Attributes)}
    return _Reader(graph, texts).classes(table, order, saturated)


def _count(graph: bindings.EGraph) -> int:
    """The number of e-nodes."""
    functions = graph.freeze().functions.values()
    return sum(len(f.rows) for f in functions if f.output_sort == "T" and not f.is_let_binding)


class _Reader:
    """
    Reads a saturated e-graph out; numbers classes by their smallest terms, not by egglog's ids.
    """

    def __init__(self, graph: bindings.EGraph, constants: Mapping[str, Attribute]) -> None:
        self.graph = graph
        self.constants = constants
        self.integers: dict[bindings.Value, int] = {}
        self.strings: dict[bindings.Value, str] = {}
        functions = graph.freeze().functions
        self.ranks: dict[bindings.Value, int] = {}
        for row in functions["size"].rows:
            value, i = row.inputs
            self.ranks[value] = max(self.ranks.get(value, 0), self.integer(i) + 1)
        self.nodes: dict[bindings.Value, list[tuple[str, Attribute, tuple[bindings.Value, ...]]]]
        self.nodes = {}
        for name, function in functions.items():
            if function.output_sort == "T" and not function.is_let_binding:
                sorts = function.input_sorts
                for row in function.rows:
                    attribute, operands = self.split(NAMES[name], sorts, row.inputs, row.output)
                    node = (NAMES[name], attribute, operands)
                    self.nodes.setdefault(row.output, []).append(node)

    def integer(self, value: bindings.Value) -> int:
        if value not in self.integers:
            self.integers[value] = self.graph.value_to_i64(value)
        return self.integers[value]

    def string(self, value: bindings.Value) -> str:
        if value not in self.strings:
            self.strings[value] = self.graph.value_to_string(value)
        return self.strings[value]

    def split(
        self,
        name: str,
        sorts: Sequence[str],
        inputs: Sequence[bindings.Value],
        output: bindings.Value,
    ) -> tuple[Attribute, tuple[bindings.Value, ...]]:
        """Attribute and operands of an e-node; a dim is counted from the first again."""
        match sorts[0]:
            case "i64" if name == INPUT:
                return self.integer(inputs[0]), ()
            case "i64":
                return self.ranks[output] - 1 - self.integer(inputs[0]), tuple(inputs[1:])
            case "String":
                return self.constants[self.string(inputs[0])], tuple(inputs[1:])
            case _:
                return None, tuple(inputs)

    def digests(self) -> dict[bindings.Value, bytes]:
        """
        Per class, a digest of its smallest term: the same in every process.

        Sizes first, by relaxation; then digests in the order of sizes, a term being larger than its
        operands.
        """
        sizes: dict[bindings.Value, int] = {}
        changed = True
        while changed:
            changed = False
            for value, nodes in self.nodes.items():
                known = [n for n in nodes if all(o in sizes for o in n[2])]
                smallest = min((1 + sum(sizes[o] for o in n[2]) for n in known), default=None)
                if smallest is not None and smallest < sizes.get(value, smallest + 1):
                    sizes[value] = smallest
                    changed = True
        digests: dict[bindings.Value, bytes] = {}
        for value in sorted(sizes, key=lambda v: sizes[v]):
            texts = [
                f"{name} {attribute_text(given)} ".encode() + b"".join(digests[o] for o in operands)
                for name, given, operands in self.nodes[value]
                if all(o in sizes for o in operands)
                and 1 + sum(sizes[o] for o in operands) == sizes[value]
            ]
            digests[value] = sizes[value].to_bytes(8, "big") + blake2b(min(texts)).digest()
        return digests

    def classes(self, table: TermTable, order: Sequence[int], saturated: bool) -> Classes:
        roots: dict[int, bindings.Value] = {}
        for term in order:
            value = self.graph.lookup_function(f"$t{term}", [])
            if value is None:
                raise RuntimeError(f"egglog lost the term {table.key(term)}")
            roots[term] = value
        digests = self.digests()
        reachable = dict.fromkeys(roots.values())
        queue = list(reachable)
        while queue:
            for _, _, operands in self.nodes[queue.pop()]:
                fresh = [o for o in operands if o not in reachable]
                reachable |= dict.fromkeys(fresh)
                queue += fresh
        ranked = sorted(reachable, key=lambda v: digests[v])
        number = {value: i for i, value in enumerate(ranked)}

        def read(value: bindings.Value) -> tuple[ClassNode, ...]:
            nodes: set[ClassNode] = set()
            for name, attribute, operands in self.nodes[value]:
                classes = [number[o] for o in operands]
                if name in COMMUTATIVE:
                    classes.sort()
                nodes.add((name, attribute, tuple(classes)))
            return tuple(sorted(nodes, key=lambda n: (n[2], n[0], attribute_text(n[1]))))

        return Classes(
            tuple(map(read, ranked)), {t: number[v] for t, v in roots.items()}, saturated
        )
