"""
`tools/gpu_check`: bundles checked against torch in float64, and timed, on a machine with a GPU.

It imports `prism.runtime`, numpy, cuda.core and torch, and neither xDSL nor egglog.
"""
