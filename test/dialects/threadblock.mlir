// RUN: %roundtrip

// The kernel that multiplies first and divides after the loop, reading X once.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d / loop.i], f16>
!xf = !threadblock.tile<[n, d / loop.i], f32>
!wt = !threadblock.tile<[d / loop.i, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>
!op = !threadblock.tile<[n, d / grid.x], f32, partial [i]>
!rt = !threadblock.tile<[n, 1], f32>
!rp = !threadblock.tile<[n, 1], f32, partial [i]>

// CHECK-LABEL: func.func @rms_norm__g0
func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm} {
  // CHECK: %o = kernel.graph_def grid [x] loop [i] (%xg = %x : tensor<?x?xf16, #sym.shape<[n, d]>>, %wg = %w : tensor<?x?xf16, #sym.shape<[d, d]>>) -> tensor<?x?xf16, #sym.shape<[n, d]>> {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    // CHECK: %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : tensor<?x?xf16, #sym.shape<[d, d]>> -> !threadblock.tile<[d / loop.i, d / grid.x], f16>
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    // CHECK: %m = threadblock.matmul %xt, %wt : (!threadblock.tile<[n, d / loop.i], f16>, !threadblock.tile<[d / loop.i, d / grid.x], f16>) -> !threadblock.tile<[n, d / grid.x], f32, partial [i]>
    %m = threadblock.matmul %xt, %wt : (!xt, !wt) -> !op
    // CHECK: %a = threadblock.accum %m over i : !threadblock.tile<[n, d / grid.x], f32, partial [i]> -> !threadblock.tile<[n, d / grid.x], f32>
    %a = threadblock.accum %m over i : !op -> !ot
    %sq = threadblock.square %xt : (!xt) -> !xf
    %s = threadblock.sum %sq dim 1 : (!xf) -> !rp
    %sa = threadblock.accum %s over i : !rp -> !rt
    %ms = threadblock.scale %sa by <1 / d> : (!rt) -> !rt
    %me = threadblock.shift %ms by <1/100000> : (!rt) -> !rt
    %r = threadblock.sqrt %me : (!rt) -> !rt
    %q = threadblock.div %a, %r : (!ot, !rt) -> !ot
    // CHECK: %ot = threadblock.output %q omap {x = 1} : !threadblock.tile<[n, d / grid.x], f32> -> tensor<?x?xf16, #sym.shape<[n, d]>>
    %ot = threadblock.output %q omap {x = 1} : !ot -> !x
    // CHECK-NEXT: threadblock.yield %ot : tensor<?x?xf16, #sym.shape<[n, d]>>
    threadblock.yield %ot : !x
  }
  func.return %o : !x
}

// Symbolic maps: a tile's size is divided by each axis to the power of a Boolean variable.
// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: !x) -> !x {
  // CHECK: %o = kernel.graph_def grid [x] loop [] where [at_most_one(m0, m1), equal(m0, m2), equal(m1, m3)] params {warps = 4 : i64} (
  %o = kernel.graph_def grid [x] loop [] where [at_most_one(m0, m1), equal(m0, m2), equal(m1, m3)] params {warps = 4 : i64} (%xg = %x : !x) -> !x {
    // CHECK: threadblock.input %xg imap {x = [m0, m1]} fmap {} : tensor<?x?xf16, #sym.shape<[n, d]>> -> !threadblock.tile<[n / grid.x^m0, d / grid.x^m1], f16>
    %xt = threadblock.input %xg imap {x = [m0, m1]} fmap {} : !x -> !threadblock.tile<[n / grid.x^m0, d / grid.x^m1], f16>
    %e = threadblock.exp %xt : (!threadblock.tile<[n / grid.x^m0, d / grid.x^m1], f16>) -> !threadblock.tile<[n / grid.x^m0, d / grid.x^m1], f32>
    // CHECK: threadblock.output %e omap {x = [m2, m3]} :
    %r = threadblock.output %e omap {x = [m2, m3]} : !threadblock.tile<[n / grid.x^m0, d / grid.x^m1], f32> -> !x
    threadblock.yield %r : !x
  }
  func.return %o : !x
}
