"""
Where tasks run: in this process, or in worker processes that may hang or die.

`run` gives the outcomes in the order of the tasks, whichever ends first, so that a strategy decides
the same under every executor.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol, cast

from prism.errors import PrismError
from prism.tune.measure import CRASHED, TIMEOUT, Outcome, Task, measure

Measure = Callable[[Task], Outcome]

DEFAULT_TIME_LIMIT = 60.0
"""Seconds of one task."""

START_SECONDS = 60.0
"""How long a worker process may take to import what it needs."""

_READY = "ready"


class Executor(Protocol):
    """Runs tasks; `close` it."""

    name: str

    def run(self, tasks: Sequence[Task]) -> list[Outcome]:
        """One outcome per task, in order."""
        ...

    def close(self) -> None:
        """End the workers."""
        ...


class SerialExecutor:
    """In this process, one after the other: nothing protects from a task that hangs or dies."""

    name = "serial"

    def __init__(self, function: Measure = measure) -> None:
        self._function = function

    def run(self, tasks: Sequence[Task]) -> list[Outcome]:
        """One outcome per task, in order."""
        return [guarded(self._function, task) for task in tasks]

    def close(self) -> None:
        """Nothing to end."""


@dataclass
class _Worker:
    process: SpawnProcess
    connection: Any  # one end of a pipe, whose type differs between systems
    index: int | None = None
    deadline: float = float("inf")
    ready: bool = False


class ProcessExecutor:
    """
    In `workers` processes of this machine, each task with a time limit in seconds.

    A process that takes longer is killed, one that dies is replaced; both are outcomes. A
    `PrismError`, which is about all tasks, is raised here.
    """

    name = "processes"

    def __init__(
        self,
        workers: int = 0,
        time_limit: float = DEFAULT_TIME_LIMIT,
        function: Measure = measure,
    ) -> None:
        self._count = workers or os.cpu_count() or 1
        self._time_limit = time_limit
        self._function = function
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []

    def run(self, tasks: Sequence[Task]) -> list[Outcome]:
        """One outcome per task, in order."""
        outcomes: dict[int, Outcome] = {}
        waiting = list(range(len(tasks)))[::-1]
        while len(outcomes) < len(tasks):
            while len(self._workers) < min(self._count, len(tasks)):
                self._workers.append(self._start())
            for worker in self._workers:
                if worker.ready and worker.index is None and waiting:
                    self._give(worker, waiting.pop(), tasks)
            self._collect(outcomes)
        return [outcomes[index] for index in range(len(tasks))]

    def close(self) -> None:
        """Kill the workers; none has anything to lose."""
        for worker in self._workers:
            self._end(worker)
        self._workers.clear()

    def _start(self) -> _Worker:
        here, there = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(there, self._function), daemon=True)
        process.start()
        there.close()
        return _Worker(process, here, deadline=time.monotonic() + START_SECONDS)

    def _give(self, worker: _Worker, index: int, tasks: Sequence[Task]) -> None:
        worker.index = index
        worker.deadline = time.monotonic() + self._time_limit
        try:
            worker.connection.send(tasks[index])
        except OSError:
            worker.deadline = float("inf")  # it died; `_collect` sees the end of its pipe

    def _collect(self, outcomes: dict[int, Outcome]) -> None:
        """Take what is there, and end workers that died or are out of time."""
        working = [w for w in self._workers if w.index is not None or not w.ready]
        nearest = min((worker.deadline for worker in working), default=time.monotonic())
        timeout = None if nearest == float("inf") else max(0.0, nearest - time.monotonic())
        answered = wait([worker.connection for worker in working], timeout)
        for worker in working:
            if worker.connection in answered:
                self._receive(worker, outcomes)
            elif time.monotonic() >= worker.deadline:
                detail = f"over the time limit of {self._time_limit:g} s"
                self._lose(worker, Outcome(TIMEOUT, detail=detail), outcomes)

    def _receive(self, worker: _Worker, outcomes: dict[int, Outcome]) -> None:
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(5)
            detail = f"exit status {worker.process.exitcode}"
            self._lose(worker, Outcome(CRASHED, detail=detail), outcomes)
            return
        if isinstance(answer, PrismError):
            self.close()
            raise answer
        if answer == _READY:
            worker.ready, worker.deadline = True, float("inf")
        elif worker.index is not None:
            outcomes[worker.index] = cast(Outcome, answer)
            worker.index, worker.deadline = None, float("inf")

    def _lose(self, worker: _Worker, outcome: Outcome, outcomes: dict[int, Outcome]) -> None:
        """A worker is gone, or must go; its task, if it had one, has this outcome."""
        self._end(worker)
        self._workers.remove(worker)
        if worker.index is None:
            self.close()
            raise RuntimeError(f"a worker process did not start: {outcome.detail}")
        outcomes[worker.index] = outcome

    @staticmethod
    def _end(worker: _Worker) -> None:
        worker.process.kill()
        worker.process.join()
        worker.connection.close()


def _serve(connection: Any, function: Measure) -> None:
    """A worker: measures what it is sent until its parent is gone."""
    connection.send(_READY)
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        try:
            answer: Outcome | PrismError = guarded(function, task)
        except KeyboardInterrupt:
            return
        except PrismError as error:  # raised again in the parent
            answer = error
        connection.send(answer)


def guarded(function: Measure, task: Task) -> Outcome:
    """A task whose failure, whatever it is, is the outcome of its point; `PrismError` is raised."""
    try:
        return function(task)
    except PrismError:
        raise
    except Exception as error:
        return Outcome(CRASHED, detail=f"{type(error).__name__}: {error}")


EXECUTORS: dict[str, Callable[[int, float], Executor]] = {
    "serial": lambda workers, time_limit: SerialExecutor(),
    "processes": lambda workers, time_limit: ProcessExecutor(workers, time_limit),
}
"""Executors by name, from a number of workers (0: one per CPU) and seconds of a task."""
