"""`prism db`: lists, shows, shares and prunes the stored tuning results."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prism.tune.database import Database
    from prism.tune.records import Result

STANDARD = "-"
"""The file name of standard input and output."""

SECONDS_PER_DAY = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions of `prism db`."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")

    def action(name: str, text: str) -> argparse.ArgumentParser:
        added = actions.add_parser(name, help=text)
        added.add_argument(
            "--db", metavar="PATH", help="the database (default: PRISM_DB or the user's own)"
        )
        return added

    listing = action("list", "one line per result")
    listing.add_argument("--json", action="store_true", help="print JSON instead of a table")
    show = action("show", "one result, with the text of its graph")
    show.add_argument("id", metavar="ID", help="as `list` prints it, or its beginning")
    show.add_argument("--json", action="store_true", help="print JSON instead of text")
    export = action("export", "write results as JSON Lines, to share with other machines")
    export.add_argument("-o", "--output", default=STANDARD, metavar="FILE", help="default: -")
    load = action("import", "read results from JSON Lines; each is proven again before it is used")
    load.add_argument("file", metavar="FILE", help="a file of `export`, or - for standard input")
    prune = action("prune", "remove results of other versions of Prism, or older ones")
    prune.add_argument(
        "--older-than", type=_days, metavar="DAYS", help="also what was stored before that"
    )
    prune.add_argument("--keep-versions", action="store_true", help="keep what others stored")


def run(arguments: argparse.Namespace) -> int:
    """Do one action."""
    from prism.cli.stored import database_path
    from prism.tune.database import Database

    path = database_path(arguments.db)
    with Database(path, create=arguments.action == "import") as database:
        match arguments.action:
            case "list":
                _list(database, as_json=arguments.json)
            case "show":
                _show(database, arguments.id, as_json=arguments.json)
            case "export":
                _export(database, arguments.output)
            case "import":
                _import(database, arguments.file)
            case _:
                _prune(database, arguments.older_than, keep_versions=arguments.keep_versions)
    return 0


def result_id(result: Result) -> str:
    """What a result is called on the command line: twelve digits of its key's digest."""
    import hashlib

    return hashlib.sha256("\0".join(result.key.values).encode()).hexdigest()[:12]


def _as_json(result: Result) -> dict[str, Any]:
    key = result.key
    return {
        "id": result_id(result),
        "workload": key.workload,
        "shape": key.shape,
        "dtype": key.dtype,
        "target": key.target,
        "request": key.request,
        "tool": key.tool,
        "graph": result.name,
        "parameters": dict(result.point),
        "model_us": round(result.seconds * 1e6, 3),
        "origin": result.origin,
        "created": result.created,
    }


def _list(database: Database, *, as_json: bool) -> None:
    from prism.cli.table import table

    results = list(database.results())
    if as_json:
        rows = [_as_json(result) for result in results]
        data = {"path": str(database.path), "results": rows}
        print(json.dumps({**data, "measurements": database.count_measurements()}, indent=2))
        return
    lines = [
        (
            result_id(result),
            result.name,
            result.key.shape,
            result.key.dtype,
            result.key.target,
            f"{result.seconds * 1e6:.2f}",
            result.origin,
            result.key.tool,
        )
        for result in results
    ]
    header = ("id", "graph", "shape", "dtype", "target", "model us", "origin", "version")
    print(table(header, lines) if lines else f"{database.path}: no results")


def _show(database: Database, identity: str, *, as_json: bool) -> None:
    from prism.cli.table import fields
    from prism.errors import PrismError
    from prism.tune.bindings import format_bindings

    found = [result for result in database.results() if result_id(result).startswith(identity)]
    if len(found) != 1:
        count = f"{len(found)} results" if found else "no result"
        raise PrismError(f"{database.path}: {count} with the id '{identity}'")
    (result,) = found
    data = _as_json(result)
    if as_json:
        print(json.dumps({**data, "text": result.graph}, indent=2))
        return
    data["parameters"] = format_bindings(result.point)
    data["created"] = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(result.created))
    print(fields({name: str(value) for name, value in data.items()}))
    print(f"\n{result.graph}")


def _export(database: Database, output: str) -> None:
    from prism.errors import PrismError
    from prism.tune.records import to_lines

    if output == STANDARD:
        sys.stdout.writelines(to_lines(database.results()))
        return
    try:
        with Path(output).open("w", encoding="utf-8") as file:
            file.writelines(to_lines(database.results()))
    except OSError as error:
        raise PrismError(f"{output}: {error.strerror}") from error


def _import(database: Database, name: str) -> None:
    from prism.errors import PrismError
    from prism.tune.records import from_lines

    try:
        if name == STANDARD:
            results = from_lines(sys.stdin, "standard input")
        else:
            with Path(name).open(encoding="utf-8") as file:
                results = from_lines(file, name)
    except OSError as error:
        raise PrismError(f"{name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PrismError(f"{name}: not UTF-8 text") from error
    added = database.put_missing(results)
    print(f"{added} of {len(results)} results added, {len(results) - added} known already")


def _prune(database: Database, days: float | None, *, keep_versions: bool) -> None:
    from prism.tune.identity import tool_version

    before = None if days is None else int(time.time() - days * SECONDS_PER_DAY)
    removed = database.prune(None if keep_versions else tool_version(), before)
    print(f"{removed} results removed")


def _days(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e5:
        raise argparse.ArgumentTypeError(f"expected a number of days, found {text}")
    return value
