"""How often verification does what costs time, counted: graphs of one workload share the work."""

from collections import Counter
from collections.abc import Callable

import pytest

from prism.verify import prove, refute, second_opinion
from prism.verify.api import verify_candidates
from prism.verify.record import Recorder
from prism.verify.second_opinion import SecondOpinion
from prism.verify.verdict import Limits


@pytest.fixture
def counted(monkeypatch) -> Callable[[object, str], Counter[str]]:
    """Counts the calls of a function or of the constructor of a class."""
    calls: Counter[str] = Counter()

    def count(place: object, name: str) -> Counter[str]:
        called = getattr(place, name)

        def counting(*arguments, **options):
            calls[name] += 1
            return called(*arguments, **options)

        monkeypatch.setattr(place, name, counting)
        return calls

    return count


def test_graphs_share_one_saturation_and_one_replay(candidates, counted) -> None:
    workload, graphs = candidates("rms_norm_mlp")
    counted(prove, "EGraph")
    calls = counted(prove, "Recorder")
    verdicts = verify_candidates(workload, graphs, certify=True)
    assert {verdict.kind for verdict in verdicts} == {"equal"}
    assert len(graphs) > 8
    assert calls == {"EGraph": 1, "Recorder": 1}


def test_no_time_left_means_no_further_search(candidates, counted) -> None:
    """The seconds are of the workload, not of each graph that is not decided."""
    workload, graphs = candidates("rms_norm")
    calls = counted(prove, "EGraph")
    counted(refute, "evaluate_candidate")
    verdicts = verify_candidates(workload, graphs, Limits(seconds=0.0), opinion=False)
    assert "unknown" in {verdict.kind for verdict in verdicts}
    assert calls == {"EGraph": 1}


def test_instances_are_built_once(candidates) -> None:
    """Proofs of many graphs use the same steps, whose shapes are checked once per table."""
    workload, graphs = candidates("rms_norm_mlp")
    table = prove.TermTable()
    goal = prove.encode_function(workload, table)
    found = [prove.encode_function(graph, table) for graph in graphs]
    goals = [pair for one in found for pair in zip(one.outputs, goal.outputs, strict=True)]
    axes = dict.fromkeys(axis for one in found for axis in one.axes)
    closure = prove.close(table, axes, goals, Limits(), prove.time.perf_counter(), noting=True)
    recorder = Recorder(table, closure.egraph, goals)
    proofs = [recorder.proof([pair]) for pair in goals]
    assert None not in proofs
    used = {id(step) for proof in proofs for step in proof or ()}
    assert sum(len(proof or ()) for proof in proofs) > 4 * len(used)


def test_tiles_are_executed_once_for_all_graphs(candidates) -> None:
    workload, graphs = candidates("rms_norm_mlp")
    opinion = SecondOpinion(workload)
    for graph in graphs:
        assert opinion.confirm(graph) == second_opinion.POINTS
    shared = alone = 0
    for point in (point for points in opinion._points.values() for point in points):
        shared += point.memo.computed
    for graph in graphs:
        own = SecondOpinion(workload)
        own.confirm(graph)
        alone += sum(
            point.memo.computed for (points,) in [own._points.values()] for point in points
        )
    assert shared < alone / 2


def test_the_workload_is_evaluated_once_for_all_graphs(candidates, counted) -> None:
    workload, graphs = candidates("qk_norm_attention")
    calls = counted(refute, "evaluate_function")
    examples = refute.Examples(workload)
    axes = {
        tuple(
            axis
            for op in graph.walk()
            if isinstance(op, refute.GraphDefOp)
            for axis in (*op.grid_axes, *op.loop_axes)
        )
        for graph in graphs
    }
    assert all(examples.against(graph) is None for graph in graphs)
    assert calls["evaluate_function"] == 2 * len(axes) < len(graphs)
