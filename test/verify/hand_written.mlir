// RUN: prism-opt %s -p 'prism-verify{reasons=true}' | filecheck %s

// Hand-written graphs for rms_norm. The verdict is on the function's line, with a reason if there is one.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
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

// CHECK: func.func @product_then_quotient({{.*}} kernel.verdict = #kernel.verdict<equal, "{{[0-9a-f]+}}">, kernel.certificate = "{{.*}}"} {
func.func @product_then_quotient(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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

// CHECK: func.func @reciprocal_root({{.*}} kernel.verdict = #kernel.verdict<equal, "{{[0-9a-f]+}}">, kernel.certificate = "{{.*}}"} {
func.func @reciprocal_root(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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
    %r = threadblock.rsqrt %me : (!rt) -> !rt
    %q = threadblock.mul %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// CHECK: func.func @mean_by_parts({{.*}} kernel.verdict = #kernel.verdict<equal, "{{[0-9a-f]+}}">, kernel.certificate = "{{.*}}"} {
func.func @mean_by_parts(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
    %sq = threadblock.square %xt : (!xt) -> !xf
    %s0 = threadblock.sum %sq dim 1 : (!xf) -> !rp
    %s = threadblock.scale %s0 by <1 / d> : (!rp) -> !rp
    %sa = threadblock.accum %s over i : !rp -> !rt
    %ms = threadblock.scale %sa by <1> : (!rt) -> !rt
    %me = threadblock.shift %ms by <1/100000> : (!rt) -> !rt
    %r = threadblock.sqrt %me : (!rt) -> !rt
    %q = threadblock.div %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// CHECK: func.func @add_for_mul({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "result 0: (%x @ %w) / sqrt(1 / 100000 + (2 / d * sum(%x, dim 1))) is not proven equal to (%x / sqrt(1 / 100000 + (1 / d * sum(square(%x), dim 1)))) @ %w; at d = 2, n = 3, grid.x = 2, loop.i = 2 element
func.func @add_for_mul(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
    %sq = threadblock.add %xt, %xt : (!xt, !xt) -> !xf
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

// CHECK: func.func @mul_for_div({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "result 0: (%x @ %w) * sqrt(
func.func @mul_for_div(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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
    %q = threadblock.mul %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// CHECK: func.func @no_mean({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "result 0: (%x @ %w) / sqrt(1 / 100000 + sum(square(%x), dim 1)) is not proven equal
func.func @no_mean(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
    %sq = threadblock.square %xt : (!xt) -> !xf
    %s = threadblock.sum %sq dim 1 : (!xf) -> !rp
    %sa = threadblock.accum %s over i : !rp -> !rt
    %ms = threadblock.scale %sa by <1> : (!rt) -> !rt
    %me = threadblock.shift %ms by <1/100000> : (!rt) -> !rt
    %r = threadblock.sqrt %me : (!rt) -> !rt
    %q = threadblock.div %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// CHECK: func.func @another_eps({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "result 0:
func.func @another_eps(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
    %sq = threadblock.square %xt : (!xt) -> !xf
    %s = threadblock.sum %sq dim 1 : (!xf) -> !rp
    %sa = threadblock.accum %s over i : !rp -> !rt
    %ms = threadblock.scale %sa by <1 / d> : (!rt) -> !rt
    %me = threadblock.shift %ms by <1/10000> : (!rt) -> !rt
    %r = threadblock.sqrt %me : (!rt) -> !rt
    %q = threadblock.div %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// CHECK: func.func @no_root({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "result 0:
func.func @no_root(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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
    %r = threadblock.neg %me : (!rt) -> !rt
    %q = threadblock.div %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}
