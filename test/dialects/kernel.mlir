// RUN: %roundtrip

!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!row = tensor<?x1xf16, #sym.shape<[n, 1]>>
!b = tensor<?x4x8xf32, #sym.shape<[b, 4, 8]>>

// CHECK-LABEL: func.func @operators
func.func @operators(%x: !x, %w: tensor<?x?xf16, #sym.shape<[d, m]>>) {
  // CHECK: kernel.matmul %x, %w : (tensor<?x?xf16, #sym.shape<[n, d]>>, tensor<?x?xf16, #sym.shape<[d, m]>>) -> tensor<?x?xf16, #sym.shape<[n, m]>>
  %0 = kernel.matmul %x, %w : (!x, tensor<?x?xf16, #sym.shape<[d, m]>>) -> tensor<?x?xf16, #sym.shape<[n, m]>>
  // CHECK: %s = kernel.sum %x dim 1 : (tensor<?x?xf16, #sym.shape<[n, d]>>) -> tensor<?x1xf16, #sym.shape<[n, 1]>>
  %s = kernel.sum %x dim 1 : (!x) -> !row
  // CHECK: kernel.div %x, %s : (tensor<?x?xf16, #sym.shape<[n, d]>>, tensor<?x1xf16, #sym.shape<[n, 1]>>) -> tensor<?x?xf16, #sym.shape<[n, d]>>
  %q = kernel.div %x, %s : (!x, !row) -> !x
  // CHECK: kernel.scale %s by <1 / d> {note = "mean"} :
  %m = kernel.scale %s by <1 / d> {note = "mean"} : (!row) -> !row
  // CHECK: kernel.rms_norm %x eps <1 / 100000> :
  %n = kernel.rms_norm %x eps <0.00001> : (!x) -> !x
  func.return
}

// Static sizes need no encoding; matmul is batched.
// CHECK-LABEL: func.func @batched
func.func @batched(%a: !b, %c: tensor<?x8x4xf32, #sym.shape<[b, 8, 4]>>, %d: tensor<4x8xf32>) {
  // CHECK: kernel.matmul %a, %c : {{.*}} -> tensor<?x4x4xf32, #sym.shape<[b, 4, 4]>>
  %0 = kernel.matmul %a, %c : (!b, tensor<?x8x4xf32, #sym.shape<[b, 8, 4]>>) -> tensor<?x4x4xf32, #sym.shape<[b, 4, 4]>>
  // CHECK: kernel.exp %d : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = kernel.exp %d : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return
}

// CHECK-LABEL: func.func @launch
// CHECK-SAME: kernel.verdict = #kernel.verdict<equal, "00ff">
func.func @launch(%x: !x) attributes {kernel.verdict = #kernel.verdict<equal, "00ff">} {
  // CHECK: %y = kernel.launch @k0(%x, %x) : (tensor<?x?xf16, #sym.shape<[n, d]>>, tensor<?x?xf16, #sym.shape<[n, d]>>) -> tensor<?x?xf16, #sym.shape<[n, d]>>
  %y = kernel.launch @k0(%x, %x) : (!x, !x) -> !x
  func.return
}

// CHECK-LABEL: func.func @attributes
func.func @attributes(%x: !x, %w: tensor<1x?xf16, #sym.shape<[1, d]>>, %c: tensor<?x4x8xf16, #sym.shape<[n, 4, 8]>>) {
  // CHECK: kernel.gelu %x :
  %0 = kernel.gelu %x : (!x) -> !x
  // CHECK: kernel.pow %x by <-3 / 2> :
  %1 = kernel.pow %x by <-1.5> : (!x) -> !x
  // CHECK: kernel.max %x dim 1 :
  %2 = kernel.max %x dim 1 : (!x) -> !row
  // CHECK: kernel.clamp %x from <-1> to <d / 2> :
  %3 = kernel.clamp %x from <-1> to <d / 2> : (!x) -> !x
  // CHECK: kernel.transpose %c perm [2, 0, 1] : {{.*}} -> tensor<8x?x4xf16, #sym.shape<[8, n, 4]>>
  %4 = kernel.transpose %c perm [2, 0, 1] : (tensor<?x4x8xf16, #sym.shape<[n, 4, 8]>>) -> tensor<8x?x4xf16, #sym.shape<[8, n, 4]>>
  // CHECK: kernel.slice %x dim 1 from <d / 4> to <d / 2> {note = "quarter"} : {{.*}} -> tensor<?x?xf16, #sym.shape<[n, d / 4]>>
  %5 = kernel.slice %x dim 1 from <d / 4> to <d / 2> {note = "quarter"} : (!x) -> tensor<?x?xf16, #sym.shape<[n, d / 4]>>
  // CHECK: kernel.concat %x, %5, %x dim 1 : {{.*}} -> tensor<?x?xf16, #sym.shape<[n, 9 * d / 4]>>
  %6 = kernel.concat %x, %5, %x dim 1 : (!x, tensor<?x?xf16, #sym.shape<[n, d / 4]>>, !x) -> tensor<?x?xf16, #sym.shape<[n, 9 * d / 4]>>
  // CHECK: kernel.broadcast %w shape [n, d] :
  %7 = kernel.broadcast %w shape [n, d] : (tensor<1x?xf16, #sym.shape<[1, d]>>) -> !x
  // CHECK: kernel.reshape %c shape [4 * n, 8] :
  %8 = kernel.reshape %c shape [n * 4, 8] : (tensor<?x4x8xf16, #sym.shape<[n, 4, 8]>>) -> tensor<?x8xf16, #sym.shape<[4 * n, 8]>>
  // CHECK: kernel.cast %x : {{.*}} -> tensor<?x?xf32, #sym.shape<[n, d]>>
  %9 = kernel.cast %x : (!x) -> tensor<?x?xf32, #sym.shape<[n, d]>>
  // CHECK: kernel.softmax %x dim 0 :
  %10 = kernel.softmax %x dim 0 : (!x) -> !x
  // CHECK: kernel.layer_norm %x, %w, %w eps <1 / 100000> :
  %11 = kernel.layer_norm %x, %w, %w eps <1.0e-5> : (!x, tensor<1x?xf16, #sym.shape<[1, d]>>, tensor<1x?xf16, #sym.shape<[1, d]>>) -> !x
  func.return
}
