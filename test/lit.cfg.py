"""lit configuration: `.venv/bin/lit test` runs every `.mlir` test below this folder."""

import os
import sys
from typing import Any

import lit.formats

config: Any
lit_config: Any

config.name = "Prism"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.excludes = ["unit", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.test_source_root, "..", "build", "lit")

# prism-opt, xdsl-opt and filecheck of the environment that runs lit, whatever PATH says.
binaries = os.path.dirname(sys.executable)
config.environment["PATH"] = os.pathsep.join((binaries, config.environment["PATH"]))
config.environment["PRISM_DB"] = "none"
config.substitutions.append(("%examples", os.path.join(config.test_source_root, "../examples")))
# Prints, prints generically, parses both back: what arrives is checked.
config.substitutions.append(
    ("%roundtrip", "prism-opt %s --print-op-generic | prism-opt | prism-opt | filecheck %s")
)

supported, _ = lit_config.maxIndividualTestTimeIsSupported
if supported:
    config.maxIndividualTestTime = 120
