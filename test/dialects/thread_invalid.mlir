// RUN: prism-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// CHECK: shape: expected [16, 16] by the layout, found [16, 8]
%f = "test.op"() : () -> !thread.fragment<[16, 8], mma warps [1, 2, 1] tiles [1, 1]>

// -----
// CHECK: partial: expected an mma layout, found rows
%f = "test.op"() : () -> !thread.fragment<[1, 32], rows threads 32 lanes 32 vector 1, partial>

// -----
// CHECK: expected positive sizes and lanes that divide threads
%f = "test.op"() : () -> !thread.fragment<[1, 32], rows threads 32 lanes 12 vector 1>

// -----
// CHECK: pitch: expected at least 8, found 4
%s = "test.op"() : () -> !thread.shared<[8, 8], f16, pitch 4>

// -----
%x = "test.op"() : () -> tensor<8x32xf16>
%s = "test.op"() : () -> !thread.shared<[8, 16], f16, pitch 24>
// CHECK: tile: expected at least 32 elements in dim 1, found 16
thread.copy %x [8, 32] to %s : tensor<8x32xf16>, !thread.shared<[8, 16], f16, pitch 24>

// -----
%x = "test.op"() : () -> tensor<8x32xf16>
%s = "test.op"() : () -> !thread.shared<[8, 32], f16, pitch 40>
// CHECK: window: expected sizes [8, 32] of the tensor, found [8, 64]
thread.copy %x [8, 64 cut i by 32] to %s : tensor<8x32xf16>, !thread.shared<[8, 32], f16, pitch 40>

// -----
%x = "test.op"() : () -> tensor<8x32xf32>
%s = "test.op"() : () -> !thread.shared<[8, 32], f16, pitch 40>
// CHECK: tile: expected element type f32 of the tensor, found f16
thread.copy %x [8, 32] to %s : tensor<8x32xf32>, !thread.shared<[8, 32], f16, pitch 40>

// -----
!acc = !thread.fragment<[16, 8], mma warps [1, 1, 1] tiles [1, 1]>
%a = "test.op"() : () -> !thread.shared<[8, 16], f16, pitch 24>
%b = "test.op"() : () -> !thread.shared<[16, 8], f16, pitch 24>
%c = "test.op"() : () -> !acc
// CHECK: operands: expected at least 16 rows and 8 columns by the layout, found 8 and 8
%d = thread.mma %a, %b, %c : !thread.shared<[8, 16], f16, pitch 24>, !thread.shared<[16, 8], f16, pitch 24>, !acc -> !acc

// -----
!acc = !thread.fragment<[16, 8], mma warps [1, 1, 1] tiles [1, 1]>
%a = "test.op"() : () -> !thread.shared<[16, 24], f16, pitch 24>
%b = "test.op"() : () -> !thread.shared<[24, 8], f16, pitch 24>
%c = "test.op"() : () -> !acc
// CHECK: operands: expected a contracted size that is a multiple of 16, found 24
%d = thread.mma %a, %b, %c : !thread.shared<[16, 24], f16, pitch 24>, !thread.shared<[24, 8], f16, pitch 24>, !acc -> !acc

// -----
!acc = !thread.fragment<[16, 8], mma warps [1, 1, 2] tiles [1, 1]>
%a = "test.op"() : () -> !thread.shared<[16, 32], f16, pitch 40>
%b = "test.op"() : () -> !thread.shared<[32, 8], f16, pitch 24>
%c = "test.op"() : () -> !acc
// CHECK: acc: expected partial just if the layout has several k warps
%d = thread.mma %a, %b, %c : !thread.shared<[16, 32], f16, pitch 40>, !thread.shared<[32, 8], f16, pitch 24>, !acc -> !acc

// -----
!part = !thread.fragment<[16, 8], mma warps [1, 1, 2] tiles [1, 1], partial>
%f = "test.op"() : () -> !part
%o = "test.op"() : () -> tensor<16x8xf16>
// CHECK: value: expected a whole fragment, found a partial one
thread.store %f to %o [16, 8] : !part, tensor<16x8xf16>

// -----
!wide = !thread.fragment<[8, 64], rows threads 128 lanes 64 vector 1>
%f = "test.op"() : () -> !wide
%s = "test.op"() : () -> !thread.shared<[8, 1], f32, pitch 1>
// CHECK: value: expected a fragment [rows, lanes] of a rows layout of vector 1 and a power of two of at most 32 lanes
thread.sum_lanes %f to %s : !wide, !thread.shared<[8, 1], f32, pitch 1>

// -----
!rows = !thread.fragment<[8, 16], rows threads 128 lanes 16 vector 1>
%f = "test.op"() : () -> !rows
%s = "test.op"() : () -> !thread.shared<[8, 30], f16, pitch 40>
// CHECK: vector: expected 1, 2, 4 or 8 that divides 30 columns, found 4
%g = thread.reduce dim 1 vector 4 (%a = %s : !thread.shared<[8, 30], f16, pitch 40>) within [8, 30] into %f : !rows {
  thread.yield %a : f32
}

// -----
!rows = !thread.fragment<[8, 16], rows threads 128 lanes 16 vector 1>
!other = !thread.fragment<[8, 16], rows threads 128 lanes 8 vector 2>
%f = "test.op"() : () -> !other
// CHECK: source 0: expected the result's type
%g = thread.map (%a = %f : !other) -> !rows {
  thread.yield %a : f32
}

// -----
// CHECK: argument 0: expected a tensor of rank 2 or 3 of f16, bf16 or f32, found tensor<?x4xf16>
thread.kernel @k(%x: tensor<?x4xf16>) grid [1, 1, 1] warps 1 target "sm_80" {
  thread.return
}

// -----
thread.kernel @k(%x: tensor<8x16xf16>) grid [1, 1, 1] warps 1 target "sm_80" {
  // CHECK: thread.zero: expected a fragment over 32 threads, found 128
  %f = thread.zero : !thread.fragment<[8, 16], rows threads 128 lanes 16 vector 1>
  thread.return
}

// -----
// CHECK: argument 0: expected at most 2147483647 bytes, found 4294967296
thread.kernel @k(%x: tensor<32768x65536xf16>) grid [1, 1, 1] warps 1 target "sm_80" {
  thread.return
}

// -----
thread.kernel @k(%x: tensor<8x16xf16>) grid [1, 1, 1] warps 1 target "sm_80" {
  %s = thread.alloc : !thread.shared<[8, 8], f16, pitch 8>
  // CHECK: thread.copy: window: expected to be inside a thread.for over i
  thread.copy %x [8, 16 cut i by 8] to %s : tensor<8x16xf16>, !thread.shared<[8, 8], f16, pitch 8>
  thread.return
}

// -----
thread.kernel @k(%x: tensor<8x16xf16>) grid [1, 1, 1] warps 1 target "sm_80" {
  // CHECK: thread.zero: expected a fragment of at most 255 registers of a thread, found 256
  %f = thread.zero : !thread.fragment<[64, 128], rows threads 32 lanes 32 vector 4>
  thread.return
}

// -----
// CHECK: vector: expected 1, 2, 4 or 8, found 3
%f = "test.op"() : () -> !thread.fragment<[1, 96], rows threads 32 lanes 32 vector 3>

// -----
// CHECK: swizzle: expected dense rows of 2 or 4 units of 16 bytes, found 64 elements, pitch 64
%s = "test.op"() : () -> !thread.shared<[8, 64], f16, pitch 64, swizzle>

// -----
// CHECK: stages: expected 1 to 6, found 7
%s = "test.op"() : () -> !thread.shared<[8, 64], f16, pitch 72, stages 7>

// -----
thread.kernel @k(%x: tensor<8x16xf16>) grid [1, 1, 1] warps 1 target "sm_80" {
  %s = thread.alloc : !thread.shared<[8, 16], f16, pitch 16, swizzle, stages 3>
  // CHECK: expected ahead or at, since the tile has stages
  thread.copy async %x [8, 16] to %s : tensor<8x16xf16>, !thread.shared<[8, 16], f16, pitch 16, swizzle, stages 3>
  thread.return
}

// -----
thread.kernel @k(%x: tensor<8x16xf16>) grid [1, 1, 1] warps 1 target "sm_80" {
  %s = thread.alloc : !thread.shared<[8, 16], f16, pitch 16, swizzle, stages 3>
  // CHECK: ahead: expected 2, one less than the stages of the tile, found 1
  thread.copy async %x [8, 16] ahead 1 to %s : tensor<8x16xf16>, !thread.shared<[8, 16], f16, pitch 16, swizzle, stages 3>
  thread.return
}

// -----
!acc = !thread.fragment<[16, 8], mma warps [1, 1, 2] tiles [1, 1], partial>
%a, %b, %c = "test.op"() : () -> (!thread.fragment<[16, 32], mma warps [1, 1, 2] tiles [1, 4]>, !thread.shared<[32, 8], f16, pitch 8>, !acc)
// The k warps of the product must be the warps along the fragment's columns.
// CHECK: lhs: expected a whole fragment of layout mma warps [1, 2, 1] tiles [1, 4]
%d = thread.mma %a, %b, %c : !thread.fragment<[16, 32], mma warps [1, 1, 2] tiles [1, 4]>, !thread.shared<[32, 8], f16, pitch 8>, !acc -> !acc
