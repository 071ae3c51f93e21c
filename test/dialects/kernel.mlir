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
