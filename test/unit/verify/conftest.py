"""Workloads, their generated candidates and hand-written graphs as functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func, FuncOp
from xdsl.parser import Parser

from prism.dialects.kernel import Kernel
from prism.dialects.sym import Sym
from prism.dialects.threadblock import Threadblock

ROOT = Path(__file__).parents[3]

PRELUDE = """
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!s = tensor<?x1xf16, #sym.shape<[n, 1]>>
!r = tensor<1x?xf16, #sym.shape<[1, d]>>
"""


def _context() -> Context:
    context = Context()
    for dialect in (Builtin, Func, Sym, Kernel, Threadblock):
        context.load_dialect(dialect)
    return context


def _parse(text: str, *, verify: bool = True) -> ModuleOp:
    module = Parser(_context(), text).parse_module()
    if verify:
        module.verify()
    return module


def _functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}


@cache
def _candidates(workload: str, dominated: bool = False) -> tuple[FuncOp, tuple[FuncOp, ...]]:
    from prism.passes.generate import GeneratePass
    from prism.passes.instantiate_maps import InstantiateMapsPass

    module = _parse((ROOT / "examples" / f"{workload}.mlir").read_text())
    for module_pass in (GeneratePass(dominated=dominated), InstantiateMapsPass()):
        module_pass.apply(_context(), module)
    module.verify()
    functions = _functions(module)
    return functions.pop(workload), tuple(functions.values())


@pytest.fixture(scope="session")
def example() -> Callable[[str], FuncOp]:
    """A workload of `examples/` by its name."""
    return lambda name: _functions(_parse((ROOT / "examples" / f"{name}.mlir").read_text()))[name]


@pytest.fixture(scope="session")
def module_of() -> Callable[..., ModuleOp]:
    """The module of a text with the types of `PRELUDE`; `verify=False` skips the verifiers."""
    return lambda text, verify=True: _parse(PRELUDE + text, verify=verify)


@pytest.fixture(scope="session")
def functions() -> Callable[..., dict[str, FuncOp]]:
    """The functions of a text with the types of `PRELUDE`; `verify=False` skips the verifiers."""
    return lambda text, verify=True: _functions(_parse(PRELUDE + text, verify=verify))


@pytest.fixture(scope="session")
def candidates() -> Callable[..., tuple[FuncOp, tuple[FuncOp, ...]]]:
    """A workload and all graphs that the search generates for it, dominated ones on request."""
    return _candidates
