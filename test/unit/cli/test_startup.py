"""What a start of the drivers imports: nothing heavy, so that `--help` stays as fast as xDSL's."""

import subprocess
import sys

import pytest

HEAVY = ("sympy", "egglog", "numpy", "cuda", "rich", "hypothesis")


@pytest.mark.parametrize(
    "statement",
    [
        "import prism.cli.prism_opt",
        "import prism.cli.main",
        "import prism.universe",
        "from prism.dialects import sym, kernel, threadblock",
        "from prism.dialects import thread, cuda",
    ],
)
def test_imports_nothing_heavy(statement: str) -> None:
    code = f"import sys; {statement}; print([m for m in {HEAVY!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_help_names_every_pass_without_importing_it() -> None:
    code = (
        "import sys; from prism.cli.prism_opt import PrismOptMain\n"
        "try: PrismOptMain('x', ['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('prism.passes.')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "prism-instantiate-maps" in run.stdout
    assert run.stdout.rstrip().endswith("[]")
