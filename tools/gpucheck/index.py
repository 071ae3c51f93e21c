"""`index.json` beside bundles: each configuration asked for, with its bundle or why it has none."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from prism.errors import PrismError
from prism.runtime.schema import SchemaError, decode

INDEX_FILE = "index.json"
MAX_INDEX_BYTES = 1 << 20


@dataclass(frozen=True)
class Configuration:
    """A workload at a shape for a target; `bundle` is a directory, or `reason` says why not."""

    workload: str
    shape: dict[str, int]
    target: str
    bundle: str | None
    reason: str | None


@dataclass(frozen=True)
class Index:
    """What `make gpu-bundles` was asked for."""

    configurations: tuple[Configuration, ...]


def read_index(folder: Path) -> Index:
    """The index of a directory, empty if it has none; raises `PrismError` if it is no index."""
    path = folder / INDEX_FILE
    if not path.is_file():
        return Index(())
    with path.open("rb") as file:
        data = file.read(MAX_INDEX_BYTES)
    try:
        return decode(Index, cast(object, json.loads(data)))
    except (SchemaError, ValueError, RecursionError) as error:
        raise PrismError(f"{path}: not an index of bundles: {error}") from error


def write_index(folder: Path, configurations: Sequence[Configuration]) -> None:
    """Write the index of a directory."""
    text = json.dumps(asdict(Index(tuple(configurations))), indent=2)
    (folder / INDEX_FILE).write_text(text + "\n", encoding="utf-8")
