// Decode attention over parts of the keys: the first graph leaves what its blocks along y owe, and their
// maxima, in new leading dims; the second merges them.
// RUN: %roundtrip
!q = tensor<?x?x128xf16, #sym.shape<[b, g, 128]>>
!kt = tensor<?x128x?xf16, #sym.shape<[b, 128, h]>>
!v = tensor<?x?x128xf16, #sym.shape<[b, h, 128]>>
!ms = tensor<?x?x?x1xf32, #sym.shape<[split.y, b, g, 1]>>
!os = tensor<?x?x?x128xf32, #sym.shape<[split.y, b, g, 128]>>
!qt = !threadblock.tile<[b / grid.x, g, 128], f16>
!ktt = !threadblock.tile<[b / grid.x, 128, h / (grid.y * loop.i)], f16>
!vt = !threadblock.tile<[b / grid.x, h / (grid.y * loop.i), 128], f16>
!st = !threadblock.tile<[b / grid.x, g, h / (grid.y * loop.i)], f32>
!shifted = !threadblock.tile<[b / grid.x, g, h / (grid.y * loop.i)], f32, shift [y, i]>
!e = !threadblock.tile<[b / grid.x, g, h / (grid.y * loop.i)], f32, scaled [y, i]>
!max = !threadblock.tile<[b / grid.x, g, 1], f32, partial_max [y, i]>
!may = !threadblock.tile<[b / grid.x, g, 1], f32, partial_max [y]>
!sum = !threadblock.tile<[b / grid.x, g, 1], f32, partial_exp [y, i]>
!suy = !threadblock.tile<[b / grid.x, g, 1], f32, partial_exp [y]>
!ot = !threadblock.tile<[b / grid.x, g, 128], f32, partial_exp [y, i]>
!oy = !threadblock.tile<[b / grid.x, g, 128], f32, partial_exp [y]>
!mt = !threadblock.tile<[split.y, b / grid.x, g, 1], f32>
!row = !threadblock.tile<[1, b / grid.x, g, 1], f32>
!pt = !threadblock.tile<[split.y, b / grid.x, g, 128], f32>
!pr = !threadblock.tile<[1, b / grid.x, g, 128], f32>
!o = !threadblock.tile<[b / grid.x, g, 128], f32>

func.func @gqa_decode__g1(%q: !q, %kt: !kt, %v: !v) -> !q attributes {kernel.candidate_of = @gqa_decode} {
  %ms, %ls, %os = kernel.graph_def grid [x, y] loop [i] (%qg = %q : !q, %kg = %kt : !kt, %vg = %v : !v) -> (!ms, !ms, !os) {
    %qt = threadblock.input %qg imap {x = 0} fmap {} : !q -> !qt
    %ktt = threadblock.input %kg imap {x = 0, y = 2} fmap {i = 2} : !kt -> !ktt
    %vt = threadblock.input %vg imap {x = 0, y = 1} fmap {i = 1} : !v -> !vt
    %raw = threadblock.matmul %qt, %ktt : (!qt, !ktt) -> !st
    %s = threadblock.scale %raw by <0.08838834764831845> : (!st) -> !st
    %m = threadblock.max %s dim 2 : (!st) -> !max
    %d = threadblock.sub %s, %m : (!st, !max) -> !shifted
    %e = threadblock.exp %d : (!shifted) -> !e
    %l = threadblock.sum %e dim 2 : (!e) -> !sum
    %p = threadblock.matmul %e, %vt : (!e, !vt) -> !ot
    %ma = threadblock.accum %m over i kind max : !max -> !may
    // CHECK: threadblock.accum %l over i rescaled %m
    %la = threadblock.accum %l over i rescaled %m : !sum, !max -> !suy
    %pa = threadblock.accum %p over i rescaled %m : !ot, !max -> !oy
    // CHECK: threadblock.output %ma omap {y = new, x = 0} : !threadblock.tile<[b / grid.x, g, 1], f32, partial_max [y]> -> tensor<?x?x?x1xf32, #sym.shape<[split.y, b, g, 1]>>
    %mo = threadblock.output %ma omap {y = new, x = 0} : !may -> !ms
    %lo = threadblock.output %la omap {y = new, x = 0} : !suy -> !ms
    %po = threadblock.output %pa omap {y = new, x = 0} : !oy -> !os
    threadblock.yield %mo, %lo, %po : !ms, !ms, !os
  }
  %o = kernel.graph_def grid [x] loop [] (%mg = %ms : !ms, %lg = %ls : !ms, %og = %os : !os) -> !q {
    %mt = threadblock.input %mg imap {x = 1} fmap {} : !ms -> !mt
    %lt = threadblock.input %lg imap {x = 1} fmap {} : !ms -> !mt
    %ot = threadblock.input %og imap {x = 1} fmap {} : !os -> !pt
    %m = threadblock.max %mt dim 0 : (!mt) -> !row
    %d = threadblock.sub %mt, %m : (!mt, !row) -> !mt
    %f = threadblock.exp %d : (!mt) -> !mt
    %lf = threadblock.mul %lt, %f : (!mt, !mt) -> !mt
    %of = threadblock.mul %ot, %f : (!pt, !mt) -> !pt
    %l = threadblock.sum %lf dim 0 : (!mt) -> !row
    %p = threadblock.sum %of dim 0 : (!pt) -> !pr
    %r = threadblock.div %p, %l : (!pr, !row) -> !pr
    // CHECK: threadblock.reshape %r shape [b, g, 128]
    %flat = threadblock.reshape %r shape [b, g, 128] : (!pr) -> !o
    %w = threadblock.output %flat omap {x = 0} : !o -> !q
    threadblock.yield %w : !q
  }
  func.return %o : !q
}
