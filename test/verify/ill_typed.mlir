// RUN: prism-opt %s --disable-verify -p 'prism-verify{reasons=true}' | filecheck %s

// Graphs that the verifiers of the ops refuse. prism-verify reads only operators and maps, so it refuses
// them by itself.
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

// CHECK: func.func @no_accum({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "%ot = threadblock.output: the tile is one of the loop over i, not accumulated
func.func @no_accum(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.scale %m by <1> : (!op) -> !ot
    %sq = threadblock.square %xt : (!xt) -> !xf
    %s = threadblock.sum %sq dim 1 : (!xf) -> !rp
    %sa = threadblock.scale %s by <1> : (!rp) -> !rt
    %ms = threadblock.scale %sa by <1 / d> : (!rt) -> !rt
    %me = threadblock.shift %ms by <1/100000> : (!rt) -> !rt
    %r = threadblock.sqrt %me : (!rt) -> !rt
    %q = threadblock.div %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// CHECK: func.func @one_accum_missing({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "%q = threadblock.div: uses a tile of the loop over i with a value from after it
func.func @one_accum_missing(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.scale %m by <1> : (!op) -> !ot
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

// CHECK: func.func @accum_twice({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "%a = threadblock.accum: the summand does not depend on i
func.func @accum_twice(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a0 = threadblock.accum %m over i : !op -> !ot
    %a = threadblock.accum %a0 over i : !ot -> !ot
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

// CHECK: func.func @swapped_division({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "result 0: sqrt(
func.func @swapped_division(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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
    %q = threadblock.div %r, %a : (!rt, !ot) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// CHECK: func.func @wrong_fmap({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "%m = threadblock.matmul: matmul of [n, d / i] and [d, d / (x * i)]
func.func @wrong_fmap(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 1} : !w -> !wt
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

// CHECK: func.func @wrong_omap({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "%ot = threadblock.output: dim of size n is not cut last by axis
func.func @wrong_omap(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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
    %ot = threadblock.output %q omap {x = 0} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// CHECK: func.func @no_omap({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "%ot = threadblock.output: blocks along x write different values to one place
func.func @no_omap(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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
    %ot = threadblock.output %q omap {} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// CHECK: func.func @divisor_in_contraction({{.*}} kernel.verdict = #kernel.verdict<not_proven, "{{[0-9a-f]+}}">, kernel.reason = "%a = threadblock.accum: no axiom makes a whole tensor of red(
func.func @divisor_in_contraction(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %sq = threadblock.square %xt : (!xt) -> !xf
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %rs = threadblock.sum %sq dim 1 : (!xf) -> !rp
    %xd = threadblock.div %xt, %rs : (!xt, !rp) -> !xf
    %m = threadblock.matmul %xd, %wt : (!xf, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
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
