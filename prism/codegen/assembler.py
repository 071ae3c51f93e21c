"""
PTX text to a cubin, in process and without a driver, by nvJitLink from NVIDIA's wheels.

nvJitLink compiles relocatably, so its register counts are upper estimates of what `ptxas` uses for
a whole program; shared memory and spills agree.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from prism.errors import PrismError

_MAX_PTX_BYTES = 64 * 1024 * 1024

_PTX_LINE = re.compile(r"^ptxas .*, line (\d+); (?:error|fatal)\s*: (.*)$")
_FATAL = re.compile(r"^ptxas (?:error|fatal)\s*: (.*)$")
_ENTRY = re.compile(r"^ptxas info\s*: Compiling entry function '([^']*)'")
_SPILLS = re.compile(r"(\d+) bytes spill stores")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
# Said after the errors that matter; alone it would hide them.
_SUMMARY = "Ptx assembly aborted due to errors"


class _InputType(Protocol):
    PTX: int


class _NvJitLink(Protocol):
    """The part of `cuda.bindings.nvjitlink` (untyped) that is used here."""

    nvJitLinkError: type[Exception]
    InputType: _InputType

    def create(self, num_options: int, options: list[str]) -> int: ...
    def add_data(self, handle: int, input_type: int, data: bytes, size: int, name: str) -> None: ...
    def complete(self, handle: int) -> None: ...
    def get_linked_cubin_size(self, handle: int) -> int: ...
    def get_linked_cubin(self, handle: int, cubin: bytearray) -> None: ...
    def get_error_log_size(self, handle: int) -> int: ...
    def get_error_log(self, handle: int, log: bytearray) -> None: ...
    def get_info_log_size(self, handle: int) -> int: ...
    def get_info_log(self, handle: int, log: bytearray) -> None: ...
    def destroy(self, handle: int) -> None: ...


@dataclass(frozen=True)
class Assembled:
    """
    A cubin and what the assembler reported about its entry function.

    `registers` per thread; `smem_bytes` static shared memory; `spill_bytes` stored to local memory.
    """

    cubin: bytes
    registers: int
    smem_bytes: int
    spill_bytes: int
    log: str


@dataclass(frozen=True)
class AssemblerMessage:
    """One message: the PTX line from 1 (None if it names none) and the op that printed the line."""

    ptx_line: int | None
    text: str
    origin: str | None = None

    def __str__(self) -> str:
        place = "" if self.ptx_line is None else f"PTX line {self.ptx_line}: "
        origin = "" if self.origin is None else f" (printed by `{self.origin}`)"
        return f"{place}{self.text}{origin}"


class AssemblerError(PrismError):
    """The assembler refused a PTX text; `messages` in the order of the PTX lines."""

    def __init__(self, name: str, messages: Sequence[AssemblerMessage], log: str = "") -> None:
        self.messages = tuple(messages)
        self.log = log
        shown = "; ".join(str(message) for message in self.messages[:3])
        more = len(self.messages) - 3
        super().__init__(f"cannot assemble '{name}': {shown}{f'; {more} more' if more > 0 else ''}")


def assemble(
    ptx: str,
    arch: str,
    name: str,
    line_origins: Sequence[str] | None = None,
    *,
    min_blocks_per_sm: int = 1,
) -> Assembled:
    """
    Assemble the entry function `name` of `ptx` for `arch`, e.g. `sm_80`.

    `line_origins[k]` says which `cuda` op printed PTX line k + 1 (as the PTX printer gives it).
    Registers are limited so that `min_blocks_per_sm` blocks fit on an SM; without that nvJitLink
    takes all that one block may have.
    Raises `AssemblerError`; nothing else is raised for any text.
    """
    data = ptx.encode("utf-8")
    if len(data) > _MAX_PTX_BYTES:
        message = AssemblerMessage(None, f"PTX larger than {_MAX_PTX_BYTES} bytes")
        raise AssemblerError(name, [message])
    # The assembler takes a C string: a NUL would silently end the text there.
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise AssemblerError(name, [map_error_to_op(line, "NUL character", line_origins)])
    linker = cast(_NvJitLink, import_module("cuda.bindings.nvjitlink"))
    try:
        options = [f"-arch={arch}", "-verbose", "-Xptxas=-v"]
        if min_blocks_per_sm > 1:
            options.append(f"-Xptxas=-minnctapersm={min_blocks_per_sm}")
        handle = linker.create(len(options), options)
    except linker.nvJitLinkError as error:
        message = AssemblerMessage(None, f"architecture '{arch}': {error}")
        raise AssemblerError(name, [message]) from error
    try:
        linker.add_data(handle, linker.InputType.PTX, data, len(data), f"{name}.ptx")
        linker.complete(handle)
        cubin = bytearray(linker.get_linked_cubin_size(handle))
        linker.get_linked_cubin(handle, cubin)
        log = _log(linker.get_info_log_size, linker.get_info_log, handle)
    except linker.nvJitLinkError as error:
        log = _log(linker.get_error_log_size, linker.get_error_log, handle)
        raise AssemblerError(name, _messages(log, str(error), line_origins), log) from error
    finally:
        linker.destroy(handle)
    return _statistics(bytes(cubin), name, log)


def map_error_to_op(line: int, text: str, line_origins: Sequence[str] | None) -> AssemblerMessage:
    """The message at a PTX line (from 1) together with the op that printed the line, if known."""
    if line_origins is None or not 1 <= line <= len(line_origins):
        return AssemblerMessage(line, text)
    return AssemblerMessage(line, text, line_origins[line - 1] or None)


class _LogSize(Protocol):
    def __call__(self, handle: int, /) -> int: ...


class _LogRead(Protocol):
    def __call__(self, handle: int, log: bytearray, /) -> None: ...


def _log(size: _LogSize, read: _LogRead, handle: int) -> str:
    buffer = bytearray(size(handle))
    if buffer:
        read(handle, buffer)
    return bytes(buffer).decode("utf-8", "replace").rstrip("\0 \n")


def _messages(log: str, fallback: str, origins: Sequence[str] | None) -> list[AssemblerMessage]:
    located: list[AssemblerMessage] = []
    general: list[AssemblerMessage] = []
    for row in log.splitlines():
        if match := _PTX_LINE.match(row):
            located.append(map_error_to_op(int(match[1]), match[2].strip(), origins))
        elif (match := _FATAL.match(row)) and match[1] != _SUMMARY:
            general.append(AssemblerMessage(None, match[1].strip()))
    located.sort(key=lambda message: message.ptx_line or 0)
    return located + general or [AssemblerMessage(None, fallback)]


def _statistics(cubin: bytes, name: str, log: str) -> Assembled:
    """Read the section of entry `name` of the verbose log; a missing entry is an error."""
    registers = spills = None
    shared = 0
    entry = None
    for row in log.splitlines():
        if match := _ENTRY.match(row):
            entry = match[1]
        if entry != name:
            continue
        if match := _SPILLS.search(row):
            spills = int(match[1])
        if match := _REGISTERS.search(row):
            registers = int(match[1])
            shared = int(found[1]) if (found := _SHARED.search(row)) else 0
    if registers is None or spills is None:
        message = AssemblerMessage(None, f"the PTX has no entry function '{name}'")
        raise AssemblerError(name, [message], log)
    return Assembled(cubin, registers, shared, spills, log)
