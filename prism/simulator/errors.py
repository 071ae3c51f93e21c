"""Errors of the simulator: what is wrong with a PTX text, and what went wrong while it ran."""

from __future__ import annotations


class PtxError(Exception):
    """
    A PTX text that cannot be loaded: malformed, or using something the simulator does not know.

    Raised while loading, never while running, and always names the file and the line.
    """

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: error: {message}")
        self.file = file
        self.line = line
        self.message = message


class SimulatorError(Exception):
    """
    A fault of a running kernel (or of its launch), located as far as it can be.

    `line` is the line of the PTX text (None for a faulty launch); `block` and `thread` are the
    (x, y, z) indices of one thread that met the fault (None where no single thread is to blame).
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        block: tuple[int, int, int] | None = None,
        thread: tuple[int, int, int] | None = None,
    ) -> None:
        place = "" if file is None else f"{file}: " if line is None else f"{file}:{line}: "
        where = "" if block is None else f" (block {block}, thread {thread})"
        super().__init__(f"{place}error: {message}{where}")
        self.message = message
        self.file = file
        self.line = line
        self.block = block
        self.thread = thread


class LaunchError(SimulatorError):
    """A launch that no driver would accept: wrong arguments, or too large."""


class OutOfBoundsError(SimulatorError):
    """An access that leaves every allocation, or crosses the end of one."""


class UseAfterFreeError(OutOfBoundsError):
    """An access to a buffer that was freed."""


class MisalignedAccessError(SimulatorError):
    """An access whose address is not a multiple of its width."""


class UninitializedReadError(SimulatorError):
    """A read of shared memory, or of an `empty` buffer, that nothing wrote before."""


class RaceError(SimulatorError):
    """
    Two warps use a place of shared memory, one of them writing, with no barrier in between.

    `line` and `thread` are of the later access, `other_line` and `other_thread` of the earlier one
    in the same block (None if it is too long ago).
    """

    other_line: int | None = None
    other_thread: tuple[int, int, int] | None = None


class AsyncReadError(SimulatorError):
    """A read of shared memory that a cp.async still owns: its wait_group is missing or too weak."""


class DivergenceError(SimulatorError):
    """A warp-wide instruction or a barrier that only a part of its threads reached."""


class DeadlockError(SimulatorError):
    """Threads wait for each other and none can go on."""


class BudgetError(SimulatorError):
    """The instruction budget is spent: most likely an infinite loop."""
