"""Functions that stand for `measure` in tests of executors; worker processes import them."""

import os
import time

from prism.tune.measure import OK, MeasurementError, Outcome, Task


def seconds_of(task: Task) -> float:
    return float(task.point.warps + 10 * task.point.swap)


def good(task: Task) -> Outcome:
    return Outcome(OK, seconds_of(task))


def slow_first(task: Task) -> Outcome:
    time.sleep(0.3 if task.point.warps == 1 else 0)
    return Outcome(OK, seconds_of(task))


def bad_by_warps(task: Task) -> Outcome:
    """1 warp hangs, 2 die, 4 raise, 8 are good."""
    match task.point.warps:
        case 1:
            time.sleep(600)
        case 2:
            os._exit(7)
        case 4:
            raise ZeroDivisionError("no")
        case _:
            pass
    return Outcome(OK, seconds_of(task))


def refuse_all(task: Task) -> Outcome:
    raise MeasurementError("nothing can be measured")
