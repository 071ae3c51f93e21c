// RUN: prism-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// A sum owed meets a nonlinear op.
// CHECK: axis i: no layout rule of threadblock.sqrt for operand input partial
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
    %sq = threadblock.square %xt : (!xt) -> !xf
    %s = threadblock.sum %sq dim 1 : (!xf) -> !rp
    %bad = threadblock.sqrt %s : (!rp) -> !rp
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

// -----

// Omap.
// CHECK: operand tile: expected layout shard(0) on axis x by the omap, found shard(1)
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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

// -----

// Imap of a missing axis.
// CHECK: imap: expected axes of [x] of the graph, found y
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {y = 1} fmap {i = 0} : !w -> !wt
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

// -----

// Imap against the type.
// CHECK: result: expected !threadblock.tile<[d / (grid.x * loop.i), d], f16>, found !threadblock.tile<[d / loop.i, d / grid.x], f16>
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 0} fmap {i = 0} : !w -> !wt
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

// -----

// Accum of a whole value.
// CHECK: operand tile: expected layout partial on axis i, found repl
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
    %sq = threadblock.square %xt : (!xt) -> !xf
    %s = threadblock.sum %sq dim 1 : (!xf) -> !rp
    %sa = threadblock.accum %s over i : !rp -> !rt
    %bad = threadblock.accum %sa over i : !rt -> !rt
    %ms = threadblock.scale %sa by <1 / d> : (!rt) -> !rt
    %me = threadblock.shift %ms by <1/100000> : (!rt) -> !rt
    %r = threadblock.sqrt %me : (!rt) -> !rt
    %q = threadblock.div %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// -----

// A value of the loop meets one from after it.
// CHECK: operand %xt of threadblock.div: expected a value from after the loop over i, as another operand is; found layout shard(1)
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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
    %bad = threadblock.div %xt, %r : (!xt, !rt) -> !xf
    %q = threadblock.div %a, %r : (!ot, !rt) -> !ot
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// -----

// An output with a sum owed.
// CHECK: operand tile: expected layout repl on axis i by the omap, found partial
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
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
    %ot = threadblock.output %m omap {x = 1} : !op -> !x
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// -----

// Layout of a result.
// CHECK: result: expected layout partial on axis i, found repl
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !ot
    %a = threadblock.accum %m over i : !ot -> !ot
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

// -----

// Computed tiles are f32.
// CHECK: result: expected element type f32, found f16
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    %a = threadblock.accum %m over i : !op -> !ot
    %sq = threadblock.square %xt : (!xt) -> !xt
    %s = threadblock.sum %sq dim 1 : (!xt) -> !rp
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
