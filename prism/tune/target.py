"""GPU targets: one TOML file each in `prism/tune/targets`, and never an `if` in code."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import cast

from prism.errors import PrismError

_DIRECTORY = Path(__file__).with_name("targets")
_MAX_FILE_BYTES = 65_536


class UnknownTargetError(PrismError):
    """No target file has the name that was asked for."""


class TargetFileError(PrismError):
    """A target file lacks an entry or has one of the wrong type."""


@dataclass(frozen=True)
class Target:
    """What Prism knows about one GPU; units stand in the names, sources in the TOML files."""

    name: str
    card: str
    compute_capability: tuple[int, int]
    ptx_version: str
    sm_count: int
    clock_hz: int
    dram_bytes_per_second: int
    l2_bytes: int
    f16_tensor_flops: int
    max_shared_bytes_per_block: int
    """Dynamic shared memory with opt-in; more than `max_static_shared_bytes` must be dynamic."""
    max_static_shared_bytes: int
    shared_bytes_per_sm: int
    reserved_shared_bytes_per_block: int
    registers_per_sm: int
    max_registers_per_thread: int
    max_threads_per_block: int
    max_threads_per_sm: int
    max_blocks_per_sm: int
    max_grid: tuple[int, int, int]


def target_names() -> tuple[str, ...]:
    """The names of all targets, by compute capability."""
    names = (path.stem for path in _DIRECTORY.glob("*.toml"))
    return tuple(sorted(names, key=lambda name: (len(name), name)))


def load_target(name: str) -> Target:
    """
    Read the target `name`, e.g. `sm_80`.

    Raises `UnknownTargetError`, whose message lists the names that exist.
    """
    names = target_names()
    if name not in names:
        raise UnknownTargetError(f"unknown target '{name}' (known: {', '.join(names)})")
    return read_target(_DIRECTORY / f"{name}.toml")


def read_target(path: Path) -> Target:
    """Read a target file; raises `TargetFileError` on anything but exactly the known entries."""
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise TargetFileError(f"{path}: target file larger than {_MAX_FILE_BYTES} bytes")
    try:
        table = cast(dict[str, object], tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TargetFileError(f"{path}: {error}") from error
    expected = {field.name: field.type for field in fields(Target) if field.name != "name"}
    if table.keys() != expected.keys():
        wrong = ", ".join(sorted(table.keys() ^ expected.keys()))
        raise TargetFileError(f"{path}: missing or unknown entries: {wrong}")
    values: dict[str, object] = {"name": path.stem}
    for key, kind in expected.items():
        values[key] = _convert(path, key, kind, table[key])
    return cast(Callable[..., Target], Target)(**values)


def _convert(path: Path, key: str, kind: object, value: object) -> object:
    if kind is str and isinstance(value, str):
        return value
    if kind is int and type(value) is int and value > 0:
        return value
    if isinstance(value, list):
        items = tuple(cast(list[object], value))
        arity = {tuple[int, int]: 2, tuple[int, int, int]: 3}.get(cast(type, kind))
        if len(items) == arity and all(type(item) is int and item >= 0 for item in items):
            return items
    raise TargetFileError(f"{path}: entry '{key}' has the value {value!r}, which is not a {kind}")
