"""What docs/simulator.md shows is so."""

import os
import re
import shlex
from dataclasses import fields
from pathlib import Path

import prism.simulator
from prism.cli.main import main
from prism.simulator import Report

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "simulator.md").read_text()


def test_the_example_in_python(monkeypatch):
    monkeypatch.chdir(ROOT)
    code = next(c for c in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "launch" in c)
    exec(compile(code, "docs/simulator.md", "exec"), {})


def test_the_example_in_the_shell(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    command, expected = re.search(r"```\n\$ prism (.*)\n(.*)\n```", TEXT).groups()
    assert main(shlex.split(command)) == 1
    assert capsys.readouterr().err == expected + os.linesep


def test_errors_and_fields_are_documented():
    errors = {name for name in prism.simulator.__all__ if name.endswith("Error")}
    assert {name for name in errors if f"`{name}" not in TEXT} <= {"LaunchError"}
    named = {f.name for f in fields(Report)} - {"shared_passes", "wide_bytes"}
    assert {name for name in named if f"`{name}`" not in TEXT} == set()
