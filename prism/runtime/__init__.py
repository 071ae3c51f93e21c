"""
Running compiled bundles, with numpy and cuda-python alone.

    from prism.runtime import load
    o = load("build/rms_norm")(x, w)
"""

from prism.runtime.loaded import LoadedBundle
from prism.runtime.loaded_range import LoadedRange, load

__all__ = ["LoadedBundle", "LoadedRange", "load"]
