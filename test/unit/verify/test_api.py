"""Pairing graphs with workloads, attaching verdicts, and the digest that binds them."""

import pytest
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64

from prism.dialects.kernel import GraphDefOp
from prism.errors import PrismError
from prism.passes.verify import VerifyPass
from prism.verify.api import attach, is_proven, match, verify_candidate, verify_pairs
from prism.verify.digest import digest

TEXT = """
func.func @f(%x: !x) -> !x { %r = kernel.exp %x : (!x) -> !x func.return %r : !x }
func.func @h(%x: !w) -> !w { %r = kernel.exp %x : (!w) -> !w func.return %r : !w }
func.func @g(%x: !x) -> !x {
  %o = kernel.graph_def grid [x] loop [] (%xg = %x : !x) -> !x {
    %t = threadblock.input %xg imap {x = 0} fmap {} : !x -> !threadblock.tile<[n / grid.x, d], f16>
    %e = threadblock.exp %t : (!threadblock.tile<[n / grid.x, d], f16>) -> !threadblock.tile<[n / grid.x, d], f32>
    %r = threadblock.output %e omap {x = 0} : !threadblock.tile<[n / grid.x, d], f32> -> !x
    threadblock.yield %r : !x
  }
  func.return %o : !x
}
"""


def test_a_hand_written_graph_meets_the_workload_of_its_signature(module_of) -> None:
    module = module_of(TEXT)
    (pair,) = match(module, module)
    assert (pair.workload.sym_name.data, pair.candidate.sym_name.data) == ("f", "g")
    (verdict,) = verify_pairs([pair])
    assert verdict.kind == "equal"


def test_graphs_and_workloads_may_be_two_files(module_of) -> None:
    workloads = module_of(TEXT[: TEXT.index("func.func @g")])
    graphs = module_of(TEXT[TEXT.index("func.func @g") :])
    (pair,) = match(workloads, graphs)
    assert pair.workload.sym_name.data == "f"


def test_a_graph_without_its_workload_is_an_error(module_of) -> None:
    module = module_of(
        TEXT.replace("func.func @f", "func.func @f2").replace(
            "-> !x {\n  %o", "-> !x attributes {kernel.candidate_of = @f} {\n  %o"
        )
    )
    with pytest.raises(PrismError, match="@g: there is no workload @f"):
        match(module, module)
    twice = module_of(TEXT + TEXT[: TEXT.index("func.func @h")].replace("@f", "@f2"))
    with pytest.raises(PrismError, match=r"expected one workload of its signature .* found 2"):
        match(twice, twice)


def test_the_only_workload_is_met_whatever_the_signature(module_of) -> None:
    text = TEXT.replace(TEXT[TEXT.index("func.func @f") : TEXT.index("func.func @h")], "")
    module = module_of(text)
    (pair,) = match(module, module)
    (verdict,) = verify_pairs([pair])
    assert verdict.kind == "not_proven"
    assert "signature" in verdict.reason


def proven(module_of):
    module = module_of(TEXT)
    (pair,) = match(module, module)
    attach(pair, verify_candidate(pair.workload, pair.candidate))
    return pair


def test_the_digest_sees_every_edit(module_of) -> None:
    edits = [
        ("threadblock.exp", "threadblock.sigmoid"),
        ("imap {x = 0}", "imap {x = 1}"),
        ("omap {x = 0}", "omap {}"),
        ("kernel.exp %x : (!x)", "kernel.tanh %x : (!x)"),
    ]
    pair = proven(module_of)
    original = digest(pair.workload, pair.candidate)
    assert len(original) == 64
    seen = {original}
    for old, new in edits:
        assert old in TEXT
        module = module_of(TEXT.replace(old, new), verify=False)
        (edited,) = match(module, module)
        edited.candidate.attributes.update(pair.candidate.attributes)
        assert not is_proven(edited.workload, edited.candidate), (old, new)
        seen.add(digest(edited.workload, edited.candidate))
    assert len(seen) == len(edits) + 1


def test_the_digest_ignores_names_verdict_and_tuning(module_of) -> None:
    pair = proven(module_of)
    assert is_proven(pair.workload, pair.candidate)
    candidate = pair.candidate
    candidate.attributes["kernel.sizes"] = DictionaryAttr({"n": IntegerAttr(8, i64)})
    candidate.attributes["kernel.target"] = StringAttr("sm_80")
    candidate.properties["sym_name"] = StringAttr("another")
    for op in candidate.walk():
        if isinstance(op, GraphDefOp):
            op.properties["params"] = DictionaryAttr({"grid.x": IntegerAttr(4, i64)})
    assert is_proven(pair.workload, candidate)


def test_only_the_verdict_equal_counts(module_of) -> None:
    module = module_of(TEXT.replace("threadblock.exp", "threadblock.tanh"))
    (pair,) = match(module, module)
    assert not is_proven(pair.workload, pair.candidate)
    attach(pair, verify_candidate(pair.workload, pair.candidate))
    assert not is_proven(pair.workload, pair.candidate)


def test_the_pass_attaches_verdicts_and_reasons(module_of) -> None:
    from xdsl.context import Context

    module = module_of(TEXT.replace("threadblock.exp", "threadblock.tanh"))
    VerifyPass(reasons=True).apply(Context(), module)
    (pair,) = match(module, module)
    attributes = pair.candidate.attributes
    assert str(attributes["kernel.verdict"]).startswith("#kernel.verdict<not_proven, ")
    reason = attributes["kernel.reason"]
    assert isinstance(reason, StringAttr)
    assert reason.data.startswith("result 0: tanh(%x) is not proven equal to exp(%x); at ")
    assert "kernel.verdict" not in pair.workload.attributes
