"""Plain text tables: aligned columns, the same on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns under a header; those with numbers only are aligned right."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    right = [
        all(isinstance(row[column], (int, float)) for row in rows) for column in range(len(header))
    ]
    lines = [
        "  ".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines)


def fields(values: Mapping[str, str]) -> str:
    """One `name  value` a line, the values aligned."""
    width = max(len(name) for name in values)
    return "\n".join(f"{name.ljust(width)}  {value}".rstrip() for name, value in values.items())


def dims(sizes: Sequence[int]) -> str:
    """`64x1x1`."""
    return "x".join(map(str, sizes))


def human_bytes(count: int) -> str:
    """`33.6 MB`, in powers of 1000."""
    value, units = float(count), ["B", "kB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" else f"{value:.1f} {units[0]}"
