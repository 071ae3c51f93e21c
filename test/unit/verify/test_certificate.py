"""Certificates are accepted as they are made and refused after any change."""

import copy
import json
import random
import subprocess
import sys

import pytest

from prism.verify.api import verify_candidates
from prism.verify.certificate import CertificateError, checksum, replay
from prism.verify.checker import RULES

WORKLOADS = ("matmul", "rms_norm", "swiglu", "rms_norm_mlp", "attention", "qk_norm_attention")


def certified(candidates, name: str):
    """A workload and the graphs with a certificate, of which each graph proven equal has one."""
    workload, graphs = candidates(name)
    verdicts = verify_candidates(workload, graphs[:8], certify=True)
    assert all(bool(v.certificate) == (v.kind == "equal") for v in verdicts)
    pairs = [(g, v.certificate) for g, v in zip(graphs, verdicts, strict=False) if v.certificate]
    assert pairs
    return workload, pairs


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_proven_graph_has_a_certificate_that_replays(candidates, name: str) -> None:
    workload, graphs = candidates(name)
    assert {v.kind for v in verify_candidates(workload, graphs[:8], certify=True)} == {"equal"}
    workload, pairs = certified(candidates, name)
    for graph, text in pairs:
        assert replay(workload, graph, text) == len(json.loads(text)["steps"])
    assert certified(candidates, name)[1][-1][1] == pairs[-1][1]


def refused(workload, graph, content, *, signed: bool = True) -> bool:
    """Whether changed content is refused, by the checker itself if it is `signed` again."""
    content = dict(content)
    if signed:
        content["checksum"] = checksum(content["digest"], content["terms"], content["steps"])
    try:
        replay(workload, graph, json.dumps(content))
    except CertificateError:
        return True
    return False


def without(content, index: int):
    shorter = copy.deepcopy(content)
    del shorter["steps"][index]
    return shorter


def minimal(workload, graph, text: str):
    """A certificate without the steps that a proof does not need."""
    content = json.loads(text)
    index = 0
    while index < len(content["steps"]):
        shorter = without(content, index)
        if refused(workload, graph, shorter):
            index += 1
        else:
            content = shorter
    assert content["steps"]
    return content


@pytest.mark.parametrize("name", ["rms_norm", "attention"])
def test_every_change_of_a_needed_step_is_refused(candidates, name: str) -> None:
    workload, pairs = certified(candidates, name)
    graph, text = pairs[-1]
    content = minimal(workload, graph, text)
    state = random.Random(name)
    allowed = 0
    tried = 0
    for index, (rule, values) in enumerate(content["steps"]):
        assert refused(workload, graph, without(content, index))
        for other in ("nothing", *state.sample(sorted(RULES), 5)):
            changed = copy.deepcopy(content)
            changed["steps"][index][0] = other
            assert other == rule or refused(workload, graph, changed)
            assert other == rule or refused(workload, graph, changed, signed=False)
        for variable, value in values.items():
            for other in others(content, value, state):
                changed = copy.deepcopy(content)
                changed["steps"][index][1][variable] = other
                assert refused(workload, graph, changed, signed=False)
                tried += 1
                allowed += not refused(workload, graph, changed)
    # Signed again, another substitution passes only as another proof: a term equal to the old one.
    assert tried > 100
    assert allowed < tried / 20


def others(content, value, state: random.Random):
    """Other values of a variable, also of other types."""
    found = {
        int: [-1, len(content["terms"]), *state.sample(range(len(content["terms"])), 4)],
        str: ["nothing", "0.i", "0.x", "add", "sub", "neg"],
        list: [["7", {}], ["1/0", {}], ["1", {"d": 99}], ["1", {"?": 1}], []],
    }[type(value)]
    return [other for other in (*found, None, 1.5, {}) if other != value]


@pytest.mark.parametrize("name", ["rms_norm", "attention"])
def test_altered_terms_are_refused(candidates, name: str) -> None:
    workload, pairs = certified(candidates, name)
    graph, text = pairs[-1]
    content = minimal(workload, graph, text)
    used = {v for _, values in content["steps"] for v in values.values() if isinstance(v, int)}
    for index, (head, *_) in enumerate(content["terms"]):
        if head == "un" and index in used:
            changed = copy.deepcopy(content)
            changed["terms"][index][1] = "tanh" if changed["terms"][index][1] != "tanh" else "exp"
            assert refused(workload, graph, changed)
        size = len(content["terms"])
        for entry in ([], ["in", "99"], ["?"], ["sum", 1], "in", 7, ["un", "exp", size]):
            changed = copy.deepcopy(content)
            changed["terms"][index] = entry
            assert refused(workload, graph, changed)


def test_a_certificate_is_about_one_workload_and_graph(candidates) -> None:
    workload, pairs = certified(candidates, "rms_norm")
    other, others = certified(candidates, "swiglu")
    (graph, text), (third, third_text) = pairs[0], pairs[1]
    for a, b, certificate in (
        (workload, third, text),
        (workload, graph, third_text),
        (other, graph, text),
        (other, others[0][0], text),
    ):
        with pytest.raises(CertificateError, match="another workload or graph"):
            replay(a, b, certificate)
    content = json.loads(text)
    content["digest"] = json.loads(third_text)["digest"]
    wrong = {**content, "digest": json.loads(others[-1][1])["digest"]}
    assert refused(other, others[-1][0], wrong)


def test_malformed_text_is_refused(candidates) -> None:
    workload, pairs = certified(candidates, "matmul")
    graph, text = pairs[-1]
    content = json.loads(text)
    for malformed in (
        "",
        "[" * 100_000,
        "null",
        "[]",
        "{}",
        text[:-1],
        json.dumps({**content, "version": 2}),
        json.dumps({**content, "format": "x"}),
        json.dumps({**content, "more": 1}),
        json.dumps({**content, "steps": {}}),
        json.dumps({**content, "terms": None}),
        json.dumps({**content, "steps": [1]}),
        json.dumps({**content, "steps": [[]]}),
        json.dumps({**content, "steps": [["comb-of-part"]]}),
        json.dumps({**content, "steps": [["comb-of-part", []]]}),
        json.dumps({**content, "steps": []}),
    ):
        with pytest.raises(CertificateError):
            replay(workload, graph, malformed)


def test_the_checker_needs_neither_egglog_nor_the_search() -> None:
    code = (
        "import sys, prism.verify.certificate\n"
        "print([m for m in sys.modules if m.startswith(('egglog', 'prism.search'))])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"
