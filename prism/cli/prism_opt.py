"""
`prism-opt`: xDSL's driver with Prism's dialects and passes.

What is wrong with the input is told in one line, `file:line:col: error: ...`, with exit status 2;
`--parsing-diagnostics` and `--verify-diagnostics` keep xDSL's own behaviour, which lit tests use.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import IO, ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.xdsl_opt_main import xDSLOptMain

from prism.errors import PrismError, SourceLocation

EXIT_BAD_INPUT = 2


class PrismOptMain(xDSLOptMain):
    """xDSL's driver; dialects and passes come from the entry point `xdsl.universe`."""

    version_format: ClassVar[str] = "prism-opt built from xdsl version {xdsl_version}"

    module: ModuleOp | None = None
    """The module at work, for locating what does not verify."""

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        """Parses plain MLIR so that every op has its location; anything else as xDSL does."""
        options = self.args
        plain = (options.frontend or file_extension) == "mlir" and not (
            options.split_input_file
            or options.parsing_diagnostics
            or options.verify_diagnostics
            or options.no_implicit_module
            or options.print_debuginfo
        )
        if not plain:
            self.module = super().parse_chunk(chunk, file_extension, start_offset)
            return self.module
        from prism.cli.source import decode, parse_text

        name = self.get_input_name()
        self.module = parse_text(name, decode(name, chunk.read()), self.ctx)
        return self.module

    def located(self, error: Exception) -> SourceLocation:
        """Where in the input an error was found; its beginning if nothing is known."""
        from prism.cli.source import first_invalid, op_location

        if isinstance(error, ParseError):
            place = error.span.get_location()
            return SourceLocation(place.file, place.line, place.col)
        if isinstance(error, PrismError) and error.location is not None:
            return error.location
        invalid = None if self.module is None else first_invalid(self.module)
        location = None if invalid is None else op_location(invalid)
        return location or SourceLocation(self.get_input_name(), 1, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the driver; the exit status is 2 for bad input, a bad pipeline or bad usage."""
    try:
        driver = PrismOptMain("Prism modular optimizer driver", arguments)
    except (ArgSpecParseError, ValueError) as error:
        # What xDSL raises for a pipeline that names an unknown pass, or does not parse.
        return _complain("prism-opt", str(error))
    try:
        driver.run()
    except ParseError as error:
        return _complain(driver.located(error), error.msg)
    except PrismError as error:
        return _complain(driver.located(error), error.message)
    except DiagnosticException as error:
        return _complain(driver.located(error), str(error))
    except OSError as error:
        return _complain("prism-opt", f"cannot read {error.filename}: {error.strerror}")
    return 0


def _complain(place: SourceLocation | str, message: str) -> int:
    line = "; ".join(" ".join(part.split()) for part in message.splitlines() if part.strip())
    print(f"{place}: error: {line}", file=sys.stderr)
    return EXIT_BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
