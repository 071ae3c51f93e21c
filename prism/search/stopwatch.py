"""How long parts of the search take, for `prism bench search`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Stopwatch:
    """The seconds that calls of the functions that it `times` took in this process, in all."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def times(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function with the time of each call added to `seconds`."""

        @wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - start

        return timed


SATURATION = Stopwatch()
"""The time spent in saturating e-graphs."""
