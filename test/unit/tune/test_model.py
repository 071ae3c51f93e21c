"""The model's counts against the simulator's meter, on random points of ragged shapes too."""

from random import Random

import pytest
from xdsl.dialects.func import FuncOp

from prism.tune.executors import SerialExecutor
from prism.tune.measure import OK, REFUSED, Outcome, Task, measure
from prism.tune.problem import make_problem
from prism.tune.session import Tuner
from prism.tune.target import load_target
from prism.verify.api import is_candidate

from .conftest import proven

A100 = load_target("sm_80")
WORKLOADS = {"matmul": "nkm", "rms_norm": "nd", "swiglu": "nd", "rms_norm_mlp": "nd"}


def compare(name: str, symbols: str, random: Random, number: int) -> tuple[int, list[float]]:
    """How many points of one shape were simulated, and the relative errors of instructions."""
    functions = [op for op in proven(name).ops if isinstance(op, FuncOp)]
    candidates = [function for function in functions if is_candidate(function)]
    (workload,) = (function for function in functions if not is_candidate(function))
    rows, others = (1, 7, 16, 33), (64, 100, 160)
    sizes = {symbol: random.choice(rows if symbol == "n" else others) for symbol in symbols}
    problem = make_problem(candidates, sizes, A100)
    both: list[tuple[Outcome, Outcome]] = []

    def twice(task: Task) -> Outcome:
        model = measure(Task(**{**vars(task), "backend": "model"}))
        both.append((measure(task), model))
        return both[-1][0]

    tuner = Tuner(problem, workload, sizes, "sim", SerialExecutor(twice))
    tuner.measure(problem.sample(random, number))
    errors: list[float] = []
    for found, model in both:
        if found.status == REFUSED:
            continue
        assert (found.status, model.status) == (OK, OK), (sizes, found, model)
        for count in ("global_bytes", "mma_flops"):
            assert found.counts[count] == model.counts[count], (sizes, count)
        counted = found.counts["instructions"]
        errors.append(abs(model.counts["instructions"] - counted) / counted)
    return len(errors), errors


def test_bytes_and_flops_are_exact():
    counted = sum(compare(n, s, Random(1), 2)[0] for n, s in WORKLOADS.items())
    assert counted >= 6


@pytest.mark.slow
def test_instructions_on_two_hundred_points():
    """The median error of warp instructions stays below a fifth; bytes and flops are exact."""
    random = Random(7)
    errors: list[float] = []
    while len(errors) < 200:
        for name, symbols in WORKLOADS.items():
            errors += compare(name, symbols, random, 4)[1]
    errors.sort()
    assert errors[len(errors) // 2] < 0.2
