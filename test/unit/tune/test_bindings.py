"""Texts like `n=8,d=4096`: exact values, and each mistake with its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from prism.tune.bindings import (
    BindingError,
    format_bindings,
    parse_bindings,
    parse_sizes,
    symbols_of,
)

from .conftest import EXAMPLES, context


def workload(text: str) -> FuncOp:
    module = Parser(context(), text).parse_module()
    assert isinstance(module, ModuleOp)
    return next(op for op in module.ops if isinstance(op, FuncOp))


def example(name: str) -> FuncOp:
    return workload((EXAMPLES / f"{name}.mlir").read_text())


def test_values():
    assert parse_bindings("n=8, d = 4096", "--shape") == {"n": 8, "d": 4096}
    assert parse_bindings("grid.x=64,loop.i=-1", "--set") == {"grid.x": 64, "loop.i": -1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "character 1: expected NAME=INTEGER, found ''"),
        ("n", "character 1: expected NAME=INTEGER, found 'n'"),
        ("n=8,,d=4", "character 5: expected NAME=INTEGER, found ''"),
        ("n=8,d=x", "character 7: expected an integer for 'd', found 'x'"),
        ("n=1.5", "character 3: expected an integer for 'n', found '1.5'"),
        ("n=0x8", "character 3: expected an integer for 'n', found '0x8'"),
        ("n=8,n=8", "character 5: 'n' is given twice"),
        ("n=2147483648", "character 3: 'n' is larger than 2147483647"),
        ("n=" + "9" * 5000, "longer than 4096 characters"),
    ],
)
def test_mistakes(text: str, message: str):
    with pytest.raises(BindingError) as caught:
        parse_bindings(text, "--shape")
    assert message in str(caught.value)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_.]{0,8}", fullmatch=True),
        st.integers(-(2**31) + 1, 2**31 - 1),
        min_size=1,
    )
)
def test_round_trip(values: dict[str, int]):
    assert parse_bindings(format_bindings(values), "--shape") == values


@given(st.text(max_size=30))
def test_any_text_parses_or_is_refused(text: str):
    try:
        parse_bindings(text, "--shape")
    except BindingError:
        pass


def test_symbols():
    assert symbols_of(example("rms_norm")) == ("n", "d")
    assert symbols_of(example("attention")) == ("b", "g", "h")


def test_sizes_in_the_order_of_the_workload():
    assert list(parse_sizes("d=64,n=8", example("rms_norm"))) == ["n", "d"]


@pytest.mark.parametrize(
    ("text", "message", "symbol"),
    [
        ("n=8", "size 'd' has no value", "d"),
        ("", "size 'n' has no value", "n"),
        ("n=0,d=4", "size 'n' must be positive, found 0", "n"),
        ("n=8,d=-4", "size 'd' must be positive, found -4", "d"),
        ("n=8,d=4,q=3", r"names 'q', which is no size \(sizes: n, d\)", None),
    ],
)
def test_sizes_that_do_not_fit(text: str, message: str, symbol: str | None):
    with pytest.raises(BindingError, match=message) as caught:
        parse_sizes(text, example("rms_norm"))
    assert caught.value.symbol == symbol


def test_a_size_expression_must_be_an_integer():
    function = workload("func.func @f(%x: tensor<?xf16, #sym.shape<[n / 4]>>) { func.return }")
    assert parse_sizes("n=8", function) == {"n": 8}
    with pytest.raises(BindingError, match="makes the size n / 4 3/2") as caught:
        parse_sizes("n=6", function)
    assert caught.value.symbol == "n"


def test_static_workload_needs_no_sizes():
    function = workload("func.func @f(%x: tensor<4xf16>) { func.return }")
    assert parse_sizes("", function) == {}
    with pytest.raises(BindingError, match=r"sizes: none"):
        parse_sizes("n=1", function)
