// RUN: prism-opt %s -p prism-generate 2>&1 | filecheck %s

!t = tensor<?x?xf16, #sym.shape<[n, k]>>
!w = tensor<?x?xf16, #sym.shape<[k, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>
!r = tensor<?x1xf16, #sym.shape<[n, 1]>>

// What the search cannot treat stays, with a remark.
// CHECK: remark: @calls: nothing better found, input kept: func.call is no operator of the table

// A column divisor can go before or after the product; a loop over k is possible either way, as r is invariant.
// The workload stays first.
// CHECK: func.func @scaled(%x: tensor<?x?xf16, #sym.shape<[n, k]>>
// CHECK: kernel.div
func.func @scaled(%x: !t, %r: !r, %w: !w) -> !o {
  %q = kernel.div %x, %r : (!t, !r) -> !t
  %o = kernel.matmul %q, %w : (!t, !w) -> !o
  func.return %o : !o
}

// CHECK: func.func @scaled__s0({{.*}} attributes {kernel.candidate_of = @scaled} {
// CHECK-NEXT: %o = kernel.graph_def grid [x, y, z] loop [] where [never(m1, {{.*}}), {{.*}}at_most_one(m0, m2, m4),
// CHECK-NEXT: %x_tile = threadblock.input %x_1 imap {x = [m0, m1], y = [m2, m3], z = [m4, m5]} fmap {} : tensor<?x?xf16, #sym.shape<[n, k]>> -> !threadblock.tile<[n / (grid.x^m0 * grid.y^m2 * grid.z^m4), k / (grid.x^m1 * grid.y^m3 * grid.z^m5)], f16>
// CHECK-NEXT: %r_tile = threadblock.input
// CHECK-NEXT: %w_tile = threadblock.input
// CHECK-NEXT: %div = threadblock.div %x_tile, %r_tile
// CHECK-NEXT: %matmul = threadblock.matmul %div, %w_tile
// CHECK-NEXT: %out = threadblock.output %matmul omap {x = [m18, m19], y = [m20, m21], z = [m22, m23]}
// CHECK-NEXT: threadblock.yield %out

// CHECK: func.func @scaled__s1
// CHECK-NEXT: grid [x, y, z] loop [i] where [{{.*}}some(m7){{.*}}]
// CHECK: %x_tile = threadblock.input %x_1 imap {x = [m0, m1], y = [m2, m3], z = [m4, m5]} fmap {i = [m6, m7]}
// CHECK: %matmul = threadblock.matmul {{.*}} -> !threadblock.tile<{{.*}}, f32, partial [i]>
// CHECK-NEXT: %accum = threadblock.accum %matmul over i

// CHECK: func.func @scaled__s3
// CHECK: %matmul = threadblock.matmul %x_tile, %w_tile
// CHECK-NEXT: %accum = threadblock.accum %matmul over i
// CHECK-NEXT: %div = threadblock.div %accum, %r_tile
// CHECK-NOT: @scaled__s4

// CHECK: func.func @calls
// CHECK-NOT: @calls__s
func.func @calls(%x: !t) -> !t {
  %y = func.call @same(%x) : (!t) -> !t
  %e = kernel.exp %y : (!t) -> !t
  func.return %e : !t
}

func.func @same(%x: !t) -> !t {
  func.return %x : !t
}
