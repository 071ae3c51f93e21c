"""The default engine finds every graph that the paper's public implementation found."""

from __future__ import annotations

from typing import Any

import pytest

from prism.dialects.layouts import REPL
from prism.dialects.sym_expr import SymExpr
from prism.search.from_ir import candidate_funcs, read_candidate, read_workload, workload_funcs
from prism.search.graphs import ACCUM, OUTPUT, Graph, Step, canonical
from prism.search.maps import assignments
from prism.search.terms import INPUT

EPS = SymExpr.constant(1) / 100000


class ReferenceGraph:
    """A graph of `reference_graphs.json` with composites expanded and degenerate loops left out."""

    def __init__(self, entry: dict[str, Any], shapes: list[tuple[SymExpr, ...]]) -> None:
        ops = entry["ops"]
        self.looped = any(op.get("fmap") is not None for op in ops)
        self.steps: list[Step] = []
        self.shapes: list[tuple[SymExpr, ...]] = []
        values: list[int] = []
        for op in ops:
            operands = [values[o] for o in op["operands"]]
            values.append(self.add(op["op"], operands, shapes))
        graph = Graph(tuple(self.steps), tuple(self.shapes), ("i",) if self.looped else ())
        inputs = [op for op in ops if op["op"] == "input"]
        outputs = [op for op in ops if op["op"] == "output"]

        def cut(value: int | None) -> int:
            return REPL if value is None else value

        rows = [
            tuple([cut(op["imap"][a]) for op in inputs] + [cut(op["omap"][a]) for op in outputs])
            for a in range(entry["grid_axes"])
        ]
        loop = tuple([cut(op["fmap"]) for op in inputs] + [REPL for _ in outputs])
        active = frozenset(row for row in rows if set(row) != {REPL})
        self.key = (canonical(graph), active, loop if self.looped else None)

    def append(self, name: str, operands: list[int], attribute: Any = None) -> int:
        self.steps.append(Step(name, tuple(operands), attribute))
        self.shapes.append(self.shapes[operands[0]] if operands else ())
        return len(self.steps) - 1

    def accum(self, operand: int) -> int:
        return self.append(ACCUM, [operand], "i") if self.looped else operand

    def add(self, name: str, operands: list[int], shapes: list[tuple[SymExpr, ...]]) -> int:
        match name:
            case "input":
                index = sum(step.name == INPUT for step in self.steps)
                self.steps.append(Step(INPUT, (), index))
                self.shapes.append(shapes[index])
                return len(self.steps) - 1
            case "output":
                return self.append(OUTPUT, operands, 0)
            case "accum":
                return self.accum(operands[0])
            case "accum_sum_last":
                return self.accum(self.append("sum", operands, len(self.shapes[operands[0]]) - 1))
            case "accum_rms_last":
                return self.root_mean_square(operands[0], accumulate=True)
            case "rms_norm":
                rms = self.root_mean_square(operands[0], accumulate=False)
                return self.append("div", [operands[0], rms])
            case _:
                return self.append(name, operands)

    def root_mean_square(self, x: int, accumulate: bool) -> int:
        last = len(self.shapes[x]) - 1
        total = self.append("sum", [self.append("square", [x])], last)
        if accumulate:
            total = self.accum(total)
        mean = self.append("scale", [total], SymExpr.constant(1) / self.shapes[x][last])
        return self.append("sqrt", [self.append("shift", [mean], EPS)])


def found_keys(name: str, example, run_passes) -> set[object]:
    """The graphs that the passes leave, each as canonical graph, set of grid rows, loop row."""
    module = run_passes(example(name), "prism-generate", "prism-prune", "prism-instantiate-maps")
    keys: set[object] = set()
    for _, func in candidate_funcs(module):
        candidate = read_candidate(func)
        ((grid, loops),) = assignments(candidate)
        keys.add((canonical(candidate.graph), frozenset(grid), loops[0] if loops else None))
    return keys


@pytest.mark.parametrize(
    ("name", "graphs", "distinct"),
    [
        ("rms_norm", 9, 9),
        # Twelve, of which six are one loop-free graph with accums in other places.
        ("swiglu", 12, 6),
        ("rms_norm_mlp", 2, 2),
        ("attention", 14, 14),
        ("qk_norm_attention", 14, 14),
    ],
)
def test_every_reference_graph_is_found(
    name: str, graphs: int, distinct: int, reference, example, run_passes
):
    (func,) = workload_funcs(example(name))
    workload = read_workload(func)
    table = workload.table
    shapes = [table.shapes[table.inputs[i]] for i in sorted(table.inputs)]
    expected = {ReferenceGraph(entry, shapes).key for entry in reference[name]}
    assert (len(reference[name]), len(expected)) == (graphs, distinct)
    assert expected <= found_keys(name, example, run_passes)
