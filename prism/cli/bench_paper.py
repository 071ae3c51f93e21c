"""Numbers of the paper (arXiv 2604.15272) that the benchmarks stand beside."""

from __future__ import annotations

from typing import NamedTuple


class SearchNumbers(NamedTuple):
    """Seconds of the search, once for all shapes, and its unique verified graphs."""

    seconds: float
    graphs: int


SEARCH: dict[str, SearchNumbers] = {
    "rms_norm": SearchNumbers(0.3, 9),
    "swiglu": SearchNumbers(1.0, 12),
    "rms_norm_mlp": SearchNumbers(871.0, 23),
    # 41 to 42 s for both: the smaller one
    "attention": SearchNumbers(41.0, 14),
    "qk_norm_attention": SearchNumbers(41.0, 14),
}
"""Tables 2 and 3, by workload; on 48 cores and 96 threads."""

ABLATION: dict[frozenset[str], float] = {
    frozenset[str](): 0.3,
    frozenset({"imap"}): 20.5,
    frozenset({"fmap"}): 5.5,
    frozenset({"omap"}): 2.5,
    frozenset({"imap", "fmap", "omap"}): 312.0,
}
"""Table 4: seconds on rms_norm at n = 8, d = 4096, by the kinds of maps that are enumerated."""
