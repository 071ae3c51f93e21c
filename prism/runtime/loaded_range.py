"""A bundle of a range of shapes as a function: the shapes of its arguments choose the kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prism.runtime.bundle import is_ranged, load_bundle
from prism.runtime.launch import RunError
from prism.runtime.loaded import LoadedBundle
from prism.runtime.ranged import RangedBundle, load_ranged

_Shapes = tuple[tuple[int, ...], ...]


def load(path: str | Path) -> LoadedBundle | LoadedRange:
    """
    Read a bundle, of one shape or a range, and check every byte of it; raises `BundleError`.

    `load(path)(x, w)` runs it. No GPU is looked for before the first call with arrays on one.
    """
    directory = Path(path)
    if is_ranged(directory):
        return LoadedRange(load_ranged(directory))
    return LoadedBundle(load_bundle(directory))


@dataclass
class LoadedRange:
    """
    A callable bundle of a range; called like `LoadedBundle`, for each size of the range.

    `bundle.dispatch` says which sizes there are.
    """

    bundle: RangedBundle
    _by_shapes: dict[_Shapes, LoadedBundle] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._by_shapes = {
            tuple(entry.shape for entry in bundle.manifest.inputs): LoadedBundle(bundle)
            for bundle in self.bundle.bundles.values()
        }

    def __call__(self, *inputs: Any, out: Any = None, stream: Any = None) -> Any:
        """The outputs, by the kernels for the shapes of the inputs; raises `RunError`."""
        shapes = tuple(_shape_of(position, array) for position, array in enumerate(inputs, start=1))
        loaded = self._by_shapes.get(shapes)
        if loaded is None:
            dispatch = self.bundle.dispatch
            ends = [dispatch.sizes[0], dispatch.sizes[-1]]
            wanted = " to ".join(
                str([list(e.shape) for e in self.bundle.bundles[size].manifest.inputs])
                for size in ends
            )
            raise RunError(
                f"no kernels for inputs of shapes {[list(shape) for shape in shapes]}: the bundle "
                f"is for {dispatch.symbol}={ends[0]}..{ends[1]}, shapes {wanted}"
            )
        return loaded(*inputs, out=out, stream=stream)


def _shape_of(position: int, array: Any) -> tuple[int, ...]:
    if hasattr(array, "shape"):
        return tuple(int(size) for size in array.shape)
    if hasattr(array, "__cuda_array_interface__"):
        return tuple(int(size) for size in array.__cuda_array_interface__["shape"])
    raise RunError(f"input {position}: expected an array, found {type(array).__name__}")
