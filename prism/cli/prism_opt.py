"""`prism-opt`: xDSL's driver with Prism's dialects and passes."""

from __future__ import annotations

from typing import ClassVar

from xdsl.xdsl_opt_main import xDSLOptMain


class PrismOptMain(xDSLOptMain):
    """xDSL's driver; dialects and passes come from the entry point `xdsl.universe`."""

    version_format: ClassVar[str] = "prism-opt built from xdsl version {xdsl_version}"


def main() -> None:
    """Runs the driver on the command line's arguments."""
    PrismOptMain("Prism modular optimizer driver").run()


if __name__ == "__main__":
    main()
