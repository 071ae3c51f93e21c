"""Functions of MLIR text and of the examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func, FuncOp
from xdsl.parser import Parser

from prism.dialects.kernel import Kernel
from prism.dialects.sym import Sym
from prism.dialects.threadblock import Threadblock

EXAMPLES = Path(__file__).parents[3] / "examples"


def parse_module(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, Sym, Kernel, Threadblock):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def functions_of(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


@pytest.fixture(scope="session")
def functions() -> Callable[[str], dict[str, FuncOp]]:
    """The verified functions of a text by name."""
    return lambda text: functions_of(parse_module(text))


@pytest.fixture(scope="session")
def example() -> Callable[[str], FuncOp]:
    """A workload of `examples/` by its name."""
    return lambda name: functions_of(parse_module((EXAMPLES / f"{name}.mlir").read_text()))[name]
