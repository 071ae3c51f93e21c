"""`prism sim`: runs a kernel of any PTX file in the simulator and reports what it did."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism.cli.table import fields, human_bytes, table
from prism.errors import JobFailedError, PrismError, SourceLocation

if TYPE_CHECKING:
    from prism.simulator import Kernel, PtxError, Report, SimulatorError

MAX_SOURCE_BYTES = 16 * 1024 * 1024


def run(arguments: argparse.Namespace) -> int:
    """Load, launch, report and save; raises PrismError for bad input, JobFailedError for faults."""
    from prism.cli.sim_arguments import make_arguments
    from prism.simulator import LaunchError, PtxError, Simulator, SimulatorError

    path = Path(arguments.file)
    text = _read(path)
    options: dict[str, Any] = {} if arguments.budget is None else {"budget": arguments.budget}
    simulator = Simulator(sanitize=not arguments.no_sanitizer, meter=True, **options)
    try:
        kernel = _choose(path, simulator.load(text, str(path)), arguments.kernel)
        given = make_arguments(simulator, kernel, arguments.arg, arguments.seed)
        before = [None if argument.buffer is None else argument.data() for argument in given]
        report = kernel.launch(
            arguments.grid,
            arguments.block,
            [a.value for a in given],
            arguments.smem,
            cooperative=arguments.cooperative,
        )
    except PtxError as error:
        raise PrismError(error.message, _place(text, error)) from error
    except LaunchError as error:
        raise PrismError(error.message, SourceLocation(str(path), 1, 1)) from error
    except SimulatorError as error:
        raise JobFailedError(_fault(error), _place(text, error)) from error
    outputs: list[dict[str, Any]] = []
    folder: str | None = arguments.output
    for index, (argument, old) in enumerate(zip(given, before, strict=True)):
        if old is None or argument.data().tobytes() == old.tobytes():
            continue
        saved = None if folder is None else f"arg{index}.npy"
        if folder is not None:
            _save(Path(folder) / f"arg{index}.npy", argument.data())
        outputs.append({"argument": index, "spec": argument.spec, "file": saved})
    if arguments.json:
        print(json.dumps({"kernel": kernel.name, **report.as_dict(), "outputs": outputs}, indent=2))
    else:
        print(_text(kernel, report, outputs))
    return 0


def _read(path: Path) -> str:
    start = SourceLocation(str(path), 1, 1)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        raise PrismError(f"cannot read: {error.strerror}", start) from error
    if len(data) > MAX_SOURCE_BYTES:
        raise PrismError(f"larger than {MAX_SOURCE_BYTES} bytes", start)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PrismError(f"not UTF-8 text: byte 0x{data[error.start]:02x}", start) from error


def _choose(path: Path, kernels: dict[str, Kernel], name: str | None) -> Kernel:
    place = SourceLocation(str(path), 1, 1)
    known = ", ".join(kernels) or "none"
    if name is None and len(kernels) == 1:
        return next(iter(kernels.values()))
    if name is None:
        raise PrismError(f"--kernel is needed: the file has the kernels {known}", place)
    if name not in kernels:
        raise PrismError(f"no kernel '{name}'; the file has {known}", place)
    return kernels[name]


def _place(text: str, error: PtxError | SimulatorError) -> SourceLocation:
    """The first character of the line that an error names."""
    lines = text.split("\n")
    number = error.line or 1
    line = lines[number - 1] if number <= len(lines) else ""
    return SourceLocation(error.file or "", number, len(line) - len(line.lstrip()) + 1)


def _fault(error: SimulatorError) -> str:
    if error.block is None:
        return error.message
    return f"{error.message} (block {error.block}, thread {error.thread})"


def _save(path: Path, data: Any) -> None:
    import numpy as np

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, data, allow_pickle=False)
    except OSError as error:
        raise PrismError(f"cannot write {path}: {error.strerror}") from error


def _text(kernel: Kernel, report: Report, outputs: list[dict[str, Any]]) -> str:
    kinds = sorted({*report.instructions, *report.warp_instructions})
    rows = [
        (kind, report.instructions.get(kind, 0), report.warp_instructions.get(kind, 0))
        for kind in kinds
    ]
    loop = "none"
    if report.loop_line:
        loop = (
            f"line {report.loop_line}: {report.loop_instructions} instructions, "
            f"{report.loop_chain} on the longest chain"
        )
    summary = fields(
        {
            "kernel": kernel.name,
            "thread instructions": f"{report.total_instructions}",
            "global read": f"{human_bytes(report.global_read_bytes)} asked for, "
            f"{report.global_read_sectors} sectors, {human_bytes(report.dram_read_bytes)} distinct",
            "global written": f"{human_bytes(report.global_write_bytes)} asked for, "
            f"{report.global_write_sectors} sectors, "
            f"{human_bytes(report.dram_write_bytes)} distinct",
            "coalescing": f"{report.coalescing:.2f} bytes asked for per byte of sectors",
            "16-byte accesses": f"{100 * report.wide_share:.0f}% of the bytes",
            "shared wavefronts": f"{report.shared_wavefronts}, "
            f"{report.bank_conflicts} of them bank conflicts",
            "mma": f"{report.mma_flops} FLOPs",
            "barriers": f"{report.barriers}",
            "in flight per block": f"{human_bytes(report.copy_bytes_in_flight)} of copies, "
            f"{human_bytes(report.load_bytes_in_flight)} of loads",
            "hottest loop": loop,
        }
    )
    parts = [summary, table(("instruction", "threads", "warps"), rows)]
    for output in outputs:
        where = "" if output["file"] is None else f" -> {output['file']}"
        parts.append(f"argument {output['argument']} ({output['spec']}) changed{where}")
    return "\n\n".join(parts[:2]) + "".join(f"\n{line}" for line in parts[2:])
