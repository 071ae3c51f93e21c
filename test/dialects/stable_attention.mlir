// One pass over keys and values with a running maximum: the tiles of a loop are corrected by it.
// RUN: %roundtrip
!q = tensor<?x?x128xf16, #sym.shape<[b, g, 128]>>
!kt = tensor<?x128x?xf16, #sym.shape<[b, 128, h]>>
!v = tensor<?x?x128xf16, #sym.shape<[b, h, 128]>>
!qt = !threadblock.tile<[b / grid.x, g, 128], f16>
!ktt = !threadblock.tile<[b / grid.x, 128, h / loop.i], f16>
!vt = !threadblock.tile<[b / grid.x, h / loop.i, 128], f16>
!st = !threadblock.tile<[b / grid.x, g, h / loop.i], f32>
!shifted = !threadblock.tile<[b / grid.x, g, h / loop.i], f32, shift [i]>
!e = !threadblock.tile<[b / grid.x, g, h / loop.i], f32, scaled [i]>
!max = !threadblock.tile<[b / grid.x, g, 1], f32, partial_max [i]>
!sum = !threadblock.tile<[b / grid.x, g, 1], f32, partial_exp [i]>
!row = !threadblock.tile<[b / grid.x, g, 1], f32>
!ot = !threadblock.tile<[b / grid.x, g, 128], f32, partial_exp [i]>
!o = !threadblock.tile<[b / grid.x, g, 128], f32>

// CHECK-LABEL: func.func @gqa_decode__g0
func.func @gqa_decode__g0(%q: !q, %kt: !kt, %v: !v) -> !q attributes {kernel.candidate_of = @gqa_decode} {
  %o = kernel.graph_def grid [x] loop [i] (%qg = %q : !q, %kg = %kt : !kt, %vg = %v : !v) -> !q {
    %qt = threadblock.input %qg imap {x = 0} fmap {} : !q -> !qt
    %ktt = threadblock.input %kg imap {x = 0} fmap {i = 2} : !kt -> !ktt
    %vt = threadblock.input %vg imap {x = 0} fmap {i = 1} : !v -> !vt
    %raw = threadblock.matmul %qt, %ktt : (!qt, !ktt) -> !st
    %s = threadblock.scale %raw by <0.08838834764831845> : (!st) -> !st
    // CHECK: %m = threadblock.max %s dim 2 : (!threadblock.tile<[b / grid.x, g, h / loop.i], f32>) -> !threadblock.tile<[b / grid.x, g, 1], f32, partial_max [i]>
    %m = threadblock.max %s dim 2 : (!st) -> !max
    // CHECK: -> !threadblock.tile<[b / grid.x, g, h / loop.i], f32, shift [i]>
    %d = threadblock.sub %s, %m : (!st, !max) -> !shifted
    %e = threadblock.exp %d : (!shifted) -> !e
    %l = threadblock.sum %e dim 2 : (!e) -> !sum
    %p = threadblock.matmul %e, %vt : (!e, !vt) -> !ot
    // CHECK: %la = threadblock.accum %l over i rescaled %m : !threadblock.tile<[b / grid.x, g, 1], f32, partial_exp [i]>, !threadblock.tile<[b / grid.x, g, 1], f32, partial_max [i]> -> !threadblock.tile<[b / grid.x, g, 1], f32>
    %la = threadblock.accum %l over i rescaled %m : !sum, !max -> !row
    %pa = threadblock.accum %p over i rescaled %m : !ot, !max -> !o
    %r = threadblock.div %pa, %la : (!o, !row) -> !o
    %ot = threadblock.output %r omap {x = 0} : !o -> !q
    threadblock.yield %ot : !q
  }
  func.return %o : !q
}
