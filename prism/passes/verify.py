"""`prism-verify`: proves each candidate equal to its workload and attaches the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from prism.verify.api import attach, match, verify_pairs
from prism.verify.digest import REASON
from prism.verify.verdict import Limits

_DEFAULT = Limits()


@dataclass(frozen=True)
class VerifyPass(ModulePass):
    """
    Sets `kernel.verdict` on every candidate: `equal`, `not_proven`, or `unknown` where a limit was
    reached. The candidates may come from anywhere; nothing but their ops and maps is trusted.

    `max_nodes` and `max_seconds` bound the proof of each workload; `reasons` notes on each
    candidate that is not proven what is missing, as `kernel.reason`. `certificates` attaches to
    each that is equal its proof, as `kernel.certificate`, which the checker has accepted.
    `second_opinion` executes what is proven equal at small sizes: a disagreement is an error.
    """

    name = "prism-verify"

    max_nodes: int = _DEFAULT.nodes
    max_seconds: float = _DEFAULT.seconds
    reasons: bool = False
    certificates: bool = True
    second_opinion: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limits = Limits(nodes=self.max_nodes, seconds=self.max_seconds)
        pairs = match(op, op)
        for pair, verdict in zip(
            pairs,
            verify_pairs(pairs, limits, certify=self.certificates, opinion=self.second_opinion),
            strict=True,
        ):
            attach(pair, verdict)
            if self.reasons and verdict.reason:
                pair.candidate.attributes[REASON] = StringAttr(verdict.reason)
