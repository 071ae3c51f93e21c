"""
Runs the workers and keeps the clock: a worker that dies or hangs costs one bundle, not the run.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from prism.errors import PrismError

Row = dict[str, Any]

START_LIMIT_S = 120.0
"""For imports, the CUDA context, and the copy bandwidth."""

BUNDLE_LIMIT_S = 90.0


class Refused(PrismError):
    """The machine cannot do the job at all: no torch, no GPU."""


@dataclass
class Supervisor:
    """
    Sends bundles through workers, until a deadline on `time.monotonic`.

    `rows` collects what they say by path, `machine` what they run on.
    """

    command: Sequence[str]
    deadline: float
    start_limit: float = START_LIMIT_S
    bundle_limit: float = BUNDLE_LIMIT_S
    progress: Callable[[str], None] = lambda text: None
    machine: Row = field(default_factory=dict[str, Any])
    rows: dict[str, Row] = field(default_factory=dict[str, "Row"])

    def run(self, phase: str, paths: Sequence[str]) -> None:
        """Do a phase for all bundles; those that the deadline cuts off get `late`."""
        pending = list(paths)
        while pending:
            if time.monotonic() >= self.deadline:
                for path in pending:
                    self._add(path, phase, {"late": f"time limit reached before {phase}"})
                return
            pending = self._one_worker(phase, pending)

    def _one_worker(self, phase: str, paths: Sequence[str]) -> list[str]:
        """Start a worker on `paths`; the paths that it did not come to."""
        reading, writing = os.pipe()
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [*self.command, "--worker", phase, "--pipe", str(writing), *paths],
                pass_fds=[writing],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
            os.close(writing)
            lines = _Lines(reading)
            left = list(paths)
            try:
                self._take_machine(lines)
                while left:
                    self.progress(f"{phase}: {Path(left[0]).name}")
                    message = lines.next(self._limit(self.bundle_limit))
                    if message is None:
                        reason = self._reason(process, errors, lines.ended)
                        self._add(left.pop(0), phase, reason)
                        return left
                    last = message.pop("last", False)
                    self._add(str(message.pop("path")), phase, message)
                    left.pop(0)
                    if last:
                        return left
                return left
            except _NoStart:
                reason = self._reason(process, errors, lines.ended)
                for path in left:
                    self._add(path, phase, reason)
                return []
            finally:
                _end(process)
                lines.close()

    def _take_machine(self, lines: _Lines) -> None:
        message = lines.next(self._limit(self.start_limit))
        if message is None:
            raise _NoStart
        if "refused" in message:
            raise Refused(str(message["refused"]))
        self.machine.update(message["machine"])

    def _limit(self, limit: float) -> float:
        return max(0.0, min(limit, self.deadline - time.monotonic()))

    def _reason(self, process: subprocess.Popen[bytes], errors: Any, ended: bool) -> Row:
        """Why a worker said nothing about a bundle."""
        if not ended:
            if time.monotonic() >= self.deadline:
                return {"late": "time limit reached"}
            return {"ok": False, "error": f"no answer within {self.bundle_limit:g} s"}
        status = process.wait()
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace").strip().splitlines()
        last = f": {text[-1][:200]}" if text else ""
        died = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return {"ok": False, "error": f"the worker ended with {died}{last}"}

    def _add(self, path: str, phase: str, row: Row) -> None:
        """Later phases add to a row; a failure of theirs is the baseline's, not the kernel's."""
        if phase == "kernels":
            self.rows[path] = row
        elif "compile" in row:
            self.rows[path]["compile"] = row["compile"]
        elif reason := row.get("error") or row.get("late"):
            self.rows[path]["compile"] = {"error": reason}


class _NoStart(Exception):
    """A worker ended before it said what it runs on."""


class _Lines:
    """JSON lines of a pipe, with a limit on the wait for each."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(descriptor, selectors.EVENT_READ)
        self.ended = False

    def next(self, seconds: float) -> Row | None:
        """The next object, or None if the time is up or the pipe ended."""
        end = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            if not self._selector.select(max(0.0, end - time.monotonic())):
                return None
            data = os.read(self._descriptor, 1 << 16)
            if not data:
                self.ended = True
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return cast(Row, json.loads(line))

    def close(self) -> None:
        self._selector.close()
        os.close(self._descriptor)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a worker with the processes that it started, which are in its session."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def worker_command(script: str, seed: int, *, dry_run: bool) -> list[str]:
    """The command of a worker, but for its phase, pipe and bundles."""
    command = [sys.executable, script, "--seed", str(seed)]
    return [*command, "--dry-run"] if dry_run else command
