"""Hand-written graphs for the workload rms_norm, as text: the right one and edits that make it wrong."""

RIGHT = """
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>

func.func @rms_norm(%x: !x, %w: !w) -> !x {
  %norm = kernel.rms_norm %x eps <1/100000> : (!x) -> !x
  %o = kernel.matmul %norm, %w : (!x, !w) -> !x
  func.return %o : !x
}

func.func @g(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
    %sq = threadblock.square %xt : (!xt) -> !xf
    %s = threadblock.sum %sq dim 1 : (!xf) -> !rp
    %sa = threadblock.accum %s over i : !rp -> !rt
    %ms = threadblock.scale %sa by <1 / d> : (!rt) -> !rt
    %me = threadblock.shift %ms by <1/100000> : (!rt) -> !rt
    %r = threadblock.sqrt %me : (!rt) -> !rt
    %q = threadblock.div %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}
"""

EQUAL_EDITS = {
    "unchanged": [],
    "the mean taken by parts": [
        ("%s = threadblock.sum %sq dim 1", "%s0 = threadblock.sum %sq dim 1"),
        (
            "%sa = threadblock.accum %s ",
            "%s = threadblock.scale %s0 by <1 / d> : (!rp) -> !rp\n%sa = threadblock.accum %s ",
        ),
        ("scale %sa by <1 / d>", "scale %sa by <1>"),
    ],
    "a product with the reciprocal root": [
        ("threadblock.sqrt", "threadblock.rsqrt"),
        ("threadblock.div %a", "threadblock.mul %a"),
    ],
    "a product for the square": [
        ("threadblock.square %xt : (!xt)", "threadblock.mul %xt, %xt : (!xt, !xt)")
    ],
    "a loop-invariant scale inside": [
        ("%m = threadblock.matmul", "%m0 = threadblock.matmul"),
        (
            "%a = threadblock.accum %m ",
            "%m = threadblock.neg %m0 : (!op) -> !op\n%a1 = threadblock.accum %m ",
        ),
        ("%q = threadblock.div", "%a = threadblock.neg %a1 : (!ot) -> !ot\n%q = threadblock.div"),
    ],
}

WRONG_EDITS = {
    "add for mul": (
        [("threadblock.square %xt : (!xt)", "threadblock.add %xt, %xt : (!xt, !xt)")],
        "result 0: .* is not proven equal to",
    ),
    "mul for div": ([("threadblock.div", "threadblock.mul")], r"result 0: \(%x @ %w\) \* sqrt"),
    "swapped division": (
        [("threadblock.div %a, %r : (!ot, !rt)", "threadblock.div %r, %a : (!rt, !ot)")],
        "result 0: ",
    ),
    "a missing accum of the product": (
        [
            ("threadblock.accum %m over i", "threadblock.scale %m by <1>"),
            ("by <1> : !op ->", "by <1> : (!op) ->"),
        ],
        "%q = threadblock.div: uses a tile of the loop over i with a value from after it",
    ),
    "no accum at all": (
        [
            ("threadblock.accum %m over i : !op", "threadblock.scale %m by <1> : (!op)"),
            ("threadblock.accum %s over i : !rp", "threadblock.scale %s by <1> : (!rp)"),
        ],
        "%ot = threadblock.output: the tile is one of the loop over i, not accumulated",
    ),
    "an accum twice": (
        [
            (
                "%a = threadblock.accum %m over i : !op -> !ot",
                "%a0 = threadblock.accum %m over i : !op -> !ot\n%a = threadblock.accum %a0 over i : !ot -> !ot",
            ),
        ],
        "%a = threadblock.accum: the summand does not depend on i",
    ),
    "rms without the 1/d": ([("by <1 / d>", "by <1>")], "result 0: "),
    "another eps": (
        [("threadblock.shift %ms by <1/100000>", "threadblock.shift %ms by <1/10000>")],
        "result 0: ",
    ),
    "no root": ([("threadblock.sqrt", "threadblock.neg")], "result 0: "),
    "a loop that cuts only one operand": (
        [("imap {x = 1} fmap {i = 0}", "imap {x = 1} fmap {}")],
        "%m = threadblock.matmul: matmul of",
    ),
    "a wrong fmap": (
        [("imap {x = 1} fmap {i = 0}", "imap {x = 1} fmap {i = 1}")],
        "%m = threadblock.matmul: matmul of",
    ),
    "a wrong imap": (
        [("imap {x = 1} fmap {i = 0}", "imap {x = 0} fmap {i = 0}")],
        "%m = threadblock.matmul: matmul of",
    ),
    "a wrong omap": (
        [("omap {x = 1}", "omap {x = 0}")],
        "%ot = threadblock.output: dim of size n is not cut last by axis",
    ),
    "no omap": (
        [("omap {x = 1}", "omap {}")],
        "blocks along x write different values to one place",
    ),
    "an omap of a replicated tile": (
        [("imap {x = 1} fmap", "imap {} fmap")],
        "blocks along x write one value to different places",
    ),
    "the divisor inside the cut contraction": (
        [
            ("(!xt, !wt) -> !op", "(!xf, !wt) -> !op"),
            (
                "%m = threadblock.matmul %xt,",
                "%rs = threadblock.sum %sq dim 1 : (!xf) -> !rp\n%xd = threadblock.div %xt, %rs : (!xt, !rp) -> !xf\n%m = threadblock.matmul %xd,",
            ),
            ("%sq = threadblock.square %xt : (!xt) -> !xf\n", ""),
            (
                "%xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt",
                "%xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt\n%sq = threadblock.square %xt : (!xt) -> !xf",
            ),
        ],
        "%a = threadblock.accum: no axiom makes a whole tensor of red",
    ),
    "a divisor from after the loop inside it": (
        [
            (
                "    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op\n    %a = threadblock.accum %m over i : !op -> !ot\n",
                "",
            ),
            (
                "%q = threadblock.div %a, %r : (!ot, !rt) -> !ot",
                "%xd = threadblock.div %xt, %r : (!xt, !rt) -> !xf\n%m = threadblock.matmul %xd, %wt : (!xf, !wt) -> !op\n%q = threadblock.accum %m over i : !op -> !ot",
            ),
        ],
        "%xd = threadblock.div: uses a tile of the loop over i with a value from after it",
    ),
}


def edited(edits: list[tuple[str, str]]) -> str:
    """`RIGHT` with edits made; each must change something."""
    text = RIGHT
    for old, new in edits:
        if old not in text:
            raise ValueError(f"nothing to edit: {old}")
        text = text.replace(old, new)
    return text
