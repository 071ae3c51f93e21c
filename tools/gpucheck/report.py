"""The rows of a check: made from what workers say, printed as a table, written as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prism.runtime.manifest import Manifest

from .index import Configuration

Row = dict[str, Any]

COLUMNS = (
    ("workload", 18),
    ("shape", 20),
    ("target", 6),
    ("verdict", 8),
    ("rel err", 8),
    ("prism us", 9),
    ("eager us", 9),
    ("compile us", 10),
    ("floor us", 9),
    ("x floor", 7),
)


def make_row(manifest: Manifest, found: Mapping[str, Any], bandwidth: float | None) -> Row:
    """
    One row of the JSON.

    `floor_bytes` is every input read once and every output written once; `floor_us` that at the
    measured bandwidth of a copy, and `prism_over_floor` our time over it.
    """
    floor = sum(entry.nbytes for entry in (*manifest.inputs, *manifest.outputs))
    times = {name: dict(found.get(name) or {}) for name in ("prism", "eager", "compile")}
    ours = times["prism"].get("median_us")
    floor_us = None if bandwidth is None else 1e6 * floor / bandwidth
    row: Row = {
        "workload": manifest.workload,
        "shape": manifest.shape,
        "target": manifest.target,
        "graph": manifest.graph.name,
        "parameters": manifest.graph.parameters,
        "ok": found.get("ok"),
        "skipped": found.get("late"),
        "error": found.get("error"),
        "image": found.get("image"),
        "reference": found.get("reference"),
        "max_abs_err": found.get("max_abs_err"),
        "max_rel_err": found.get("max_rel_err"),
        "tolerance": found.get("tolerance"),
        "floor_bytes": floor,
        "floor_us": floor_us,
        "prism_us": ours,
        "prism_over_floor": None if ours is None or floor_us is None else ours / floor_us,
        "timing": times["prism"] or None,
        "kernels": [
            {
                "name": kernel.name,
                "grid": kernel.grid,
                "block": kernel.block,
                "smem_bytes": kernel.smem_bytes,
                "registers": kernel.registers,
                "spill_bytes": kernel.spill_bytes,
            }
            for kernel in manifest.kernels
        ],
    }
    for name in ("eager", "compile"):
        other = times[name].get("median_us")
        row[f"{name}_us"] = other
        row[f"{name}_over_prism"] = None if ours is None or other is None else other / ours
        row[f"{name}_error"] = times[name].get("error")
    return row


def skipped_row(configuration: Configuration) -> Row:
    """The row of a configuration for which there is no bundle, with the reason."""
    return {
        "workload": configuration.workload,
        "shape": configuration.shape,
        "target": configuration.target,
        "ok": None,
        "skipped": configuration.reason,
    }


def table(machine: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """The rows to read; reasons of what was skipped or wrong come below."""
    bandwidth = machine.get("copy_bytes_per_s")
    copied = "not measured" if bandwidth is None else f"{bandwidth / 1e9:.0f} GB/s"
    lines = [
        f"machine: {machine.get('gpu') or 'no GPU'}, launch by {machine.get('launch')}, torch "
        f"{machine.get('torch') or 'not installed'}, copy bandwidth {copied}",
        "",
        "  ".join(title.ljust(width) for title, width in COLUMNS).rstrip(),
    ]
    notes: list[str] = []
    for row in rows:
        shape = ",".join(f"{name}={size}" for name, size in row["shape"].items())
        cells = (
            row["workload"],
            shape,
            row["target"],
            verdict(row),
            _number(row.get("max_rel_err"), "{:.2g}"),
            *(_number(row.get(f"{name}_us"), "{:.2f}") for name in ("prism", "eager", "compile")),
            _number(row.get("floor_us"), "{:.2f}"),
            _number(row.get("prism_over_floor"), "{:.2f}"),
        )
        padded = (cell.ljust(width) for cell, (_, width) in zip(cells, COLUMNS, strict=True))
        lines.append("  ".join(padded).rstrip())
        for key in ("error", "skipped", "eager_error", "compile_error"):
            if row.get(key):
                notes.append(f"{row['workload']} {shape}: {key.replace('_', ' ')}: {row[key]}")
    return "\n".join([*lines, *(["", *notes] if notes else [])])


def verdict(row: Row) -> str:
    """`ok`, `WRONG` or `skipped`."""
    if row["ok"] is None:
        return "skipped"
    return "ok" if row["ok"] else "WRONG"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def write_json(path: Path, machine: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Write `{machine, rows}`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"machine": dict(machine), "rows": list(rows)}, indent=2, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
