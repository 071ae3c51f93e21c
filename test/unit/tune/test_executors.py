"""Executors: order, hangs, crashes, exceptions; what one candidate does never ends the run."""

import sys
from pathlib import Path

import pytest

from prism.tune.executors import Executor, ProcessExecutor, SerialExecutor
from prism.tune.measure import CRASHED, OK, TIMEOUT, MeasurementError, Outcome, Task
from prism.tune.space import Point

# Worker processes import the tasks too, by the path that they inherit.
sys.path.insert(0, str(Path(__file__).parent))

import tuning_tasks as tasks


def task(warps: int, swap: int = 0) -> Task:
    return Task("", "g", {}, Point({"x": 8}, {"x": 1}, warps, swap), "sm_80", "model")


TASKS = [task(warps, swap) for swap in (0, 1) for warps in (1, 2, 4, 8)]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_outcomes_are_in_order(workers: int):
    executor: Executor = (
        ProcessExecutor(workers, 30, tasks.slow_first) if workers else SerialExecutor(tasks.good)
    )
    try:
        for _ in range(2):  # workers serve more than one run
            found = executor.run(TASKS)
            assert [outcome.seconds for outcome in found] == list(map(tasks.seconds_of, TASKS))
        assert executor.run([]) == []
    finally:
        executor.close()


def test_hangs_crashes_and_exceptions_are_outcomes():
    executor = ProcessExecutor(2, 1.0, tasks.bad_by_warps)
    try:
        found = executor.run(TASKS)
        again = executor.run([task(8)])
    finally:
        executor.close()
    expected = [TIMEOUT, CRASHED, CRASHED, OK]
    assert [outcome.status for outcome in found] == expected * 2
    assert found[0].detail == "over the time limit of 1 s"
    assert found[1].detail == "exit status 7"
    assert found[2].detail == "ZeroDivisionError: no"
    assert again == [Outcome(OK, 8.0)]


def test_serial_keeps_exceptions_as_outcomes():
    (found,) = SerialExecutor(tasks.bad_by_warps).run([task(4)])
    assert (found.status, found.detail) == (CRASHED, "ZeroDivisionError: no")


@pytest.mark.parametrize("serial", [True, False])
def test_what_is_wrong_with_all_tasks_is_raised(serial: bool):
    executor: Executor = (
        SerialExecutor(tasks.refuse_all) if serial else ProcessExecutor(1, 30, tasks.refuse_all)
    )
    with pytest.raises(MeasurementError, match="nothing can be measured"):
        executor.run([task(1)])
    executor.close()
