"""Strict decoding of JSON values into frozen dataclasses, from their annotations alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


class SchemaError(ValueError):
    """A value does not have the shape that its dataclass declares; the message names its path."""


def decode(cls: type[T], value: object, path: str = "") -> T:
    """
    Build the dataclass `cls` from a parsed JSON object.

    Annotations may be dataclasses, `str`, `int`, `float`, `tuple[T, ...]`, tuples of fixed length,
    `dict[str, T]` and `T | None`. Unknown and missing keys are errors, and so is a Boolean for a
    number. Raises `SchemaError`.
    """
    return cast(T, _decode(cls, value, path))


def _decode(kind: Any, value: object, path: str) -> object:
    where = path or "top level"
    if is_dataclass(kind):
        return _decode_object(cast(type, kind), value, path)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is tuple:
        if not isinstance(value, list):
            raise SchemaError(f"{where}: expected a list")
        items = cast(list[object], value)
        if arguments[-1] is Ellipsis:
            kinds = (arguments[0],) * len(items)
        else:
            kinds = arguments
        if len(kinds) != len(items):
            raise SchemaError(f"{where}: expected {len(kinds)} items, found {len(items)}")
        pairs = zip(kinds, items, strict=True)
        return tuple(_decode(item, v, f"{path}[{k}]") for k, (item, v) in enumerate(pairs))
    if origin is dict:
        if not isinstance(value, dict):
            raise SchemaError(f"{where}: expected an object")
        entries = cast(dict[str, object], value)
        return {key: _decode(arguments[1], v, f"{path}.{key}") for key, v in entries.items()}
    if origin in (Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        (other,) = (argument for argument in arguments if argument is not NoneType)
        return _decode(other, value, path)
    if type(value) is not kind:
        raise SchemaError(f"{where}: expected {kind.__name__}, found {type(value).__name__}")
    return value


def _decode_object(cls: type, value: object, path: str) -> object:
    where = path or "top level"
    if not isinstance(value, dict):
        raise SchemaError(f"{where}: expected an object")
    entries = cast(Mapping[str, object], value)
    hints = get_type_hints(cls)
    names = [field.name for field in fields(cls)]
    if wrong := sorted(set(names) ^ set(entries)):
        raise SchemaError(f"{where}: missing or unknown entries: {', '.join(wrong)}")
    make = cast(Callable[..., object], cls)
    prefix = f"{path}." if path else ""
    return make(**{name: _decode(hints[name], entries[name], prefix + name) for name in names})
