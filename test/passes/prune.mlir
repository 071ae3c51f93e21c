// RUN: prism-opt %s -p 'prism-prune{report=true}' 2>&1 | filecheck %s

!x = tensor<?x?xf16, #sym.shape<[n, k]>>
!w = tensor<?x?xf16, #sym.shape<[k, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>
!r = tensor<?x1xf16, #sym.shape<[n, 1]>>
!xt = !threadblock.tile<[n, k / loop.i], f16>
!wt = !threadblock.tile<[k / loop.i, m / grid.x], f16>
!rt = !threadblock.tile<[n, 1], f16>
!ot = !threadblock.tile<[n, m / grid.x], f32>
!op = !threadblock.tile<[n, m / grid.x], f32, partial [i]>
!es = !threadblock.tile<[n / grid.x^m0, k / grid.x^m1], f16>
!er = !threadblock.tile<[n / grid.x^m2, 1], f16>
!ew = !threadblock.tile<[k / grid.x^m4, m / grid.x^m5], f16>
!eq = !threadblock.tile<[n / grid.x^m0, k / grid.x^m1], f32>
!eo = !threadblock.tile<[n / grid.x^m0, m / grid.x^m5], f32>

// CHECK: prune: @f__multiplies: not found equal to @f
// CHECK-NEXT: prune: @f__copy: the same graph as @f__kept
// CHECK-NEXT: prune: @f__contradicts: no map assignment satisfies the layouts and the constraints
// CHECK-NEXT: prune: @f__more: dominated by @f__kept, which does the same with less work
// CHECK-NEXT: prune: @f: kept 1 of 5

// CHECK: func.func @f(
func.func @f(%x: !x, %r: !r, %w: !w) -> !o {
  %q = kernel.div %x, %r : (!x, !r) -> !x
  %o = kernel.matmul %q, %w : (!x, !w) -> !o
  func.return %o : !o
}

// CHECK-NEXT: kernel.div
// CHECK-NOT: @f__multiplies
func.func @f__multiplies(%x: !x, %r: !r, %w: !w) -> !o attributes {kernel.candidate_of = @f} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %rg = %r : !r, %wg = %w : !w) -> !o {
    %a = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %b = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %c = threadblock.input %rg imap {} fmap {} : !r -> !rt
    %p = threadblock.matmul %a, %b : (!xt, !wt) -> !op
    %s = threadblock.accum %p over i : !op -> !ot
    %q = threadblock.mul %s, %c : (!ot, !rt) -> !ot
    %t = threadblock.output %q omap {x = 1} : !ot -> !o
    threadblock.yield %t : !o
  }
  func.return %o : !o
}

// CHECK: func.func @f__kept
func.func @f__kept(%x: !x, %r: !r, %w: !w) -> !o attributes {kernel.candidate_of = @f} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %rg = %r : !r, %wg = %w : !w) -> !o {
    %a = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %b = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %c = threadblock.input %rg imap {} fmap {} : !r -> !rt
    %p = threadblock.matmul %a, %b : (!xt, !wt) -> !op
    %s = threadblock.accum %p over i : !op -> !ot
    %q = threadblock.div %s, %c : (!ot, !rt) -> !ot
    %t = threadblock.output %q omap {x = 1} : !ot -> !o
    threadblock.yield %t : !o
  }
  func.return %o : !o
}

// CHECK-NOT: @f__copy
func.func @f__copy(%x: !x, %r: !r, %w: !w) -> !o attributes {kernel.candidate_of = @f} {
  %o = kernel.graph_def grid [x] loop [i] (%rg = %r : !r, %xg = %x : !x, %wg = %w : !w) -> !o {
    %c = threadblock.input %rg imap {} fmap {} : !r -> !rt
    %b = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %a = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %p = threadblock.matmul %a, %b : (!xt, !wt) -> !op
    %s = threadblock.accum %p over i : !op -> !ot
    %q = threadblock.div %s, %c : (!ot, !rt) -> !ot
    %t = threadblock.output %q omap {x = 1} : !ot -> !o
    threadblock.yield %t : !o
  }
  func.return %o : !o
}

// CHECK-NOT: @f__more
func.func @f__more(%x: !x, %r: !r, %w: !w) -> !o attributes {kernel.candidate_of = @f} {
  %o = kernel.graph_def grid [x] loop [i] (%xg = %x : !x, %rg = %r : !r, %wg = %w : !w) -> !o {
    %a = threadblock.input %xg imap {} fmap {i = 1} : !x -> !xt
    %b = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !wt
    %c = threadblock.input %rg imap {} fmap {} : !r -> !rt
    %p = threadblock.matmul %a, %b : (!xt, !wt) -> !op
    %s = threadblock.accum %p over i : !op -> !ot
    %one = threadblock.scale %s by <1> : (!ot) -> !ot
    %q = threadblock.div %one, %c : (!ot, !rt) -> !ot
    %t = threadblock.output %q omap {x = 1} : !ot -> !o
    threadblock.yield %t : !o
  }
  func.return %o : !o
}

// CHECK-NOT: @f__contradicts
func.func @f__contradicts(%x: !x, %r: !r, %w: !w) -> !o attributes {kernel.candidate_of = @f} {
  %o = kernel.graph_def grid [x] loop [] where [some(m1), equal(m1, m4)] (%xg = %x : !x, %rg = %r : !r, %wg = %w : !w) -> !o {
    %a = threadblock.input %xg imap {x = [m0, m1]} fmap {} : !x -> !es
    %c = threadblock.input %rg imap {x = [m2, m3]} fmap {} : !r -> !er
    %b = threadblock.input %wg imap {x = [m4, m5]} fmap {} : !w -> !ew
    %q = threadblock.div %a, %c : (!es, !er) -> !eq
    %p = threadblock.matmul %q, %b : (!eq, !ew) -> !eo
    %t = threadblock.output %p omap {x = [m6, m7]} : !eo -> !o
    threadblock.yield %t : !o
  }
  func.return %o : !o
}
