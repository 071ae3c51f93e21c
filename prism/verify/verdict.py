"""What verification returns and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["equal", "not_proven", "unknown"]


@dataclass(frozen=True, slots=True)
class Limits:
    """
    Bounds of one proof search. A bound that stops it makes the verdict `unknown`, never `equal`.

    `nodes` counts e-nodes and facts. Near a limit all are checked after each axiom, and none is run
    that would cross one by growing the e-graph as before.
    """

    rounds: int = 40
    nodes: int = 20_000
    seconds: float = 10.0
    memory: int = 4 * 2**30
    """Bytes that the process may take beyond what it held before."""
    distributions: int = 2
    """How often products of sums are multiplied out; not a limit but the depth of the search."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    `equal`: proven for all sizes. `not_proven`: there is a counterexample, or nothing more follows
    from the axioms, products of sums multiplied out `Limits.distributions` times.
    `unknown`: a limit was reached, or something is not known to the verifier. `reason` says what is
    missing unless equal; `seconds` is the time of the whole proof that the graph was part of.
    """

    kind: Kind
    reason: str = ""
    certificate: str = ""
    """Of an equal one, where it was asked for: the proof as `prism/verify/certificate.py` says."""
    digest: str = ""
    """With a certificate: the digest of what was decided (`prism/verify/digest.py`)."""
    seconds: float = 0.0
