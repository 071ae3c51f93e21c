"""Errors that a user caused and can fix; everything else that escapes is a bug in Prism."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLocation:
    """A place in a file; lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class PrismError(Exception):
    """A bad input, option or environment; the commands print it in one line and exit with 2."""

    def __init__(self, message: str, location: SourceLocation | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location

    def __str__(self) -> str:
        if self.location is None:
            return self.message
        return f"{self.location}: {self.message}"


class JobFailedError(PrismError):
    """The input was good but the job did not succeed (nothing proven, ...); exit status 1."""
