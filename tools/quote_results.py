"""
Writes the tables of the README from the measurements under `bench/results/`.

    .venv/bin/python tools/quote_results.py

Each table stands between `<!-- NAME -->` and `<!-- /NAME -->`; `make bench` measures, then quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
README = ROOT / "README.md"

Row = Sequence[str]


def table(head: Row, rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def search(result: dict[str, Any]) -> str:
    """Graphs and seconds of every example, beside the paper's."""
    rows: list[Row] = []
    for row in result["workloads"]:
        paper = row["paper"] or {"seconds": None, "graphs": None}
        quoted = "" if paper["seconds"] is None else f"{paper['seconds']} s, {paper['graphs']}"
        seconds = row["seconds"]
        rows.append(
            [
                row["workload"],
                f"{row['proven']} of {row['typed']}",
                str(row["unknown"]),
                f"{sum(seconds[key] for key in ('egraph', 'generate', 'maps')):.2f} s",
                f"{seconds['verify']:.2f} s",
                quoted,
            ]
        )
    return table(
        ["workload", "graphs proven", "unknown", "search", "proof", "the paper, 96 threads"], rows
    )


def codegen(result: dict[str, Any]) -> str:
    """The counted quantities of the chosen kernels of the paper's ten configurations."""
    rows: list[Row] = [
        [
            row["workload"],
            row["shape"].replace(",", ", "),
            row["target"],
            str(row["blocks"]),
            f"{row['dram_bytes'] / row['floor_bytes']:.2f}",
            f"{100 * row['wide_access_share']:.0f} %",
            f"{100 * row['conflict_share']:.1f} %",
            str(row["registers"]),
            f"{row['bytes_in_flight'] / 1024:.0f} KiB",
        ]
        for row in result["rows"]
    ]
    return table(
        [
            "workload",
            "shape",
            "target",
            "blocks",
            "DRAM / floor",
            "by 16 bytes",
            "bank conflicts",
            "registers",
            "in flight per SM",
        ],
        rows,
    )


def simulator(result: dict[str, Any]) -> str:
    """Seconds and instructions per second of the simulator with everything on."""
    rows: list[Row] = [
        [
            row["name"],
            row["origin"],
            f"{row['thread_instructions'] / 1e6:.1f} M",
            f"{row['seconds']['all']:.2f} s",
            f"{row['instructions_per_second'] / 1e6:.0f} M/s",
            f"{row['sanitizer_over_bare']:.2f}",
        ]
        for row in result["benchmarks"]
    ]
    head = ["kernel", "PTX by", "thread instructions", "all on", "per second", "sanitizer / bare"]
    return f"Machine: {result['machine']}.\n\n{table(head, rows)}"


TABLES: dict[str, Callable[[dict[str, Any]], str]] = {
    "search": search,
    "codegen": codegen,
    "simulator": simulator,
}
"""Of each table: what makes it from `bench/results/NAME.json`."""


def quoted(text: str) -> str:
    """The text with every table made anew."""
    for name, make in TABLES.items():
        body = make(json.loads((RESULTS / f"{name}.json").read_text()))
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        block = f"{start}\n\n{body}\n\n{end}"
        text, count = pattern.subn(lambda _, block=block: block, text)
        if count != 1:
            raise SystemExit(f"README.md: expected one place for the table {name}, found {count}")
    return text


def main() -> None:
    """Rewrites the README in place."""
    README.write_text(quoted(README.read_text()))


if __name__ == "__main__":
    main()
