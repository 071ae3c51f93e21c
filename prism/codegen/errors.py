"""What code generation refuses, and where."""

from __future__ import annotations

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from prism.errors import PrismError, SourceLocation


class CannotLower(PrismError, PassFailedException):
    """A graph or parameter that code generation cannot lower; the message says why, in numbers."""

    def __init__(self, message: str, op: Operation | None = None) -> None:
        super().__init__(f"{_name(op)}{message}", location_of(op))


def _name(op: Operation | None) -> str:
    """How a message names an op: `%m = threadblock.matmul: `, where its result has a name."""
    if op is None:
        return ""
    results = [f"%{result.name_hint}" for result in op.results if result.name_hint]
    return f"{', '.join(results)}{' = ' if results else ''}{op.name}: "


def location_of(op: Operation | None) -> SourceLocation | None:
    """The place in a file that an op came from, if it is known."""
    if op is None or not isinstance(op.location, FileLineColLoc):
        return None
    location = op.location
    return SourceLocation(location.filename.data, location.line.data, location.column.data)
