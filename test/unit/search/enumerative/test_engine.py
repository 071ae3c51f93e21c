"""The enumerative engine on the examples: what it finds, what ends it, what switches change."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import PassFailedException

from prism.passes.generate import GeneratePass
from prism.search.enumerative.engine import enumerate_graphs
from prism.search.enumerative.problem import Bounds
from prism.search.from_ir import (
    UnsupportedError,
    Workload,
    candidate_funcs,
    read_workload,
    workload_funcs,
)
from prism.search.graphs import canonical


@pytest.fixture
def workload(example):
    def read(name: str) -> Workload:
        (func,) = workload_funcs(example(name))
        return read_workload(func)

    return read


def maps_of(enumerated):
    """Per graph, its maps without the order of grid axes."""
    return {
        canonical(one.graph): {(frozenset(grid), loops) for grid, loops in one.maps}
        for one in enumerated.graphs
    }


@pytest.mark.parametrize(
    ("name", "graphs", "maps"),
    [("matmul", 2, 8), ("swiglu", 2, 8), ("rms_norm", 17, 68), ("attention", 5, 40)],
)
def test_the_counts_of_graphs(name, graphs, maps, workload):
    found = enumerate_graphs(workload(name))
    assert found.complete
    assert len(found.graphs) == graphs
    assert sum(len(one.maps) for one in found.graphs) == maps
    # The ranks of operators let each graph be built in one order only.
    assert all(len(one.sgraphs) == 1 for one in found.graphs)
    assert found.assignments >= maps
    assert found.mismatched > 0


@pytest.mark.parametrize(
    ("name", "concrete"),
    [
        ("matmul", ("imap", "fmap", "omap")),
        ("swiglu", ("omap",)),
        ("rms_norm", ("fmap",)),
        ("rms_norm", ("omap",)),
    ],
)
def test_concrete_maps_give_the_same_graphs_by_more_states(name, concrete, workload):
    symbolic = enumerate_graphs(workload(name))
    found = enumerate_graphs(workload(name), concrete)
    assert maps_of(found) == maps_of(symbolic)
    assert found.complete
    assert found.states > symbolic.states


def test_a_bound_on_operators_leaves_out_larger_graphs(workload):
    smaller = enumerate_graphs(workload("rms_norm"), bounds=Bounds(operators=8))
    sizes = [len(one.graph.steps) - 3 for one in smaller.graphs]
    everything = enumerate_graphs(workload("rms_norm"))
    expected = sorted(size for one in everything.graphs if (size := len(one.graph.steps) - 3) <= 8)
    assert sorted(sizes) == expected
    assert 0 < len(expected) < len(everything.graphs)


def test_the_time_limit_ends_the_search_and_says_so(workload):
    found = enumerate_graphs(workload("rms_norm_mlp"), bounds=Bounds(seconds=0.0))
    assert not found.complete
    assert found.states == 64


def test_an_operator_without_a_rule_is_refused(workload, monkeypatch):
    import prism.search.enumerative.expressions as expressions

    monkeypatch.setattr(expressions, "supported", lambda name: name != "silu")
    with pytest.raises(UnsupportedError, match="cannot match the dims of silu"):
        enumerate_graphs(workload("swiglu"))
    assert enumerate_graphs(workload("matmul")).unsupported == ()


def test_an_unknown_kind_of_map_is_refused(workload):
    with pytest.raises(ValueError, match="kinds of maps"):
        enumerate_graphs(workload("matmul"), ["kmap"])


def test_the_pass_gives_symbolic_or_concrete_candidates(example):
    symbolic, concrete = example("rms_norm"), example("rms_norm")
    GeneratePass(engine="enumerative").apply(None, symbolic)
    GeneratePass(engine="enumerative", concrete=("fmap",)).apply(None, concrete)
    for module, prefix, count in ((symbolic, "s", 17), (concrete, "g", 68)):
        module.verify()
        names = [func.sym_name.data for _, func in candidate_funcs(module)]
        assert names == [f"rms_norm__{prefix}{i}" for i in range(count)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "random"}, "engine: expected egraph or enumerative, found 'random'"),
        ({"engine": "enumerative", "concrete": ("kmap",)}, "expected imap, fmap or omap"),
        ({"max_seconds": 1.0}, "need engine=enumerative"),
    ],
)
def test_bad_options_of_the_pass(options, message, example):
    with pytest.raises(PassFailedException, match=message):
        GeneratePass(**options).apply(None, example("matmul"))
