"""The README quotes what was measured: its tables are those of `bench/results/`."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_tables_are_the_recorded_measurements() -> None:
    spec = importlib.util.spec_from_file_location("quote", ROOT / "tools" / "quote_results.py")
    assert spec is not None
    assert spec.loader is not None
    quote = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(quote)
    text = (ROOT / "README.md").read_text()
    assert quote.quoted(text) == text
    for name in quote.TABLES:
        assert quote.quoted(text.replace(f"<!-- {name} -->", f"<!-- {name} -->\nstale")) == text
