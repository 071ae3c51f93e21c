"""The workloads that the search is tested on, as terms and as IR."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser

from prism.dialects.kernel import Kernel
from prism.dialects.sym import Sym
from prism.dialects.threadblock import Threadblock

ROOT = Path(__file__).parents[3]


def _context() -> Context:
    found = Context()
    for dialect in (Builtin, Func, Sym, Kernel, Threadblock):
        found.load_dialect(dialect)
    return found


def _parse(text: str) -> ModuleOp:
    module = Parser(_context(), text).parse_module()
    module.verify()
    return module


def _example(name: str) -> ModuleOp:
    return _parse((ROOT / "examples" / f"{name}.mlir").read_text())


def _run_passes(module: ModuleOp, *names: str, reparse: bool = False) -> ModuleOp:
    """Runs search passes in order; with `reparse` through printed text between them."""
    from prism.universe import PRISM_UNIVERSE

    for name in names:
        pass_type = PRISM_UNIVERSE.all_passes[name]()
        pass_type().apply(_context(), module)
        module.verify()
        if reparse:
            module = _parse(str(module))
    return module


@pytest.fixture(scope="session")
def reference():
    """The graphs that the public implementation of the paper found (its `about` says how to read them)."""
    return json.loads((Path(__file__).parent / "reference_graphs.json").read_text())["workloads"]


@pytest.fixture(scope="session")
def parse() -> Callable[[str], ModuleOp]:
    """Reads a verified module from text."""
    return _parse


@pytest.fixture(scope="session")
def example() -> Callable[[str], ModuleOp]:
    """Reads a workload of `examples/` by name."""
    return _example


@pytest.fixture(scope="session")
def run_passes() -> Callable[..., ModuleOp]:
    """Runs passes on a module, with `reparse` through printed text between them."""
    return _run_passes
