// Bad input: one line with file, line and column; exit status 2.
// RUN: not prism optimize %s --shape n=8,d=64 2>&1 | filecheck %s --check-prefix=SHAPE
// RUN: not prism optimize %examples/rms_norm.mlir --shape n=8,d=0 2>&1 | filecheck %s --check-prefix=ZERO
// RUN: not prism optimize %examples/rms_norm.mlir --shape n=8,d=64 --target sm_1 2>&1 | filecheck %s --check-prefix=TARGET

!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[e, d]>>

func.func @f(%x: !x, %w: !w) -> !x {
  %o = kernel.matmul %x, %w : (!x, !w) -> !x
  func.return %o : !x
}

// SHAPE: diagnostics.mlir:10:3: error: kernel.matmul: operand rhs: expected size d in dim 0, the contracted dim of lhs [n, d], found [e, d]
// ZERO: rms_norm.mlir:3:37: error: --shape: size 'd' must be positive, found 0
// TARGET: rms_norm.mlir:6:1: error: unknown target 'sm_1' (known: sm_80, sm_86, sm_89, sm_90, sm_100)
