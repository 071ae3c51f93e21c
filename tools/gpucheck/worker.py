"""
The process that touches the GPU: one JSON object a line for each bundle, to a pipe of its parent.

A kernel that goes wrong can take the CUDA context with it, or never end; the parent then starts a
new worker for the bundles that are left.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO, cast

from prism.errors import PrismError
from prism.runtime.bundle import Bundle, BundleError, load_bundle
from prism.runtime.check import compare, decode_inputs, draw_inputs, tolerance
from prism.runtime.launch import run_bundle
from prism.runtime.loaded import LoadedBundle
from prism.runtime.reference import reference_outputs

from .timing import capture, copies_for, copy_bandwidth, time_graph
from .torch_arrays import float64_outputs, to_storage, to_torch, torch_function

COPY_BYTES = 1 << 30
MEMORY_SHARE = 4
"""Copies of inputs take at most one part in `MEMORY_SHARE` of the free device memory."""

Row = dict[str, Any]


def find_torch() -> ModuleType | None:
    """torch, or None if it is not installed."""
    try:
        return import_module("torch")
    except ImportError:
        return None


class Simulated:
    """The dry run: kernels in the simulator, no times."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._torch: Any = find_torch()

    def machine(self) -> Row:
        """What the rows were measured on."""
        torch = self._torch
        return {
            "launch": "simulator",
            "gpu": None,
            "torch": None if torch is None else str(torch.__version__),
            "copy_bytes_per_s": None,
        }

    def kernels(self, bundle: Bundle) -> Row:
        """Check a bundle against float64, by torch where it is installed, else by numpy."""
        manifest = bundle.manifest
        inputs = draw_inputs(manifest, self._seed)
        result = run_bundle(bundle, inputs)
        if self._torch is None:
            references = reference_outputs(manifest, decode_inputs(manifest, inputs))
        else:
            tensors = [
                to_torch(self._torch, e.dtype, inputs[e.name], "cpu") for e in manifest.inputs
            ]
            references = float64_outputs(self._torch, manifest.program, tensors)
        outputs = [result.outputs[entry.name] for entry in manifest.outputs]
        row = judge(bundle, outputs, references, result.changed_inputs)
        return {**row, "image": "ptx", "reference": "numpy" if self._torch is None else "torch"}

    def compiled(self, bundle: Bundle) -> Row:
        """Without a GPU there is nothing to time."""
        return {}


class OnGpu:
    """The GPU: kernels launched through cuda.core on torch's stream, times by CUDA events."""

    def __init__(self, seed: int) -> None:
        torch = find_torch()
        if torch is None:
            raise PrismError("torch is not installed on this machine")
        self._torch = cast(Any, torch)
        self._seed = seed
        if not self._torch.cuda.is_available():
            raise PrismError("torch sees no GPU on this machine")
        self._properties = self._torch.cuda.get_device_properties(0)

    def machine(self) -> Row:
        """What the rows were measured on, with the bandwidth of a copy in device memory."""
        torch, properties = self._torch, self._properties
        free, _ = torch.cuda.mem_get_info()
        nbytes = min(COPY_BYTES, int(free) // (2 * MEMORY_SHARE))
        return {
            "launch": "cuda.core",
            "gpu": str(properties.name),
            "compute_capability": [int(properties.major), int(properties.minor)],
            "l2_bytes": self._l2_bytes(),
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda),
            "copy_bytes_per_s": copy_bandwidth(torch, nbytes),
        }

    def kernels(self, bundle: Bundle) -> Row:
        """Check a bundle against torch in float64; if it is right, time it and torch eager."""
        torch, manifest = self._torch, bundle.manifest
        loaded = LoadedBundle(bundle)
        inputs = self._inputs(bundle)
        given = [tensor.clone() for tensor in inputs]
        outputs = self._poisoned(bundle)
        loaded(*inputs, out=outputs)
        torch.cuda.synchronize()
        references = float64_outputs(torch, manifest.program, given)
        changed = tuple(
            entry.name
            for entry, tensor, before in zip(manifest.inputs, inputs, given, strict=True)
            if not torch.equal(tensor, before)
        )
        row = judge(bundle, [to_storage(torch, o) for o in outputs], references, changed)
        row["reference"] = "torch"
        row["image"] = "cubin" if self._capability[0] == manifest.compute_capability[0] else "ptx"
        if not row["ok"]:
            return row
        copies = self._copies(bundle, inputs)
        targets = [self._poisoned(bundle) for _ in copies]
        pairs = zip(copies, targets, strict=True)
        graph = capture(torch, [partial(loaded, *copy, out=out) for copy, out in pairs])
        timing = time_graph(torch, graph)
        # What was timed must be right too: every output is poisoned and written by one more replay.
        for output in chain(*targets):
            output.fill_(float("nan"))
        graph.graph.replay()
        torch.cuda.synchronize()
        for target in targets:
            again = judge(bundle, [to_storage(torch, t) for t in target], references, ())
            if not again["ok"]:
                return {**again, "error": "wrong in a replayed graph"}
        eager = torch_function(torch, manifest.program)
        return {
            **row,
            "prism": asdict(timing),
            "eager": self._time([partial(eager, *copy) for copy in copies]),
        }

    def compiled(self, bundle: Bundle) -> Row:
        """Time `torch.compile` of the workload."""
        torch = self._torch
        function = torch.compile(
            torch_function(torch, bundle.manifest.program), fullgraph=True, dynamic=False
        )
        copies = self._copies(bundle, self._inputs(bundle))
        return {"compile": self._time([partial(function, *copy) for copy in copies])}

    @property
    def _capability(self) -> tuple[int, int]:
        return int(self._properties.major), int(self._properties.minor)

    def _l2_bytes(self) -> int:
        return int(getattr(self._properties, "L2_cache_size", 0)) or 64 << 20

    def _inputs(self, bundle: Bundle) -> list[Any]:
        drawn = draw_inputs(bundle.manifest, self._seed)
        return [
            to_torch(self._torch, entry.dtype, drawn[entry.name], "cuda")
            for entry in bundle.manifest.inputs
        ]

    def _poisoned(self, bundle: Bundle) -> list[Any]:
        """Outputs of NaN: what no kernel writes is seen."""
        types = {
            "f16": self._torch.float16,
            "bf16": self._torch.bfloat16,
            "f32": self._torch.float32,
        }
        return [
            self._torch.full(entry.shape, float("nan"), dtype=types[entry.dtype], device="cuda")
            for entry in bundle.manifest.outputs
        ]

    def _copies(self, bundle: Bundle, inputs: Sequence[Any]) -> list[list[Any]]:
        nbytes = sum(entry.nbytes for entry in bundle.manifest.inputs)
        free, _ = self._torch.cuda.mem_get_info()
        count = copies_for(nbytes, self._l2_bytes(), int(free) // MEMORY_SHARE)
        return [list(inputs), *([t.clone() for t in inputs] for _ in range(count - 1))]

    def _time(self, calls: Sequence[Callable[[], object]]) -> Row:
        """A baseline's times, or why torch has none: it must not cost ours."""
        try:
            return asdict(time_graph(self._torch, capture(self._torch, calls)))
        except (RuntimeError, TypeError, ValueError) as error:
            return {"error": " ".join(str(error).split())[:200]}


def judge(
    bundle: Bundle, outputs: Sequence[Any], references: Sequence[Any], changed: Sequence[str]
) -> Row:
    """The verdict on outputs in storage type: the comparison that `prism run` makes."""
    manifest = bundle.manifest
    comparisons = [
        compare(entry, output, reference, tolerance(entry, manifest.inputs))
        for entry, output, reference in zip(manifest.outputs, outputs, references, strict=True)
    ]
    worst = max(comparisons, key=lambda c: c.max_rel_err / c.tolerance)
    row: Row = {
        "ok": all(c.ok for c in comparisons) and not changed,
        "max_abs_err": _finite(max(c.max_abs_err for c in comparisons)),
        "max_rel_err": _finite(worst.max_rel_err),
        "tolerance": worst.tolerance,
    }
    if not row["ok"]:
        nans = sum(c.nan_count for c in comparisons)
        wrong = f"output '{worst.name}' wrong at {list(worst.worst)}, {nans} NaN"
        row["error"] = f"inputs changed: {', '.join(changed)}" if changed else wrong
    return row


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def work(phase: str, paths: Sequence[str], seed: int, dry_run: bool, pipe: TextIO) -> None:
    """Do one phase for each bundle; `pipe` gets the machine first and then a row for each."""

    def send(row: Row) -> None:
        pipe.write(json.dumps(row) + "\n")
        pipe.flush()

    try:
        machine = Simulated(seed) if dry_run else OnGpu(seed)
        send({"machine": machine.machine() if phase == "kernels" else {}})
    except PrismError as error:
        send({"refused": error.message})
        return
    for path in paths:
        try:
            bundle = load_bundle(Path(path))
            row = machine.kernels(bundle) if phase == "kernels" else machine.compiled(bundle)
        except BundleError as error:
            row = {"ok": False, "error": error.message}
        except (PrismError, RuntimeError, ValueError) as error:
            # After a fault the CUDA context is lost: a new worker takes the bundles that are left.
            text = " ".join(str(error).split())[:300]
            send({"path": path, "ok": False, "error": text, "last": True})
            return
        send({"path": path, **row})
