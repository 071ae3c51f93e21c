#!/usr/bin/env python3
"""
Audits the axioms and sign facts of `prism-verify`: evaluates each exactly, at all small shapes.

Fails when a rule is wrong somewhere, when a stated condition can be dropped and no instance shows
it, or when the converse of an axiom is wrong and the table does not say so, or the reverse.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from prism.verify.audit import LEAST, Rule, check, converse
from prism.verify.axioms import AXIOMS, IRREVERSIBLE, Axiom
from prism.verify.sign_facts import SIGN_FACTS

RULES: tuple[Rule, ...] = (*AXIOMS, *SIGN_FACTS)


@dataclass(frozen=True)
class Report:
    """What the audit of one rule found; `problems` are lines for people."""

    name: str
    kind: str
    decided: int
    undecided: int
    dropped: int
    reversals: int
    problems: tuple[str, ...]


def name_of(rule: Rule) -> str:
    """The name of an axiom, the text of a fact."""
    return rule.name if isinstance(rule, Axiom) else f"({rule.predicate} {rule.term_text})"


def audit(rule: Rule, seed: int, most: int | None, *, irreversible: bool) -> Report:
    """Checks a rule, each of its conditions and its converse."""
    outcome = check(rule, seed, most)
    name = name_of(rule)
    problems: list[str] = []
    if outcome.failure is not None:
        problems.append(f"{name} is wrong: {outcome.text}")
    elif outcome.decided < (LEAST if most is None else min(most, LEAST)):
        problems.append(f"{name}: only {outcome.decided} instances were decided")
    for condition, text in zip(rule.when, rule.when_text, strict=True):
        if check(rule, seed, None, condition).failure is None:
            problems.append(f"{name}: dropping {text} goes unnoticed")
    reverse = converse(rule) if isinstance(rule, Axiom) else None
    if reverse is not None:
        found = check(reverse, seed, most)
        if irreversible and found.failure is None:
            problems.append(f"{name}: no instance shows that the converse is wrong")
        if not irreversible and found.failure is not None:
            problems.append(f"{name}: the converse is wrong: {found.text}")
    return Report(
        name,
        rule.kind.value if isinstance(rule, Axiom) else "signs of values",
        outcome.decided,
        outcome.undecided,
        len(rule.when),
        int(irreversible),
        tuple(problems),
    )


def _audit_number(work: tuple[int, int, int | None]) -> Report:
    number, seed, most = work
    rule = RULES[number]
    return audit(
        rule, seed, most, irreversible=isinstance(rule, Axiom) and rule.name in IRREVERSIBLE
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints counts per class; 0 if nothing is wrong, 1 otherwise."""
    parser = argparse.ArgumentParser(description="Audits the axioms of prism-verify.")
    parser.add_argument("--seed", type=int, default=1, help="of elements and constants")
    parser.add_argument("--fast", action="store_true", help="60 random instances of each rule")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    work = [(number, options.seed, 60 if options.fast else None) for number in range(len(RULES))]
    with ProcessPoolExecutor(max_workers=options.jobs) as executor:
        reports = list(executor.map(_audit_number, work, chunksize=4))
    classes = Counter(report.kind for report in reports)
    width = max(map(len, classes))
    header = (
        f"{'class':<{width}} {'rules':>6} {'instances':>10} {'undecided':>10} {'conditions':>11}"
    )
    print(header)
    for kind, count in classes.items():
        mine = [report for report in reports if report.kind == kind]
        decided, undecided, dropped = (
            sum(values)
            for values in zip(*((r.decided, r.undecided, r.dropped) for r in mine), strict=True)
        )
        print(f"{kind:<{width}} {count:>6} {decided:>10} {undecided:>10} {dropped:>11}")
    problems = [problem for report in reports for problem in report.problems]
    print(
        f"{len(AXIOMS)} axioms and {len(SIGN_FACTS)} sign facts, "
        f"{sum(r.decided for r in reports)} instances, "
        f"{sum(r.dropped for r in reports)} conditions dropped, "
        f"{sum(r.reversals for r in reports)} wrong converses, "
        f"{time.perf_counter() - start:.1f} s: {len(problems)} problems"
    )
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
