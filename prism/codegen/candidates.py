"""The tuned candidates of a module: what may be lowered, and with which numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation

from prism.codegen.errors import CannotLower
from prism.dialects.kernel import CANDIDATE_OF, SIZES, TARGET, VERDICT, GraphDefOp, VerdictAttr


@dataclass(frozen=True)
class TunedCandidate:
    """A candidate with the sizes and the target that it was tuned for."""

    function: func.FuncOp
    sizes: Mapping[str, int]
    target: str

    def graphs(self) -> list[GraphDefOp]:
        """The graphs that become kernels, in order."""
        return [op for op in self.function.body.block.ops if isinstance(op, GraphDefOp)]

    def params(self, graph: GraphDefOp) -> dict[str, int]:
        """The tuning parameters of a graph."""
        if graph.params is None:
            raise CannotLower("no parameters: run prism-tune first", graph)
        return _integers(graph.params, graph)


def tuned_candidates(module: ModuleOp) -> Iterator[TunedCandidate]:
    """
    The candidates of a module that were proven equal and tuned.

    Raises CannotLower for a candidate that is not proven equal as it stands, workload and graph,
    or that was not tuned.
    """
    from prism.verify.digest import digest

    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
    for function in functions.values():
        workload_name = function.attributes.get(CANDIDATE_OF)
        if workload_name is None:
            continue
        name = function.sym_name.data
        if not isinstance(workload_name, SymbolRefAttr):
            raise CannotLower(f"@{name}: {CANDIDATE_OF}: expected a symbol", function)
        workload = functions.get(workload_name.string_value())
        if workload is None:
            raise CannotLower(
                f"@{name}: the workload @{workload_name.string_value()} is not in the module",
                function,
            )
        verdict = function.attributes.get(VERDICT)
        if not isinstance(verdict, VerdictAttr) or verdict.data.kind != "equal":
            found = verdict.data.kind if isinstance(verdict, VerdictAttr) else "no verdict"
            raise CannotLower(f"@{name}: expected a verdict equal, found {found}", function)
        if verdict.data.digest != digest(workload, function):
            raise CannotLower(
                f"@{name}: workload or graph changed after the verdict: run prism-verify again",
                function,
            )
        sizes, target = function.attributes.get(SIZES), function.attributes.get(TARGET)
        if not isinstance(sizes, DictionaryAttr) or not isinstance(target, StringAttr):
            raise CannotLower(f"@{name}: not tuned: run prism-tune first", function)
        yield TunedCandidate(function, _integers(sizes, function), target.data)


def _integers(attributes: DictionaryAttr, op: Operation) -> dict[str, int]:
    """A dictionary attribute of integers as Python's."""

    def integer(name: str, value: Attribute) -> int:
        if not isinstance(value, IntegerAttr):
            raise CannotLower(f"{name}: expected an integer, found {value}", op)
        return value.value.data

    return {name: integer(name, value) for name, value in attributes.data.items()}
