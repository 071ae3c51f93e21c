"""
Prepares bundles for `tools/gpu_check`: the paper's ten configurations, for a target.

    .venv/bin/python tools/gpu_bundles.py [--target sm_90 ...] [-o build/gpu]

A configuration that cannot be compiled is left out with the reason, which `index.json` keeps.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gpucheck.index import Configuration, write_index

from prism.runtime.bundle import is_bundle

ROOT = Path(__file__).resolve().parents[1]


MAX_BYTES = 32 * 1024 * 1024
TIME_LIMIT_S = 120

REFUSALS = (1, 2)
"""The statuses of `prism` for what it cannot do; any other is a bug, not a reason to skip."""

CONFIGURATIONS: tuple[tuple[str, dict[str, int]], ...] = (
    ("rms_norm", {"n": 8, "d": 4096}),
    ("rms_norm", {"n": 8, "d": 1024}),
    ("rms_norm_mlp", {"n": 8, "d": 1024}),
    ("rms_norm_mlp", {"n": 16, "d": 1024}),
    ("swiglu", {"n": 8, "d": 4096}),
    ("swiglu", {"n": 16, "d": 4096}),
    ("attention", {"b": 2, "g": 8, "h": 8192}),
    ("attention", {"b": 2, "g": 8, "h": 16384}),
    ("qk_norm_attention", {"b": 2, "g": 8, "h": 8192}),
    ("qk_norm_attention", {"b": 2, "g": 8, "h": 16384}),
)
"""The paper's shapes; attention with its 8 heads folded into rows and keys."""


def prepare(workload: str, shape: dict[str, int], target: str, folder: Path) -> Configuration:
    """Compile one configuration to a bundle in `folder`."""
    sizes = ",".join(f"{name}={size}" for name, size in shape.items())
    name = f"{workload}-{sizes.replace('=', '').replace(',', '-')}-{target}"
    command = [
        str(Path(sys.executable).parent / "prism"),
        "optimize",
        str(ROOT / "examples" / f"{workload}.mlir"),
        *("--shape", sizes, "--target", target),
        *("-o", str(folder / name), "--time-limit", str(TIME_LIMIT_S)),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if run.returncode == 0:
        return Configuration(workload, shape, target, name, None)
    if run.returncode not in REFUSALS:
        raise SystemExit(f"{' '.join(command)} failed:\n{run.stderr}")
    lines = run.stderr.strip().splitlines() or [f"exit status {run.returncode}"]
    return Configuration(workload, shape, target, None, lines[-1].replace(f"{ROOT}/", ""))


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if bundles were made within the size limit, 1 if none was or they are too large."""
    parser = argparse.ArgumentParser(description="Prepare bundles for tools/gpu_check.")
    parser.add_argument("--target", action="append", metavar="sm_90", help="default sm_90")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "gpu")
    parser.add_argument("--workload", action="append", help="only these (default all five)")
    parsed = parser.parse_args(arguments)
    folder: Path = parsed.output
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if is_bundle(old):
            shutil.rmtree(old)
    configurations: list[Configuration] = []
    for target in parsed.target or ["sm_90"]:
        for workload, shape in CONFIGURATIONS:
            if parsed.workload and workload not in parsed.workload:
                continue
            made = prepare(workload, shape, target, folder)
            print(f"{workload} {shape} {target}: {made.bundle or f'skipped: {made.reason}'}")
            configurations.append(made)
    write_index(folder, configurations)
    nbytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    count = sum(each.bundle is not None for each in configurations)
    print(f"{count} of {len(configurations)} bundles in {folder}, {nbytes / 2**20:.2f} MiB")
    if nbytes > MAX_BYTES:
        print(f"error: more than {MAX_BYTES // 2**20} MiB", file=sys.stderr)
        return 1
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
