"""What every command needs: a context with all dialects, progress on a terminal, a time limit."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from xdsl.context import Context

from prism.errors import JobFailedError


class TimeLimitError(JobFailedError):
    """The time limit of the command line ran out."""


def make_context() -> Context:
    """A context with every dialect that xDSL knows, Prism's among them."""
    from xdsl.universe import Universe

    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context


@contextmanager
def progress() -> Generator[Callable[[str], None]]:
    """Shows the stage at work on a terminal; silent where standard error is none."""
    if not sys.stderr.isatty():
        yield lambda stage: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield lambda stage: status.update(stage)


@contextmanager
def time_limit(seconds: float | None) -> Generator[None]:
    """
    Ends the body with `TimeLimitError` after some seconds.

    Only between Python instructions: a call into a library is not interrupted.
    """
    if seconds is None:
        yield
        return

    def expire(number: int, frame: FrameType | None) -> NoReturn:
        raise TimeLimitError(f"time limit of {seconds:g} s reached")

    previous = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
