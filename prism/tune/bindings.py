"""Numbers for names: the sizes of a workload (`n=8,d=4096`) and overridden parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NoReturn

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from prism.dialects.operator_op import OperatorOp
from prism.dialects.sym import shape_of
from prism.dialects.sym_expr import SymExpr
from prism.errors import PrismError

MAX_SIZE = 2**31 - 1
MAX_TEXT = 4096

_BINDING = re.compile(r"\s*([A-Za-z_][\w$.]*)\s*=\s*([+-]?[\w.]+)\s*")


class BindingError(PrismError):
    """
    A list of bindings that does not parse, or does not fit the workload.

    `symbol` is the symbol that the message is about, if it is about one.
    """

    def __init__(self, message: str, symbol: str | None = None) -> None:
        super().__init__(message)
        self.symbol = symbol


def parse_bindings(text: str, option: str) -> dict[str, int]:
    """
    Parse `name=integer,...`; `option` names the text in messages.

    Raises `BindingError` for anything else, a repeated name, or an integer over `MAX_SIZE` in
    magnitude. The sign is the caller's to check.
    """

    def fail(position: int, message: str, symbol: str | None = None) -> NoReturn:
        raise BindingError(f"{option}, character {position + 1}: {message}", symbol)

    if len(text) > MAX_TEXT:
        fail(0, f"longer than {MAX_TEXT} characters")
    values: dict[str, int] = {}
    position = 0
    for part in text.split(","):
        match = _BINDING.fullmatch(part)
        if match is None:
            fail(position, f"expected NAME=INTEGER, found '{part.strip()}'")
        name, digits = match.groups()
        try:
            value = int(digits, 10)
        except ValueError:
            fail(
                position + match.start(2),
                f"expected an integer for '{name}', found '{digits}'",
                name,
            )
        if abs(value) > MAX_SIZE:
            fail(position + match.start(2), f"'{name}' is larger than {MAX_SIZE}", name)
        if name in values:
            fail(position, f"'{name}' is given twice", name)
        values[name] = value
        position += len(part) + 1
    return values


def format_bindings(values: Mapping[str, int]) -> str:
    """The text that `parse_bindings` reads back."""
    return ",".join(f"{name}={value}" for name, value in values.items())


def symbols_of(workload: FuncOp) -> tuple[str, ...]:
    """The size symbols that occur in a workload's types and constants, in order of occurrence."""
    found: dict[str, None] = {}

    for kind in _types(workload):
        for size in _shape(kind):
            found.update(dict.fromkeys(sorted(size.symbols())))
    for op in workload.walk():
        if isinstance(op, OperatorOp) and op.constant_value is not None:
            found.update(dict.fromkeys(sorted(op.constant_value.symbols())))
    return tuple(found)


def parse_sizes(text: str, workload: FuncOp, option: str = "--shape") -> dict[str, int]:
    """
    The sizes of all symbols of a workload, from text like `n=8,d=4096`.

    Raises `BindingError` naming the symbol for one without a value, one that the workload does not
    have, a size below 1, or a size expression of the workload that is no positive integer.
    """
    symbols = symbols_of(workload)
    values = parse_bindings(text, option) if text.strip() else {}
    for name, value in values.items():
        if name not in symbols:
            known = ", ".join(symbols) or "none"
            raise BindingError(f"{option} names '{name}', which is no size (sizes: {known})")
        if value < 1:
            raise BindingError(f"{option}: size '{name}' must be positive, found {value}", name)
    for name in symbols:
        if name not in values:
            raise BindingError(f"size '{name}' has no value in {option}", name)
    _check_integral(workload, values, option)
    return {name: values[name] for name in symbols}


def _check_integral(workload: FuncOp, values: Mapping[str, int], option: str) -> None:
    for kind in _types(workload):
        for size in _shape(kind):
            value = size.evaluate(values)
            if value.denominator != 1 or not 1 <= value <= MAX_SIZE:
                symbol = min(size.symbols(), default=None)
                raise BindingError(
                    f"{option} makes the size {size} {value}, which is no positive integer", symbol
                )


def _types(workload: FuncOp) -> list[Attribute]:
    results = [result.type for op in workload.walk() for result in op.results]
    return [*(argument.type for argument in workload.args), *results]


def _shape(kind: Attribute) -> tuple[SymExpr, ...]:
    """The symbolic shape of a tensor; none of what is no tensor with sizes."""
    try:
        return shape_of(kind)
    except VerifyException:
        return ()
