// Each pass works on what the one before printed.
// RUN: prism-opt %s -p prism-generate | xdsl-opt -p prism-prune | prism-opt -p prism-instantiate-maps | filecheck %s

!t = tensor<?x?xf16, #sym.shape<[n, k]>>
!w = tensor<?x?xf16, #sym.shape<[k, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>

// CHECK: func.func @product(
func.func @product(%x: !t, %w: !w) -> !o {
  %o = kernel.matmul %x, %w : (!t, !w) -> !o
  func.return %o : !o
}

// One candidate per choice of axes; x is the axis that cuts the last dim.
// CHECK-NOT: @product__s
// CHECK: func.func @product__g0(%x: tensor<?x?xf16, #sym.shape<[n, k]>>, %w: tensor<?x?xf16, #sym.shape<[k, m]>>) -> tensor<?x?xf16, #sym.shape<[n, m]>> attributes {kernel.candidate_of = @product} {
// CHECK-NEXT: kernel.graph_def grid [] loop [] (%x_1 = %x
// CHECK: func.func @product__g1(
// CHECK-NEXT: kernel.graph_def grid [x] loop [] (
// CHECK-NEXT: %x_tile = threadblock.input %x_1 imap {} fmap {}
// CHECK-NEXT: %w_tile = threadblock.input %w_1 imap {x = 1} fmap {}
// CHECK: func.func @product__g2(
// CHECK-NEXT: kernel.graph_def grid [x] loop [] (
// CHECK-NEXT: %x_tile = threadblock.input %x_1 imap {x = 0} fmap {}
// CHECK: func.func @product__g7(
// CHECK-NEXT: kernel.graph_def grid [x, y] loop [i] (
// CHECK-NEXT: %x_tile = threadblock.input %x_1 imap {y = 0} fmap {i = 1} : tensor<?x?xf16, #sym.shape<[n, k]>> -> !threadblock.tile<[n / grid.y, k / loop.i], f16>
// CHECK-NEXT: %w_tile = threadblock.input %w_1 imap {x = 1} fmap {i = 0} : tensor<?x?xf16, #sym.shape<[k, m]>> -> !threadblock.tile<[k / loop.i, m / grid.x], f16>
// CHECK-NEXT: %matmul = threadblock.matmul %x_tile, %w_tile : ({{.*}}) -> !threadblock.tile<[n / grid.y, m / grid.x], f32, partial [i]>
// CHECK-NEXT: %accum = threadblock.accum %matmul over i : {{.*}} -> !threadblock.tile<[n / grid.y, m / grid.x], f32>
// CHECK-NEXT: %out = threadblock.output %accum omap {x = 1, y = 0} : !threadblock.tile<[n / grid.y, m / grid.x], f32> -> tensor<?x?xf16, #sym.shape<[n, m]>>
// CHECK-NEXT: threadblock.yield %out
// CHECK-NOT: @product__g8
