"""Strategies and sessions: budgets, seeds, exclusion, recall, and the same answer everywhere."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp

from prism.codegen.graph_point import GraphPoint
from prism.dialects.kernel import GraphDefOp
from prism.tune.choose import TuneError
from prism.tune.database import Database
from prism.tune.executors import Executor, ProcessExecutor, SerialExecutor
from prism.tune.measure import OK, REFUSED, WRONG, MeasurementError, Outcome, Task, measure
from prism.tune.problem import Problem, Trial, make_problem
from prism.tune.session import Budget, Session, Tuner
from prism.tune.space import Point
from prism.tune.strategies import STRATEGIES
from prism.tune.target import load_target
from prism.tune.usage import MMA_TILE, warp_split
from prism.verify.api import is_candidate

from .conftest import proven

A100 = load_target("sm_80")
SIZES = {"n": 5, "d": 96}
NAMES = tuple(STRATEGIES)


def functions(name: str = "rms_norm") -> tuple[FuncOp, list[FuncOp]]:
    module = proven(name)
    found = [op for op in module.ops if isinstance(op, FuncOp)]
    (workload,) = (function for function in found if not is_candidate(function))
    return workload, [function for function in found if is_candidate(function)]


WORKLOAD, CANDIDATES = functions()
PROBLEM = make_problem(CANDIDATES, SIZES, A100)


def tuner(executor: Executor, backend: str = "model", database: Database | None = None) -> Tuner:
    return Tuner(PROBLEM, WORKLOAD, SIZES, backend, executor, database)


def run(name: str, points: int = 12, seed: int = 0, backend: str = "model") -> Session:
    return tuner(SerialExecutor(), backend).run(STRATEGIES[name], Budget(points), seed)


def keys(session: Session) -> list[tuple[object, ...]]:
    return [trial.key for trial, _ in session.measured]


def test_problem_by_index():
    trials = list(PROBLEM.trials())
    assert len(trials) == PROBLEM.count == sum(space.count for space in PROBLEM.spaces)
    for index in (0, 1, PROBLEM.spaces[0].count, PROBLEM.count - 1):
        assert PROBLEM.trial(index) == trials[index]
    with pytest.raises(IndexError):
        PROBLEM.trial(PROBLEM.count)
    estimates = [PROBLEM.estimate(trial) for trial in PROBLEM.ranked]
    assert estimates == sorted(estimates)
    assert len(estimates) == PROBLEM.count


@pytest.mark.parametrize("name", NAMES)
def test_budget_is_kept_and_no_point_is_measured_twice(name: str):
    session = run(name, points=21)
    assert 0 < len(session.measured) <= 21
    assert len(set(keys(session))) == len(session.measured)
    assert session.outcome.seconds == min(o.seconds for _, o in session.measured)
    assert sum(session.statuses.values()) == len(session.measured)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_answer(name: str):
    assert keys(run(name, seed=3)) == keys(run(name, seed=3))


@pytest.mark.parametrize("name", ["random", "evolve"])
def test_other_seed_other_points(name: str):
    assert keys(run(name, seed=3)) != keys(run(name, seed=4))


def test_every_strategy_gives_the_same_in_processes():
    executor = ProcessExecutor(2, 60)
    try:
        for name in NAMES:
            there = tuner(executor).run(STRATEGIES[name], Budget(10), 5)
            here = run(name, points=10, seed=5)
            assert keys(there) == keys(here)
            assert there.best == here.best
    finally:
        executor.close()


def test_exhaustive_measures_everything():
    problem = make_problem(CANDIDATES, SIZES, A100, {"warps": 1, "swap": 1, "stages": 1})

    def count(task: Task) -> Outcome:
        return Outcome(OK, 1.0)

    tuner = Tuner(problem, WORKLOAD, SIZES, "model", SerialExecutor(count))
    session = tuner.run(STRATEGIES["exhaustive"], Budget(10**6), 0)
    assert len(session.measured) == problem.count > 30


def half_hidden(task: Task) -> Outcome:
    """What the model knows, times what it does not: a preference for 2 warps and rows of 16."""
    graph = next(i for i, each in enumerate(PROBLEM.graphs) if each.name == task.candidate)
    point = task.point
    unknown = abs(point.warps - 2) / 2 + abs(point.tiles.get("x", 96) - 16) / 16
    return Outcome(OK, PROBLEM.estimate(Trial(graph, point)) * (1 + unknown))


def test_evolution_finds_what_the_model_does_not_know():
    """Better points than random sampling, none worse than the model alone, on average."""

    def mean(name: str) -> float:
        found = [
            tuner(SerialExecutor(half_hidden)).run(STRATEGIES[name], Budget(48), seed)
            for seed in range(5)
        ]
        return sum(session.outcome.seconds for session in found) / len(found)

    evolved = mean("evolve")
    assert evolved < mean("random")
    assert evolved <= mean("model")


def test_bad_points_are_excluded_and_counted():
    def judge(task: Task) -> Outcome:
        statuses = {1: Outcome(WRONG, detail="off"), 2: Outcome(REFUSED)}
        return statuses.get(task.point.warps, Outcome(OK, 2.0 / task.point.warps))

    session = tuner(SerialExecutor(judge)).run(STRATEGIES["random"], Budget(60), 1)
    assert session.best.point.warps == 8
    assert session.statuses[WRONG] > 0
    assert session.statuses[REFUSED] > 0


def test_a_graph_that_is_always_refused_is_given_up():
    first = PROBLEM.ranked[0].graph

    def judge(task: Task) -> Outcome:
        bad = task.candidate == PROBLEM.graphs[first].name
        return Outcome(REFUSED) if bad else Outcome(OK, 1.0)

    session = tuner(SerialExecutor(judge)).run(STRATEGIES["model"], Budget(60), 1)
    assert 0 < session.statuses[REFUSED] < 16
    assert session.best.graph != first


def test_nothing_good():
    bad = SerialExecutor(lambda task: Outcome(WRONG, detail="off by one"))
    with pytest.raises(TuneError, match="none of 12 points is good; the first: off by one"):
        tuner(bad).run(STRATEGIES["model"], Budget(12), 0)


def test_seconds_end_a_run():
    session = tuner(SerialExecutor()).run(STRATEGIES["random"], Budget(1000, 0.0), 0)
    assert len(session.measured) == 8


def test_stored_measurements_are_not_made_again(tmp_path: Path):
    calls: list[Task] = []

    def note(task: Task) -> Outcome:
        calls.append(task)
        if task.point.warps == 1:
            return Outcome(WRONG, detail="off")
        return Outcome(OK, float(len(calls)))

    with Database(tmp_path / "tuning.db") as database:
        runs = [
            tuner(SerialExecutor(note), "model", database).run(
                STRATEGIES["random"], Budget(16), seed=2
            )
            for _ in range(2)
        ]
        assert len(calls) == 16
        assert runs[0].best == runs[1].best
        assert runs[0].statuses == runs[1].statuses
        assert (runs[0].recalled, runs[1].recalled) == (0, 16)


def task_of(trial: Trial, backend: str, problem: Problem = PROBLEM) -> Task:
    seen: list[Task] = []

    def keep(task: Task) -> Outcome:
        seen.append(task)
        return Outcome(OK, 1.0)

    Tuner(problem, WORKLOAD, SIZES, backend, SerialExecutor(keep)).measure([trial])
    return seen[0]


def test_the_simulator_counts_what_the_model_predicts():
    trial = PROBLEM.ranked[0]
    found = measure(task_of(trial, "sim"))
    model = measure(task_of(trial, "model"))
    assert (found.status, model.status) == (OK, OK)
    assert found.counts["global_bytes"] == model.counts["global_bytes"]
    assert found.counts["mma_flops"] == model.counts["mma_flops"]


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.integers(1, 64),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([0, 1]),
)
def test_warps_are_split_as_code_generation_does(
    rows: int, columns: int, steps: int, warps: int, swap: int
):
    graph = next(op for op in CANDIDATES[0].walk() if isinstance(op, GraphDefOp))
    sizes = (rows * MMA_TILE[swap][0], columns * MMA_TILE[swap][1], 16 * steps)
    layout = GraphPoint(graph, {}, {"warps": warps, "swap": swap}).mma_layout(*sizes)
    split = warp_split(*sizes, warps, swap)
    assert (split.along, split.across, split.deep) == layout.warps
    assert split.held == layout.tiles


def test_a_point_that_cannot_be_lowered_is_refused():
    task = task_of(PROBLEM.ranked[0], "sim")
    point = Point(task.point.tiles, {axis: 1 for axis in task.point.counts}, 4, 1)
    bad = Task(task.module, task.candidate, SIZES, point, "sm_80", "sim")
    assert measure(bad).status == REFUSED


def test_a_wrong_kernel_is_seen(monkeypatch: pytest.MonkeyPatch):
    from prism.verify import evaluate

    original = evaluate.evaluate_function

    def other(*arguments: object) -> Sequence[object]:
        return [1.5 * output for output in original(*arguments)]  # type: ignore[arg-type]

    monkeypatch.setattr(evaluate, "evaluate_function", other)
    found = measure(task_of(PROBLEM.ranked[0], "sim"))
    assert found.status == WRONG
    assert "relative error" in found.detail


def test_tasks_that_make_no_sense():
    task = task_of(PROBLEM.ranked[0], "sim")
    other = Task(task.module, "nobody", SIZES, task.point, "sm_80", "sim")
    with pytest.raises(MeasurementError, match="@nobody"):
        measure(other)
    with pytest.raises(MeasurementError, match="unknown backend 'gpu'"):
        measure(Task(task.module, task.candidate, SIZES, task.point, "sm_80", "gpu"))
    huge = {"n": 5, "d": 8192}
    problem = make_problem(CANDIDATES, huge, A100)
    trial = problem.ranked[0]
    with pytest.raises(MeasurementError, match="at most 16777216"):
        measure(Task(task.module, task.candidate, huge, trial.point, "sm_80", "sim"))
