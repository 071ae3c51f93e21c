// RUN: prism-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

!x = tensor<?x?xf16, #sym.shape<[n, d]>>
func.func @f(%x: !x) {
  // CHECK: operand rhs: expected size d in dim 0, the contracted dim of lhs [n, d], found [n, d]
  %0 = kernel.matmul %x, %x : (!x, !x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: tensor<?x?xf16, #sym.shape<[n, m]>>) {
  // CHECK: operand rhs: expected size d or 1 in dim 1 to meet lhs [n, d], found [n, m]
  %0 = kernel.add %x, %y : (!x, tensor<?x?xf16, #sym.shape<[n, m]>>) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
func.func @f(%x: !x) {
  // CHECK: result: expected shape [n, 1], found [n, d]
  %0 = kernel.sum %x dim 1 : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
func.func @f(%x: !x) {
  // CHECK: dim: expected one of operand input [n, d], found 2
  %0 = kernel.sum %x dim 2 : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
func.func @f(%x: !x) {
  // CHECK: result: expected element type f16, found f32
  %0 = kernel.exp %x : (!x) -> tensor<?x?xf32, #sym.shape<[n, d]>>
  func.return
}

// -----
func.func @f(%x: tensor<4x8xi32>) {
  // CHECK: operand input: expected element type f16, bf16 or f32, found i32
  %0 = kernel.exp %x : (tensor<4x8xi32>) -> tensor<4x8xi32>
  func.return
}

// -----
func.func @f(%x: tensor<?x8xf16>) {
  // CHECK: operand input: dim 0 of tensor<?x8xf16> is dynamic and has no symbolic size: expected an encoding #sym.shape<[...]>
  %0 = kernel.exp %x : (tensor<?x8xf16>) -> tensor<?x8xf16>
  func.return
}

// -----
!x = tensor<4x8xf16, #sym.shape<[4, 9]>>
func.func @f(%x: !x) {
  // CHECK: operand input: dim 1 of tensor<4x8xf16, #sym.shape<[4, 9]>>: expected 9 for the size 9, found 8
  %0 = kernel.exp %x : (!x) -> !x
  func.return
}

// -----
func.func @f(%x: tensor<4x8xf16>) {
  // CHECK: constant <1 / loop.i>: expected sizes of the workload only, found loop.i
  %0 = kernel.scale %x by <1 / loop.i> : (tensor<4x8xf16>) -> tensor<4x8xf16>
  func.return
}

// -----
func.func @f(%x: tensor<4x8xf16>) {
  // CHECK: expected a dim: `dim N`
  %0 = kernel.sum %x : (tensor<4x8xf16>) -> tensor<4x1xf16>
  func.return
}

// -----
// CHECK: expected a verdict, one of equal, not_proven, unknown; found 'maybe'
func.func private @f() -> () attributes {kernel.verdict = #kernel.verdict<maybe, "">}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: expected a permutation: `perm [..]`
  %0 = kernel.transpose %x : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: perm: expected each of the dims 0 to 1 once, found [0, 2]
  %0 = kernel.transpose %x perm [0, 2] : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: bounds: expected a part of the d elements of dim 1 for all sizes, found from 0 to d + 1
  %0 = kernel.slice %x dim 1 from <0> to <d + 1> : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: expected 2 operands or more, found 1
  %0 = kernel.concat %x dim 1 : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: expected 3 operand(s), found 1
  %0 = kernel.layer_norm %x eps <0> : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: eps: expected a number of at least 0, found -1
  %0 = kernel.rms_norm %x eps <-1> : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: by: expected a number, found d
  %0 = kernel.pow %x by <d> : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: unexpected dim: `dim N`
  %0 = kernel.exp %x dim 1 : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: shape: expected d * n elements as operand input [n, d] has, found [d, d]
  %0 = kernel.reshape %x shape [d, d] : (!x) -> tensor<?x?xf16, #sym.shape<[d, d]>>
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: bound <grid.x>: expected sizes of the workload only, found grid.x
  %0 = kernel.clamp %x from <0> to <grid.x> : (!x) -> !x
  func.return
}

// -----
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!y = tensor<?x?xf32, #sym.shape<[n, d]>>
func.func @f(%x: !x, %y: !y) {
  // CHECK: operand rhs: expected element type f16, found f32
  %0 = kernel.add %x, %y : (!x, !y) -> !x
  func.return
}
