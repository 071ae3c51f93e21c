"""`prism run`: a bundle, or a workload for a shape, on random inputs against float64."""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism.cli.compile import only_workload
from prism.cli.environment import make_context
from prism.cli.optimize import compile_to_bundle
from prism.cli.source import Source, parse_text, read_source
from prism.cli.table import fields, human_bytes, table
from prism.errors import PrismError
from prism.runtime.bundle import Bundle, BundleError, is_ranged, load_bundle
from prism.runtime.check import Comparison, compare, decode_inputs, draw_inputs, tolerance
from prism.runtime.cuda_core import require_driver
from prism.runtime.launch import KernelFaultError, KernelRun, Run, run_bundle
from prism.runtime.ranged import RangedBundle, load_ranged
from prism.tune.bindings import parse_bindings

MAX_ELEMENTS = 2**28
"""Elements of all tensors together that a check may hold, in float64: 2 GiB."""


def run(arguments: argparse.Namespace) -> int:
    """Run `arguments.path`, a bundle directory or an MLIR file, and check its outputs."""
    path = Path(arguments.path)
    if arguments.backend == "cuda":
        # Before anything is compiled: the answer does not depend on it.
        require_driver()
    if is_ranged(path):
        return _run_ranged(load_ranged(path), arguments)
    if path.is_dir():
        if arguments.shape is not None:
            raise PrismError("--shape is for MLIR files: a bundle has its shape already")
        return run_checked(load_bundle(path), arguments)
    source = read_source(path, make_context())
    with tempfile.TemporaryDirectory(prefix="prism-run-") as directory:
        bundle = compile_to_bundle(source, arguments, Path(directory) / "bundle")
        return run_checked(bundle, arguments)


def _run_ranged(bundle: RangedBundle, arguments: argparse.Namespace) -> int:
    """Run the size of `--shape`, or without it the ends of every section."""
    if arguments.shape is not None:
        sizes = parse_bindings(arguments.shape, "--shape")
        return run_checked(bundle.at(sizes), arguments)
    outcomes: list[Outcome] = []
    for size in bundle.ends:
        outcome = check(bundle.bundles[size], arguments)
        if not arguments.json:
            _show(outcome, arguments)
            print()
        outcomes.append(outcome)
    ok = all(outcome.ok for outcome in outcomes)
    if arguments.json:
        shapes = [{"shape": each.shape, **each.data} for each in outcomes]
        print(json.dumps({"ok": ok, "shapes": shapes}, indent=2))
    else:
        ends = ", ".join(map(str, bundle.ends))
        print(f"{bundle.dispatch.symbol}={ends}: {'ok' if ok else 'FAILED'}")
    return 0 if ok else 1


@dataclass(frozen=True)
class Outcome:
    """What came of one bundle: to read, as JSON, and for standard error."""

    ok: bool
    shape: dict[str, int]
    data: dict[str, Any]
    text: str
    fault: str | None = None


def run_checked(bundle: Bundle, arguments: argparse.Namespace) -> int:
    """Run a bundle on seeded inputs; print the report; 0 if every output is right, else 1."""
    outcome = check(bundle, arguments)
    _show(outcome, arguments)
    return 0 if outcome.ok else 1


def _show(outcome: Outcome, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(json.dumps(outcome.data, indent=None if outcome.fault else 2))
    elif outcome.fault is None:
        print(outcome.text)
    if outcome.fault is not None:
        print(outcome.fault, file=sys.stderr)


def check(bundle: Bundle, arguments: argparse.Namespace) -> Outcome:
    """Run a bundle on seeded inputs and compare it with float64."""
    manifest = bundle.manifest
    elements = sum(entry.elements for entry in manifest.buffers.values())
    if elements > MAX_ELEMENTS:
        raise PrismError(
            f"{bundle.path}: its tensors have {elements} elements; "
            f"a check against float64 takes at most {MAX_ELEMENTS}"
        )
    inputs = draw_inputs(manifest, arguments.seed)
    try:
        result = run_bundle(bundle, inputs, arguments.backend)
    except KernelFaultError as error:
        data = {"ok": False, "backend": arguments.backend, "error": str(error)}
        return Outcome(False, manifest.shape, data, "", f"{bundle.path}: error: {error}")
    references = reference_outputs(bundle, [*decode_inputs(manifest, inputs)])
    comparisons = [
        compare(entry, result.outputs[entry.name], reference, tolerance(entry, manifest.inputs))
        for entry, reference in zip(manifest.outputs, references, strict=True)
    ]
    ok = all(comparison.ok for comparison in comparisons) and not result.changed_inputs
    return Outcome(
        ok,
        manifest.shape,
        as_json(ok, result, comparisons),
        report(ok, bundle, result, comparisons),
    )


def reference_outputs(bundle: Bundle, inputs: Sequence[Any]) -> list[Any]:
    """The float64 outputs of the bundle's workload; raises `BundleError` if they do not fit it."""
    from prism.verify.evaluate import evaluate_function

    manifest = bundle.manifest
    path = bundle.path / "workload.mlir"
    module = parse_text(str(path), bundle.workload_text, make_context())
    workload = only_workload(Source(path, bundle.workload_text, module))
    if workload.sym_name.data != manifest.workload:
        raise BundleError(f"{path}: expected the workload @{manifest.workload}")
    outputs = evaluate_function(workload, inputs, manifest.shape)
    shapes = [output.shape for output in outputs]
    if shapes != [entry.shape for entry in manifest.outputs]:
        raise BundleError(f"{path}: its results differ from the manifest's outputs")
    return list(outputs)


def as_json(ok: bool, result: Run, comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """The JSON of `prism run`; infinite errors (a NaN was found) are null."""
    return {
        "ok": ok,
        "backend": result.backend,
        "max_abs_err": _finite(max(c.max_abs_err for c in comparisons)),
        "max_rel_err": _finite(max(c.max_rel_err for c in comparisons)),
        "tolerance": max(c.tolerance for c in comparisons),
        "outputs": [
            {
                "name": c.name,
                "ok": c.ok,
                "max_abs_err": _finite(c.max_abs_err),
                "max_rel_err": _finite(c.max_rel_err),
                "tolerance": c.tolerance,
                "nan_count": c.nan_count,
            }
            for c in comparisons
        ],
        "changed_inputs": list(result.changed_inputs),
        "kernels": [
            {
                "name": kernel.name,
                "instructions": kernel.counts.instructions,
                "instructions_by_kind": kernel.counts.instructions_by_kind,
                "global_read_bytes": kernel.counts.global_read_bytes,
                "global_write_bytes": kernel.counts.global_write_bytes,
                "dram_read_bytes": kernel.counts.dram_read_bytes,
                "dram_write_bytes": kernel.counts.dram_write_bytes,
                "floor_bytes": kernel.floor_bytes,
            }
            for kernel in result.kernels
        ],
    }


def report(ok: bool, bundle: Bundle, result: Run, comparisons: Sequence[Comparison]) -> str:
    """The same to read; its last line is `ok` or `FAILED`."""
    manifest = bundle.manifest
    shape = ", ".join(f"{name}={size}" for name, size in manifest.shape.items())
    parts = [
        fields(
            {
                "workload": f"{manifest.workload} ({manifest.graph.name})",
                "shape": shape,
                "target": manifest.target,
                "backend": result.backend,
            }
        )
    ]
    launches = [
        (
            kernel.name,
            "-" if kernel.counts.instructions is None else f"{kernel.counts.instructions:,}",
            *_moved(kernel),
            human_bytes(kernel.floor_bytes),
        )
        for kernel in result.kernels
    ]
    header = ("kernel", "instructions", "requested / floor", "sectors / floor", "floor")
    parts.append(table(header, launches))
    rows = [
        (
            c.name,
            f"{c.max_abs_err:.3g}",
            f"{c.max_rel_err:.3g}",
            f"{c.tolerance:.3g}",
            "ok" if c.ok else f"wrong at {list(c.worst)}, {c.nan_count} NaN",
        )
        for c in comparisons
    ]
    parts.append(table(("output", "max abs err", "max rel err", "tolerance", "verdict"), rows))
    if result.changed_inputs:
        parts.append(f"inputs changed by the kernels: {', '.join(result.changed_inputs)}")
    return "\n\n".join(parts) + f"\n\n{'ok' if ok else 'FAILED'}"


def _moved(kernel: KernelRun) -> tuple[str, str]:
    """Bytes that the threads asked for, and of the sectors that they touched, over the floor."""
    counts, floor = kernel.counts, kernel.floor_bytes

    def text(read: int | None, written: int | None) -> str:
        if read is None or written is None:
            return "-"
        return f"{human_bytes(read + written)} ({(read + written) / floor:.2f}x)"

    return (
        text(counts.global_read_bytes, counts.global_write_bytes),
        text(counts.dram_read_bytes, counts.dram_write_bytes),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
