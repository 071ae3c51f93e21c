"""Candidates of the examples, searched and verified once."""

from functools import cache
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from prism.cli.environment import make_context
from prism.passes.superoptimize import SuperoptimizePass

EXAMPLES = Path(__file__).parents[3] / "examples"


@cache
def context() -> Context:
    return make_context()


@cache
def _proven(name: str) -> ModuleOp:
    text = (EXAMPLES / f"{name}.mlir").read_text()
    module = Parser(context(), text).parse_module()
    SuperoptimizePass().apply(context(), module)
    return module


def proven(name: str) -> ModuleOp:
    """The module of an example with its proven candidates, to change at will."""
    return _proven(name).clone()
