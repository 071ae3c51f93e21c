"""
Certificates: proofs as JSON, bound by a digest to one workload and one graph.

    {"format": "prism-certificate", "version": 1, "digest": "..", "checksum": "..",
     "terms": [["in", "0"], ["part", 0, 1, "0.i"], ..],
     "steps": [["comb-of-part", {"A": 0, "d": 1, "a": "0.i"}], ..]}

A term is a head of the language with its arguments, terms among them by their place in the list, a
constant as `["1/2", {"d": -1}]`. A step names an axiom or sign fact and the value of each variable.
The digest binds it to a workload and a graph, the checksum shows that it was altered since it was
made: soundness rests on neither, but on the checker. Text from elsewhere is untrusted: whatever is
not of this form is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeGuard, cast

from xdsl.dialects import func

from prism.errors import PrismError
from prism.verify.axioms import Axiom
from prism.verify.checker import RULES, Instances, ProofError, Step, check
from prism.verify.digest import digest
from prism.verify.encode import EncodeError, encode_function
from prism.verify.language import BINARY, SIGNATURES, UNARY, sorts, variables
from prism.verify.terms import Argument, Constant, IllShapedError, TermTable

FORMAT = "prism-certificate"

VERSION = 1

MAX_BYTES = 16 * 2**20
"""A longer certificate is refused."""

MAX_RANK = 16

_MAX_DIGITS = 400

_AXIS = re.compile(r"[0-9]{1,6}\.[a-z]{1,8}")
"""The number of a graph and the name of an axis. Equality holds for all axes, also those that the
graph does not have."""


class CertificateError(PrismError):
    """A certificate that is malformed, about something else, or does not prove what it claims."""


def write(table: TermTable, steps: Sequence[Step], identity: str) -> str:
    """The certificate of steps over a table, for the digest `identity`."""
    writer = _Writer(table)
    written = [[step.rule, writer.binding(step)] for step in steps]
    content = {
        "format": FORMAT,
        "version": VERSION,
        "digest": identity,
        "checksum": checksum(identity, writer.terms, written),
        "terms": writer.terms,
        "steps": written,
    }
    return json.dumps(content, separators=(",", ":"))


def checksum(identity: str, terms: list[Any], steps: list[Any]) -> str:
    """The sha256, in hex, of what a certificate says."""
    text = json.dumps([identity, terms, steps], separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def replay(workload: func.FuncOp, candidate: func.FuncOp, text: str) -> int:
    """
    Checks a certificate and returns the number of its steps. Raises CertificateError unless it
    proves that this graph computes what this workload does.
    """
    content = _content(text)
    if content["digest"] != digest(workload, candidate):
        raise CertificateError("the certificate is about another workload or graph")
    stated = checksum(content["digest"], content["terms"], content["steps"])
    if content["checksum"] != stated:
        raise CertificateError("the certificate was altered: its checksum does not fit")
    table = TermTable()
    try:
        goal = encode_function(workload, table)
        found = encode_function(candidate, table)
    except EncodeError as error:
        raise CertificateError(str(error)) from error
    if len(goal.outputs) != len(found.outputs):
        raise CertificateError("the graph has another number of results than the workload")
    reader = _Reader(table)
    for entry in content["terms"]:
        reader.term(entry)
    steps = [reader.step(entry) for entry in content["steps"]]
    try:
        goals = list(zip(found.outputs, goal.outputs, strict=True))
        check(steps, goals, Instances(table))
    except ProofError as error:
        raise CertificateError(str(error)) from error
    return len(steps)


class _Writer:
    def __init__(self, table: TermTable) -> None:
        self.table = table
        self.terms: list[list[Any]] = []
        self._places: dict[int, int] = {}

    def binding(self, step: Step) -> dict[str, Any]:
        """The values of a step's variables; enters the terms among them."""
        names = variables_of(step.rule)
        return {name: self._value(sort, step.binding[name]) for name, sort in names.items()}

    def _value(self, sort: str, value: int | str | Constant) -> Any:
        if isinstance(value, Constant):
            return self._constant(value)
        return self._place(value) if sort == "term" and isinstance(value, int) else value

    def _place(self, term: int) -> int:
        if term not in self._places:
            entry = self.table.terms[term]
            rest: list[Argument] = list(entry.arguments)
            written: list[Any] = [entry.head]
            for sort in sorts(entry.head):
                value = rest.pop(0)
                if sort == "constant":
                    sizes = rest.pop(0)
                    written.append(self._constant(Constant(Fraction(value), Fraction(sizes))))
                else:
                    is_term = sort == "term" and isinstance(value, int)
                    written.append(self._place(int(value)) if is_term else value)
            self._places[term] = len(self.terms)
            self.terms.append(written)
        return self._places[term]

    def _constant(self, constant: Constant) -> list[Any]:
        exponents: dict[str, int] = {}
        for name, prime in self.table.symbols.items():
            exponent = _power(constant.sizes.numerator, prime)
            exponent -= _power(constant.sizes.denominator, prime)
            if exponent:
                exponents[name] = exponent
        return [str(constant.value), exponents]


def _power(number: int, prime: int) -> int:
    count = 0
    while number % prime == 0:
        number //= prime
        count += 1
    return count


class _Reader:
    def __init__(self, table: TermTable) -> None:
        self.table = table
        self.places: list[int] = []

    def term(self, entry: object) -> None:
        """Enters a term of the list."""
        head, *written = _list(entry, "a term")
        if not isinstance(head, str) or head not in SIGNATURES:
            raise CertificateError(f"expected the head of a term, found {head!r:.60}")
        if len(written) != len(sorts(head)):
            raise CertificateError(f"a term '{head}' has other arguments")
        arguments: list[Argument] = []
        for sort, value in zip(sorts(head), written, strict=True):
            read = self._value(sort, value)
            if isinstance(read, Constant):
                arguments += [read.value, read.sizes]
            else:
                arguments.append(read)
        try:
            self.places.append(self.table.make(head, arguments))
        except (IllShapedError, ValueError) as error:
            raise CertificateError(f"term {len(self.places)}: {error}") from error

    def step(self, entry: object) -> Step:
        """A step of the list."""
        parts = _list(entry, "a step")
        if len(parts) != 2 or not isinstance(parts[0], str):
            raise CertificateError("expected a step to be a name and values")
        rule, values = parts[0], _mapping(parts[1], "the values of a step")
        names = variables_of(rule)
        if names.keys() != values.keys():
            raise CertificateError(f"{rule}: expected values for {', '.join(names)}")
        return Step(rule, {name: self._value(sort, values[name]) for name, sort in names.items()})

    def _value(self, sort: str, value: object) -> int | str | Constant:
        match sort:
            case "term" if _is_int(value) and 0 <= value < len(self.places):
                return self.places[value]
            case "dim" if _is_int(value) and 1 <= value <= MAX_RANK:
                return value
            case "axis" if isinstance(value, str) and _AXIS.fullmatch(value):
                return value
            case "input" if isinstance(value, str) and value in self.table.inputs:
                return value
            case "unary" if isinstance(value, str) and value in UNARY:
                return value
            case "binary" if isinstance(value, str) and value in BINARY:
                return value
            case "constant":
                return self._constant(value)
            case _:
                raise CertificateError(f"expected a value of sort {sort}, found {value!r:.60}")

    def _constant(self, value: object) -> Constant:
        parts = _list(value, "a constant")
        if len(parts) != 2 or not isinstance(parts[0], str) or len(parts[0]) > _MAX_DIGITS:
            raise CertificateError("expected a constant to be a number and exponents of sizes")
        exponents = _mapping(parts[1], "exponents of sizes")
        for name, exponent in exponents.items():
            if name not in self.table.symbols or not _is_int(exponent) or abs(exponent) > 64:
                raise CertificateError(f"expected an exponent of a size, found {name!r:.60}")
        try:
            number = Fraction(parts[0])
        except (ValueError, ZeroDivisionError) as error:
            raise CertificateError(f"expected a number, found {parts[0]!r:.60}") from error
        return self.table.monomial(number, cast(dict[str, int], exponents))


def variables_of(rule: str) -> Mapping[str, str]:
    """The variables of a rule with their sorts. Raises CertificateError if there is no such one."""
    entry = RULES.get(rule)
    if entry is None:
        raise CertificateError(f"there is no axiom {rule!r:.60}")
    return variables(entry.left if isinstance(entry, Axiom) else entry.term)


def _content(text: str) -> dict[str, Any]:
    if len(text) > MAX_BYTES:
        raise CertificateError(f"expected at most {MAX_BYTES} bytes")
    try:
        content = _mapping(json.loads(text), "a certificate")
    except (json.JSONDecodeError, RecursionError) as error:
        raise CertificateError(f"expected JSON: {error}") from error
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise CertificateError(f"expected the format {FORMAT}, version {VERSION}")
    if content.keys() != {"format", "version", "digest", "checksum", "terms", "steps"}:
        raise CertificateError(f"expected other keys than {', '.join(sorted(content))[:200]}")
    for key in ("terms", "steps"):
        _list(content[key], key)
    return content


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list) or (what in ("a term", "a step") and not value):
        raise CertificateError(f"expected {what} to be a list, found {value!r:.60}")
    return cast(list[Any], value)


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CertificateError(f"expected {what} to be an object, found {value!r:.60}")
    return cast(dict[str, Any], value)


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
