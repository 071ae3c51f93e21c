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
  // CHECK: expected a reduced dim: `dim N`
  %0 = kernel.sum %x : (tensor<4x8xf16>) -> tensor<4x1xf16>
  func.return
}

// -----
// CHECK: expected a verdict, one of equal, not_proven, unknown; found 'maybe'
func.func private @f() -> () attributes {kernel.verdict = #kernel.verdict<maybe, "">}
