// A product whose contracted dim is cut by the grid too: a second graph sums what the blocks owe.
// RUN: %roundtrip
!x = tensor<?x?xf16, #sym.shape<[n, k]>>
!w = tensor<?x?xf16, #sym.shape<[k, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>
!s = tensor<?x?x?xf32, #sym.shape<[split.y, n, m]>>
!xt = !threadblock.tile<[n, k / (grid.y * loop.i)], f16>
!wt = !threadblock.tile<[k / (grid.y * loop.i), m / grid.x], f16>
!pt = !threadblock.tile<[n, m / grid.x], f32, partial [y, i]>
!py = !threadblock.tile<[n, m / grid.x], f32, partial [y]>
!st = !threadblock.tile<[split.y / loop.i, n, m / grid.x], f32>
!sp = !threadblock.tile<[1, n, m / grid.x], f32, partial [i]>
!sa = !threadblock.tile<[1, n, m / grid.x], f32>
!ot = !threadblock.tile<[n, m / grid.x], f32>

func.func @matmul__g9(%x: !x, %w: !w) -> !o attributes {kernel.candidate_of = @matmul} {
  %s = kernel.graph_def grid [x, y] loop [i] (%xg = %x : !x, %wg = %w : !w) -> !s {
    %xt = threadblock.input %xg imap {y = 1} fmap {i = 1} : !x -> !xt
    %wt = threadblock.input %wg imap {x = 1, y = 0} fmap {i = 0} : !w -> !wt
    %p = threadblock.matmul %xt, %wt : (!xt, !wt) -> !pt
    %a = threadblock.accum %p over i : !pt -> !py
    // CHECK: threadblock.output %a omap {y = new, x = 1}
    %r = threadblock.output %a omap {y = new, x = 1} : !py -> !s
    threadblock.yield %r : !s
  }
  %o = kernel.graph_def grid [x] loop [i] (%sg = %s : !s) -> !o {
    %st = threadblock.input %sg imap {x = 2} fmap {i = 0} : !s -> !st
    %t = threadblock.sum %st dim 0 : (!st) -> !sp
    %a = threadblock.accum %t over i : !sp -> !sa
    %f = threadblock.reshape %a shape [n, m] : (!sa) -> !ot
    %r = threadblock.output %f omap {x = 1} : !ot -> !o
    threadblock.yield %r : !o
  }
  func.return %o : !o
}
