"""`prism bench sim`: how fast the simulator runs kernels, bare and with all its checks on."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prism.cli.table import table
from prism.simulator import Report, Simulator

REPEATS = 5
MODES: dict[str, dict[str, bool]] = {
    "bare": {"sanitize": False, "meter": False},
    "sanitizer": {"sanitize": True, "meter": False},
    "all": {"sanitize": True, "meter": True},
}
"""What is switched on; bounds and alignment are always checked."""

Arrays = list[npt.NDArray[Any] | int]


@dataclass(frozen=True)
class Benchmark:
    """
    A kernel with its launch; `origin` says who wrote the PTX.

    `make` gives the arguments. `limit` is the time in seconds that a user was promised, if any.
    """

    name: str
    origin: str
    file: str
    kernel: str
    grid: tuple[int, ...]
    block: int
    smem: int
    make: Callable[[np.random.Generator], Arrays]
    limit: float | None = None


def _normal(rng: np.random.Generator, *shape: int) -> npt.NDArray[Any]:
    return (rng.standard_normal(shape) / 8).astype(np.float16)


def _rms_norm(rng: np.random.Generator) -> Arrays:
    return [_normal(rng, 8, 4096), _normal(rng, 4096, 4096), np.zeros((8, 4096), np.float16)]


def _attention(rng: np.random.Generator) -> Arrays:
    q, kt, v = _normal(rng, 2, 8, 128), _normal(rng, 2, 128, 8192), _normal(rng, 2, 8192, 128)
    return [q, kt, v, np.zeros((2, 8, 128), np.float32), np.zeros((2, 8), np.float32), 8192]


def _matmul(rng: np.random.Generator) -> Arrays:
    out = np.zeros((512, 512), np.float32)
    return [_normal(rng, 512, 512), _normal(rng, 512, 512), out, 512, 512, 512]


def _softmax(rng: np.random.Generator) -> Arrays:
    x = rng.standard_normal((512, 1000)).astype(np.float32)
    return [np.zeros_like(x), x, 1000, 1000, 512, 1000, 0, 0]


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        "rms_norm n=8 d=4096",
        "Prism",
        "rms_norm.ptx",
        "rms_norm__g5_k0",
        (128,),
        256,
        53408,
        _rms_norm,
        5.0,
    ),
    Benchmark(
        "attention b=2 h=8192",
        "nvcc",
        "attention.ptx",
        "attention",
        (32, 2),
        128,
        2 * (128 * 72 + 64 * 136) * 2,
        _attention,
        20.0,
    ),
    Benchmark("matmul 512^3", "nvcc", "mma.ptx", "mma", (8, 8), 128, 0, _matmul),
    Benchmark(
        "softmax 512 x 1000", "Triton", "softmax_sm80.ptx", "softmax", (128,), 128, 4112, _softmax
    ),
)


def run(arguments: argparse.Namespace) -> int:
    """Prints, and with --output writes, the seconds and thread-instructions per second."""
    rows = [measure(benchmark) for benchmark in BENCHMARKS]
    result = {
        "machine": f"{os.cpu_count()} cores, {_processor()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "benchmarks": rows,
    }
    if arguments.output is not None:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=2) + "\n")
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        header = ("kernel", "thread-instr.", "bare s", "sanitizer s", "all s", "M instr./s", "bare")
        print(
            table(
                header,
                [
                    (
                        row["name"],
                        row["thread_instructions"],
                        *(round(row["seconds"][mode], 3) for mode in MODES),
                        round(row["instructions_per_second"] / 1e6, 1),
                        round(row["instructions_per_second_bare"] / 1e6, 1),
                    )
                    for row in rows
                ],
            )
        )
    return 0 if all(row["within_limit"] for row in rows) else 1


def measure(benchmark: Benchmark) -> dict[str, Any]:
    """The best of several runs in each mode; the PTX is parsed once, outside the time."""
    seconds: dict[str, float] = {}
    report = Report()
    for mode, options in MODES.items():
        times: list[float] = []
        for _ in range(REPEATS):
            taken, report = _launch(benchmark, options)
            times.append(taken)
        seconds[mode] = min(times)
    total = report.total_instructions
    return {
        "name": benchmark.name,
        "origin": benchmark.origin,
        "thread_instructions": total,
        "seconds": {mode: round(value, 4) for mode, value in seconds.items()},
        "sanitizer_over_bare": round(seconds["sanitizer"] / seconds["bare"], 2),
        "all_over_bare": round(seconds["all"] / seconds["bare"], 2),
        "instructions_per_second": round(total / seconds["all"]),
        "instructions_per_second_bare": round(total / seconds["bare"]),
        "limit_seconds": benchmark.limit,
        "within_limit": benchmark.limit is None or seconds["all"] <= benchmark.limit,
        "dram_read_bytes": report.dram_read_bytes,
        "bank_conflicts": report.bank_conflicts,
    }


def _processor() -> str:
    """The processor's model where the system names it, else its architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def _launch(benchmark: Benchmark, options: dict[str, bool]) -> tuple[float, Report]:
    simulator = Simulator(**options)
    text = files("prism.simulator").joinpath("benchmarks", benchmark.file).read_text()
    kernel = simulator.load(text, benchmark.file)[benchmark.kernel]
    rng = np.random.default_rng(0)
    args = [
        simulator.alloc(value) if isinstance(value, np.ndarray) else value
        for value in benchmark.make(rng)
    ]
    start = time.perf_counter()
    report = kernel.launch(benchmark.grid, benchmark.block, args, benchmark.smem)
    return time.perf_counter() - start, report
