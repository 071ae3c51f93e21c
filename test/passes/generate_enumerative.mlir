// RUN: prism-opt %s -p "prism-generate{engine=enumerative}" | filecheck %s
// RUN: prism-opt %s -p "prism-generate{engine=enumerative concrete=imap,fmap,omap},prism-verify" | filecheck %s --check-prefix=CONCRETE

!x = tensor<?x?xf16, #sym.shape<[n, k]>>
!w = tensor<?x?xf16, #sym.shape<[k, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>

func.func @matmul(%x: !x, %w: !w) -> !o {
  %o = kernel.matmul %x, %w : (!x, !w) -> !o
  func.return %o : !o
}

// The contracted dims, m1 and m6 on x, are cut together.
// CHECK: func.func @matmul__s0
// CHECK-NEXT: kernel.graph_def grid [x, y, z] loop [] where [equal(m0, m12), equal(m1, m6),
// CHECK: %matmul = threadblock.matmul %x_tile, %w_tile
// CHECK-NEXT: %out = threadblock.output %matmul

// The loop must cut them, for it accumulates their product; it cuts nothing else.
// CHECK: func.func @matmul__s1
// CHECK-NEXT: kernel.graph_def grid [x, y, z] loop [i] where [never(m6, m15), some(m7), some(m14), equal(m0, m16),
// CHECK-NEXT: %x_tile = threadblock.input %x_1 imap {{.*}} fmap {i = [m6, m7]}
// CHECK-NEXT: %w_tile = threadblock.input %w_1 imap {{.*}} fmap {i = [m14, m15]}
// CHECK-NEXT: %matmul = threadblock.matmul %x_tile, %w_tile
// CHECK-NEXT: %accum = threadblock.accum %matmul over i
// CHECK-NOT: func.func

// CONCRETE: func.func @matmul__g0
// CONCRETE-SAME: kernel.verdict = #kernel.verdict<equal
// CONCRETE: func.func @matmul__g7
// CONCRETE-SAME: kernel.verdict = #kernel.verdict<equal
// CONCRETE-NOT: func.func
