"""
Running compiled bundles, with numpy and cuda-python alone.

    from prism.runtime import load
    o = load("build/rms_norm")(x, w)
"""

from prism.runtime.loaded import LoadedBundle, load

__all__ = ["LoadedBundle", "load"]
