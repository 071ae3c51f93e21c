"""
Bundles of a range of shapes: a table of which sizes share a choice, and a bundle for each size.

`dispatch.json` has the table, its own digest, and the digest of the manifest of every size's
bundle, which lies in a directory named by the size; so every byte is covered here too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from prism.runtime.bundle import (
    DISPATCH_FILE,
    MAX_MANIFEST_BYTES,
    Bundle,
    BundleError,
    load_bundle,
    manifest_text,
    new_directory,
    parse_sealed,
    read_file,
    sealed_text,
    write_bundle,
    write_file,
)
from prism.runtime.manifest import Manifest
from prism.runtime.schema import SchemaError, decode

FORMAT_VERSION = 1
MAX_SIZES = 1024
"""Sizes that a table may have: each is a directory to read."""


@dataclass(frozen=True)
class SectionEntry:
    """Sizes from `first` to `last`, both included, that share a graph and parameters."""

    first: int
    last: int
    graph: str
    parameters: dict[str, int]


@dataclass(frozen=True)
class Dispatch:
    """Everything that `dispatch.json` says; `manifests` has a SHA-256 for each size, as text."""

    format: int
    symbol: str
    shape: dict[str, int]
    sections: tuple[SectionEntry, ...]
    manifests: dict[str, str]

    @property
    def sizes(self) -> range:
        """Every size of the symbol that varies."""
        return range(self.sections[0].first, self.sections[-1].last + 1)


@dataclass(frozen=True)
class RangedBundle:
    """A bundle of a range, all of it read and checked."""

    path: Path
    dispatch: Dispatch
    bundles: Mapping[int, Bundle]

    @property
    def ends(self) -> list[int]:
        """The first and the last size of every section."""
        ends = (size for each in self.dispatch.sections for size in (each.first, each.last))
        return list(dict.fromkeys(ends))

    def at(self, sizes: Mapping[str, int]) -> Bundle:
        """The bundle for sizes by symbol; raises `BundleError` if they are not in the range."""
        dispatch = self.dispatch
        symbol, (first, last) = dispatch.symbol, (dispatch.sizes[0], dispatch.sizes[-1])
        expected = "".join(f",{name}={size}" for name, size in dispatch.shape.items())
        known = f"the bundle is for {symbol}={first}..{last}{expected}"
        for name, size in sizes.items():
            if name != symbol and dispatch.shape.get(name) != size:
                raise BundleError(f"{self.path}: {name}={size}: {known}")
        if symbol not in sizes:
            raise BundleError(f"{self.path}: no size for '{symbol}': {known}")
        if sizes[symbol] not in dispatch.sizes:
            raise BundleError(f"{self.path}: {symbol}={sizes[symbol]}: {known}")
        return self.bundles[sizes[symbol]]


def write_ranged(
    path: Path,
    symbol: str,
    sections: Sequence[SectionEntry],
    packed: Mapping[int, tuple[Manifest, Mapping[str, bytes]]],
) -> RangedBundle:
    """
    Write the bundles of all sizes and their table atomically; raises `BundleError`.

    Sizes must have distinct input shapes, by which calls are dispatched.
    """
    first = next(iter(packed.values()))[0]
    shape = {name: size for name, size in first.shape.items() if name != symbol}
    with new_directory(path) as directory:
        bundles = {
            size: write_bundle(directory / str(size), manifest, files)
            for size, (manifest, files) in packed.items()
        }
        digests = {str(size): _digest(bundle) for size, bundle in bundles.items()}
        dispatch = Dispatch(FORMAT_VERSION, symbol, shape, tuple(sections), digests)
        _check(path, dispatch, bundles)
        write_file(directory / DISPATCH_FILE, sealed_text(asdict(dispatch)))
    moved = {size: replace(each, path=path / str(size)) for size, each in bundles.items()}
    return RangedBundle(path, dispatch, moved)


def load_ranged(path: Path) -> RangedBundle:
    """Read a bundle of a range and check every byte of it; raises `BundleError`."""
    file = path / DISPATCH_FILE
    content = parse_sealed(file, read_file(file, MAX_MANIFEST_BYTES))
    try:
        dispatch = decode(Dispatch, content)
    except SchemaError as error:
        raise BundleError(f"{file}: {error}") from error
    _check_table(file, dispatch)
    bundles = {size: load_bundle(path / str(size)) for size in dispatch.sizes}
    for size, bundle in bundles.items():
        if _digest(bundle) != dispatch.manifests[str(size)]:
            raise BundleError(f"{bundle.path}: damaged: its manifest is not that of {file}")
    _check(file, dispatch, bundles)
    return RangedBundle(path, dispatch, bundles)


def _digest(bundle: Bundle) -> str:
    return hashlib.sha256(manifest_text(bundle.manifest)).hexdigest()


def _check_table(file: Path, dispatch: Dispatch) -> None:
    """The sections are consecutive and the manifests those of their sizes."""
    if dispatch.format != FORMAT_VERSION:
        raise BundleError(f"{file}: format {dispatch.format}, expected {FORMAT_VERSION}")
    if not dispatch.sections or dispatch.sections[0].first < 1:
        raise BundleError(f"{file}: no sections of sizes from 1")
    due = dispatch.sections[0].first
    for section in dispatch.sections:
        if section.first != due or section.last < section.first:
            raise BundleError(f"{file}: section {section.first}..{section.last} is not due")
        due = section.last + 1
    if len(dispatch.sizes) > MAX_SIZES:
        raise BundleError(f"{file}: more than {MAX_SIZES} sizes")
    if {str(size) for size in dispatch.sizes} != dispatch.manifests.keys():
        raise BundleError(f"{file}: its manifests are not those of its sections")


def _check(file: Path, dispatch: Dispatch, bundles: Mapping[int, Bundle]) -> None:
    """The bundles are what the table says, and inputs tell them apart."""
    _check_table(file, dispatch)
    shapes: set[tuple[tuple[int, ...], ...]] = set()
    for section in dispatch.sections:
        for size in range(section.first, section.last + 1):
            manifest = bundles[size].manifest
            if manifest.shape != {**dispatch.shape, dispatch.symbol: size}:
                raise BundleError(f"{file}: the bundle of {size} is of another shape")
            shared = section.parameters.items() <= manifest.graph.parameters.items()
            if manifest.graph.name != section.graph or not shared:
                raise BundleError(f"{file}: the bundle of {size} is not that of its section")
            shapes.add(tuple(entry.shape for entry in manifest.inputs))
    if len(shapes) != len(bundles):
        raise BundleError(f"{file}: sizes of '{dispatch.symbol}' with the same input shapes")
