"""
Measures what the README quotes: the search per workload, and the kernels of the acceptance shapes.

    .venv/bin/python tools/bench.py [-o bench/results/spine.json]

Search seconds are of one process after imports, the best of five; kernels run in the simulator,
whose counts do not depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import PassPipeline
from xdsl.universe import Universe

from prism.dialects.kernel import CANDIDATE_OF, VERDICT, VerdictAttr

ROOT = Path(__file__).parents[1]
SEARCH = ("prism-generate", "prism-prune", "prism-instantiate-maps", "prism-verify")
WORKLOADS = ("matmul", "rms_norm", "swiglu", "rms_norm_mlp")
PAPER_SECONDS = {"rms_norm": 0.3, "swiglu": 1.0, "rms_norm_mlp": 871.0}
"""The paper's Table 2, on 96 threads."""

KERNELS = (
    ("matmul", "n=64,k=512,m=256"),
    ("matmul", "n=7,k=1000,m=130"),
    ("rms_norm", "n=8,d=4096"),
    ("rms_norm", "n=1,d=1024"),
    ("rms_norm_mlp", "n=16,d=1024"),
    ("swiglu", "n=16,d=1024"),
)
TARGETS = ("sm_80", "sm_90")
REPEATS = 5


def parse(path: Path) -> tuple[Context, ModuleOp]:
    """A workload's module with a context that knows all dialects."""
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    return context, Parser(context, path.read_text(), str(path)).parse_module()


def search_once(workload: str) -> tuple[dict[str, float], dict[str, int]]:
    """Seconds of each pass, and how many candidates have each verdict."""
    context, module = parse(ROOT / "examples" / f"{workload}.mlir")
    seconds: dict[str, float] = {}
    for name in SEARCH:
        pipeline = PassPipeline.parse_spec(Universe.get_multiverse().all_passes, name)
        start = time.perf_counter()
        pipeline.apply(context, module)
        seconds[name] = time.perf_counter() - start
    verdicts: dict[str, int] = {}
    for op in module.ops:
        if isinstance(op, func.FuncOp) and CANDIDATE_OF in op.attributes:
            verdict = op.attributes[VERDICT]
            assert isinstance(verdict, VerdictAttr)
            verdicts[verdict.data.kind] = verdicts.get(verdict.data.kind, 0) + 1
    return seconds, verdicts


def search_row(workload: str) -> dict[str, Any]:
    """The best of several searches of a workload; one before it pays the imports."""
    search_once(workload)
    runs = [search_once(workload) for _ in range(REPEATS)]
    seconds, verdicts = min(runs, key=lambda run: sum(run[0].values()))
    return {
        "workload": workload,
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "seconds_in_all": round(sum(seconds.values()), 4),
        "verdicts": verdicts,
        "paper_seconds": PAPER_SECONDS.get(workload),
    }


def command(*arguments: str) -> dict[str, Any]:
    """The JSON that a `prism` command prints."""
    prism = str(Path(sys.executable).parent / "prism")
    run = subprocess.run(
        [prism, *arguments, "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PRISM_DB": "none"},
    )
    return json.loads(run.stdout)


def kernel_row(workload: str, shape: str, target: str, folder: str) -> dict[str, Any]:
    """A workload optimized for a shape and a target, and its kernels run in the simulator."""
    bundle = str(Path(folder) / f"{workload}-{shape}-{target}".replace("=", "").replace(",", "-"))
    source = f"examples/{workload}.mlir"
    optimized = command("optimize", source, "--shape", shape, "--target", target, "-o", bundle)
    ran = command("run", bundle)
    moved = sum(k["global_read_bytes"] + k["global_write_bytes"] for k in ran["kernels"])
    floor = sum(k["floor_bytes"] for k in ran["kernels"])
    return {
        "workload": workload,
        "shape": shape,
        "target": target,
        "ok": ran["ok"],
        "max_abs_err": ran["max_abs_err"],
        "tolerance": ran["tolerance"],
        "moved_over_floor": round(moved / floor, 4),
        "chosen": optimized["chosen"],
        "kernels": [
            {key: k[key] for key in ("name", "grid", "block", "smem_bytes", "registers")}
            for k in optimized["kernels"]
        ],
        "stages": optimized["stages"],
    }


def main() -> None:
    """Runs all measurements and writes them as JSON."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("-o", "--output", type=Path, default=None)
    output: Path | None = arguments.parse_args().output
    with tempfile.TemporaryDirectory() as folder:
        result: dict[str, Any] = {
            "machine": f"{os.cpu_count()} CPU cores, {platform.machine()}, no GPU",
            "python": platform.python_version(),
            "search": [search_row(workload) for workload in WORKLOADS],
            "kernels": [
                kernel_row(workload, shape, target, folder)
                for workload, shape in KERNELS
                for target in TARGETS
            ],
        }
    text = json.dumps(result, indent=2) + "\n"
    if output is None:
        print(text, end="")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text)
    for row in result["search"]:
        print(f"{row['workload']:14} {row['seconds_in_all']:.3f} s  {row['verdicts']}")
    for row in result["kernels"]:
        name = f"{row['workload']:14} {row['shape']:18} {row['target']}"
        print(f"{name}  ok={row['ok']}  bytes moved over the floor: {row['moved_over_floor']}")


if __name__ == "__main__":
    main()
