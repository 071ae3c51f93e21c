"""`prism bench codegen`: what the chosen kernels of the paper's configurations move and execute."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from prism.cli.compile import Compilation, Pipeline
from prism.cli.environment import make_context
from prism.cli.pack import pack
from prism.cli.source import read_source
from prism.cli.table import table
from prism.dialects.operator_op import OperatorOp
from prism.dialects.operators import Kind
from prism.dialects.sym import shape_of
from prism.errors import PrismError

if TYPE_CHECKING:
    from prism.runtime.manifest import BufferEntry, Manifest
    from prism.simulator import Buffer, Report

EXAMPLES = Path(__file__).parents[2] / "examples"

CONFIGURATIONS: tuple[tuple[str, str], ...] = (
    ("rms_norm", "n=8,d=4096"),
    ("rms_norm", "n=8,d=1024"),
    ("rms_norm_mlp", "n=8,d=1024"),
    ("rms_norm_mlp", "n=16,d=1024"),
    ("swiglu", "n=8,d=4096"),
    ("swiglu", "n=16,d=4096"),
    ("attention", "b=2,g=8,h=8192"),
    ("attention", "b=2,g=8,h=16384"),
    ("qk_norm_attention", "b=2,g=8,h=8192"),
    ("qk_norm_attention", "b=2,g=8,h=16384"),
)
"""The workloads and shapes that the paper measures."""

TARGETS = ("sm_80", "sm_90")

MOST_OVER_FLOOR = 1.05
"""DRAM bytes over the floor that a kernel may move; `MOST_OVER_FLOOR_SPLIT` if it is several."""

MOST_OVER_FLOOR_SPLIT = 1.15
LEAST_WIDE_SHARE = 0.95
MOST_CONFLICTS = 0.02
MOST_REGISTERS = 168
LEAST_IN_FLIGHT = 32 * 1024
"""Bytes on their way to an SM that hide the latency of DRAM."""


def run(arguments: argparse.Namespace) -> int:
    """Measures every configuration; 1 if a kernel computes something wrong."""
    known = list(dict.fromkeys(workload for workload, _ in CONFIGURATIONS))
    wanted: list[str] = arguments.workload or known
    for name in wanted:
        if name not in known:
            raise PrismError(f"unknown workload '{name}' (known: {', '.join(known)})")
    targets: Sequence[str] = arguments.target or TARGETS
    rows: list[dict[str, Any]] = []
    for name in known:
        if name in wanted:
            shapes = [shape for workload, shape in CONFIGURATIONS if workload == name]
            rows += _rows(name, shapes, targets, arguments.set or "")
    result = {"rows": rows}
    if arguments.output is not None:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2) if arguments.json else _report(rows))
    return 0 if all(row["ok"] for row in rows) else 1


def _rows(
    name: str, shapes: Sequence[str], targets: Sequence[str], overrides: str
) -> Iterator[dict[str, Any]]:
    """The rows of one workload, which is searched once."""
    context = make_context()
    source = read_source(EXAMPLES / f"{name}.mlir", context)
    pipeline = Pipeline(context, source, lambda stage: None)
    searched = pipeline.search().module
    for shape in shapes:
        for target in targets:
            module = searched.clone()
            pipeline.result = Compilation(source, module, _workload(module, source.module))
            compiled = pipeline.compile(shape, target, overrides=overrides)
            yield _row(compiled, shape)


def _workload(module: ModuleOp, original: ModuleOp) -> FuncOp:
    """The workload in a copy of its module."""
    from prism.verify.api import is_candidate

    functions = (op for op in module.ops if isinstance(op, FuncOp))
    for function in functions:
        if not is_candidate(function):
            return function
    raise ValueError(f"no workload in the copy of {original.name}")


@dataclass(frozen=True)
class _Run:
    """What all launches did together, and whether the result is right."""

    reports: list[Report]
    error: float
    ok: bool


def _row(compiled: Compilation, shape: str) -> dict[str, Any]:
    from prism.tune.target import load_target

    manifest, files = pack(compiled)
    choice, target = compiled.choice, load_target(compiled.target)
    assert choice is not None  # by compile
    run = _run(manifest, files, compiled)
    reports = run.reports
    floor = sum(_bytes(each) for each in (*manifest.inputs, *manifest.outputs))
    dram = sum(report.dram_read_bytes + report.dram_write_bytes for report in reports)
    asked = sum(report.global_read_bytes + report.global_write_bytes for report in reports)
    wavefronts = sum(report.shared_wavefronts for report in reports)
    blocks = [math.prod(kernel.grid) for kernel in manifest.kernels]
    resident = min(choice.cost.blocks_per_sm, math.ceil(blocks[0] / target.sm_count))
    in_flight = resident * reports[0].bytes_in_flight
    values: dict[str, Any] = {
        "workload": manifest.workload,
        "shape": shape,
        "target": compiled.target,
        "graph": choice.candidate.sym_name.data,
        "parameters": choice.parameters,
        "dram_bytes": dram,
        "floor_bytes": floor,
        "global_bytes": asked,
        "wide_access_share": round(sum(report.wide_bytes for report in reports) / asked, 4),
        "conflict_share": round(
            sum(report.bank_conflicts for report in reports) / max(1, wavefronts), 4
        ),
        "registers": max(kernel.registers for kernel in manifest.kernels),
        "spill_bytes": max(kernel.spill_bytes for kernel in manifest.kernels),
        "smem_bytes": max(kernel.smem_bytes for kernel in manifest.kernels),
        "blocks_per_sm": choice.cost.blocks_per_sm,
        "bytes_in_flight": in_flight,
        "blocks": max(blocks),
        "instructions": sum(report.total_instructions for report in reports),
        "useful_bytes": floor,
        "flops": _flops(compiled),
        "mma_flops": sum(report.mma_flops for report in reports),
        "max_error": run.error,
        "ok": run.ok,
        # Triton is no dependency of Prism; nobody has installed it where this runs
        "triton": None,
    }
    values["missed"] = missed(values, len(manifest.kernels), target.sm_count)
    return values


def missed(row: dict[str, Any], kernels: int, sm_count: int) -> list[str]:
    """The bars that a row does not reach."""
    most = MOST_OVER_FLOOR if kernels == 1 else MOST_OVER_FLOOR_SPLIT
    bars = {
        "dram_bytes": row["dram_bytes"] <= most * row["floor_bytes"],
        "wide_access_share": row["wide_access_share"] >= LEAST_WIDE_SHARE,
        "conflict_share": row["conflict_share"] <= MOST_CONFLICTS,
        "registers": row["registers"] <= MOST_REGISTERS and row["spill_bytes"] == 0,
        "bytes_in_flight": row["bytes_in_flight"] >= min(LEAST_IN_FLIGHT, row["floor_bytes"]),
        "blocks": row["blocks"] >= sm_count,
    }
    return [name for name, reached in bars.items() if not reached]


def _bytes(buffer: BufferEntry) -> int:
    from prism.runtime.dtypes import ELEMENT_TYPES

    return math.prod(buffer.shape) * ELEMENT_TYPES[buffer.dtype].size


def _run(manifest: Manifest, files: dict[str, bytes], compiled: Compilation) -> _Run:
    """Runs the kernels on random inputs and compares with the workload in float64."""
    import numpy as np

    from prism.runtime.dtypes import ELEMENT_TYPES
    from prism.simulator import Simulator
    from prism.verify.evaluate import evaluate_function

    rng = np.random.default_rng(0)
    simulator = Simulator(sanitize=False, meter=True)
    buffers: dict[str, Buffer] = {}
    inputs: list[Any] = []
    for each in manifest.inputs:
        element = ELEMENT_TYPES[each.dtype]
        stored = element.encode(rng.standard_normal(each.shape) * (each.std or 1.0))
        inputs.append(element.decode(stored))
        buffers[each.name] = simulator.alloc(stored)
    for each in (*manifest.outputs, *manifest.temporaries):
        poison = ELEMENT_TYPES[each.dtype].encode(np.full(each.shape, np.nan))
        buffers[each.name] = simulator.alloc(poison)
    entries = {kernel.name: kernel for kernel in manifest.kernels}
    reports: list[Report] = []
    for step in manifest.steps:
        entry = entries[step.kernel]
        kernel = simulator.load(files[entry.ptx].decode())[entry.name]
        reports.append(
            kernel.launch(
                grid=entry.grid,
                block=entry.block,
                args=[buffers[name] for name in step.arguments],
                dynamic_smem=entry.dynamic_smem,
            )
        )
    expected = evaluate_function(compiled.workload, inputs, compiled.sizes)
    error = 0.0
    for each, wanted in zip(manifest.outputs, expected, strict=True):
        found = ELEMENT_TYPES[each.dtype].decode(buffers[each.name].numpy())
        error = max(error, float(np.abs(found - wanted).max() / np.abs(wanted).max()))
    return _Run(reports, error, error <= MOST_ERROR)


MOST_ERROR = 5e-3
"""Of an output, relative to its largest element: a few roundings to f16 in sums of mixed signs."""


def _flops(compiled: Compilation) -> int:
    """Two for each multiply-add of the workload's products."""
    total = 0
    for op in compiled.workload.walk():
        if isinstance(op, OperatorOp) and op.operator.kind is Kind.MATMUL:
            shapes = [shape_of(value.type) for value in (op.result, op.inputs[0])]
            result, left = ([int(d.evaluate(compiled.sizes)) for d in shape] for shape in shapes)
            total += 2 * math.prod(result) * left[-1]
    return total


def _report(rows: Sequence[dict[str, Any]]) -> str:
    header = (
        "workload",
        "shape",
        "target",
        "graph",
        "DRAM/floor",
        "16-byte",
        "conflicts",
        "regs",
        "KiB in flight",
        "blocks",
        "instr./byte",
        "misses",
    )
    return table(
        header,
        [
            (
                row["workload"],
                row["shape"],
                row["target"],
                row["graph"].partition("__")[2],
                round(row["dram_bytes"] / row["floor_bytes"], 3),
                row["wide_access_share"],
                row["conflict_share"],
                row["registers"],
                round(row["bytes_in_flight"] / 1024, 1),
                row["blocks"],
                round(row["instructions"] / row["useful_bytes"], 3),
                ", ".join(row["missed"]) or ("-" if row["ok"] else "WRONG"),
            )
            for row in rows
        ],
    )
