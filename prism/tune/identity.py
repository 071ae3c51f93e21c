"""What a stored result is of: canonical digests of programs, shapes, and Prism's version."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

from prism.dialects.sym import as_tensor
from prism.verify.digest import program_digest

_PACKAGE = Path(__file__).parents[1]
_DISTRIBUTIONS = ("xdsl", "egglog", "nvidia-nvjitlink")
"""What else decides on a result: the IR, the search and the assembler."""


def workload_digest(workload: FuncOp) -> str:
    """The SHA-256 of what a workload computes; names of the function and its values are no part."""
    return program_digest(workload)


def shape_text(sizes: Mapping[str, int]) -> str:
    """Sizes in one canonical order: `d=4096,n=8`."""
    return ",".join(f"{name}={sizes[name]}" for name in sorted(sizes))


def dtype_text(workload: FuncOp) -> str:
    """The element types of a workload's arguments, each once: `f16`, `f16+f32`."""
    found: set[str] = set()
    for argument in workload.args:
        try:
            found.add(str(as_tensor(argument.type).element_type))
        except VerifyException:
            continue
    return "+".join(sorted(found)) or "none"


@cache
def tool_version() -> str:
    """
    Prism's version with a digest of its sources, targets and the packages that it builds with.

    The version number alone would serve results of older code from a checkout.
    """
    state = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        if path.suffix in (".py", ".toml") and path.is_file():
            data = path.read_bytes()
            state.update(f"{path.relative_to(_PACKAGE).as_posix()}:{len(data)}:".encode())
            state.update(data)
    for name in _DISTRIBUTIONS:
        state.update(f"{name}={version(name)};".encode())
    return f"{version('prism')}+{state.hexdigest()[:16]}"
