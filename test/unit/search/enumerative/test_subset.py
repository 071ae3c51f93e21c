"""The enumerative engine is the oracle: what it verifies, the default engine finds or does better."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from prism.dialects.kernel import VERDICT, GraphDefOp
from prism.passes.generate import GeneratePass
from prism.search.engine import prune
from prism.search.from_ir import candidate_funcs, read_candidate, read_workload, workload_funcs
from prism.search.graphs import ACCUM, Graph, Step, canonical
from prism.search.maps import assignments


def without_accums(graph: Graph) -> Graph:
    """
    A graph without its accums: with the loop's row it says where the sums are that a loop cuts.

    The default engine accumulates these where they appear, the oracle also after linear operators.
    """
    steps, shapes, position = [], [], {}
    for index, (step, shape) in enumerate(zip(graph.steps, graph.shapes, strict=True)):
        operands = tuple(position[o] for o in step.operands)
        if step.name == ACCUM:
            (position[index],) = operands
            continue
        position[index] = len(steps)
        steps.append(Step(step.name, operands, step.attribute))
        shapes.append(shape)
    return Graph(tuple(steps), tuple(shapes), graph.loops)


def verified(module, run_passes):
    """The proven candidates of one kernel by operators, set of grid rows, and loop rows."""
    run_passes(module, "prism-instantiate-maps", "prism-verify")
    found = {}
    for _, func in candidate_funcs(module):
        kernels = sum(isinstance(op, GraphDefOp) for op in func.walk())
        if kernels == 1 and func.attributes[VERDICT].data.kind == "equal":
            sgraph = read_candidate(func)
            ((grid, loops),) = assignments(sgraph)
            key = canonical(without_accums(sgraph.graph)), frozenset(grid), loops
            found.setdefault(key, []).append(sgraph)
    return found


def check_subset(name, example, run_passes):
    default, oracle = example(name), example(name)
    GeneratePass(dominated=True).apply(None, default)
    GeneratePass(engine="enumerative").apply(None, oracle)
    known, found = verified(default, run_passes), verified(oracle, run_passes)
    assert found
    extra = [sgraph for key, sgraphs in found.items() if key not in known for sgraph in sgraphs]
    (func,) = workload_funcs(default)
    every = [sgraph for sgraphs in known.values() for sgraph in sgraphs]
    candidates = {f"default{i}": s for i, s in enumerate(every)}
    candidates |= {f"extra{i}": s for i, s in enumerate(extra)}
    dropped = prune(read_workload(func), candidates) if extra else {}
    for index in range(len(extra)):
        assert "dominated by @default" in dropped.get(f"extra{index}", "kept")


@pytest.mark.parametrize(
    "name", ["matmul", "swiglu", "rms_norm", "attention", "lora", "div_matmul", "softmax"]
)
def test_the_verified_set_is_a_subset_of_the_default_engines(name, example, run_passes):
    check_subset(name, example, run_passes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "qk_norm_attention",
        "rms_norm_mlp",
        "geglu",
        "gated_mlp",
        "expert_matmul",
        "ngpt_residual",
        "add_rms_norm",
        "log_softmax",
    ],
)
def test_the_verified_set_of_slow_workloads(name, example, run_passes):
    check_subset(name, example, run_passes)


def load_reference_tests():
    path = Path(__file__).parents[1] / "test_reference.py"
    spec = importlib.util.spec_from_file_location("reference_tests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["rms_norm", "swiglu", "attention", "qk_norm_attention"])
def test_it_finds_every_graph_of_the_papers_implementation(name, reference, example):
    tests = load_reference_tests()
    module = example(name)
    (func,) = workload_funcs(module)
    workload = read_workload(func)
    table = workload.table
    shapes = [table.shapes[table.inputs[i]] for i in sorted(table.inputs)]
    expected = {tests.ReferenceGraph(entry, shapes).key for entry in reference[name]}
    GeneratePass(engine="enumerative").apply(None, module)
    found = set()
    for _, candidate in candidate_funcs(module):
        sgraph = read_candidate(candidate)
        for grid, loops in assignments(sgraph):
            key = canonical(sgraph.graph), frozenset(grid), loops[0] if loops else None
            found.add(key)
    assert expected <= found
