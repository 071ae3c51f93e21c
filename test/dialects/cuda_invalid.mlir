// RUN: prism-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics | filecheck %s

// A barrier that not all threads reach.
cuda.kernel @k(%x: !cuda.ptr<global>) grid [1, 1, 1] block 32 shared 0 target "sm_80" version "7.0" {
  %t = cuda.tid.x
  %p = cuda.setp.lt.s32 %t, %t
  cuda.if %p {
    // CHECK: cuda.barrier under a divergent condition: all threads must reach it together
    cuda.barrier
  }
  cuda.return
}

// -----
// A shuffle inside a loop inside a condition.
cuda.kernel @k(%x: !cuda.ptr<global>) grid [1, 1, 1] block 32 shared 0 target "sm_80" version "7.0" {
  %t = cuda.tid.x
  %p = cuda.setp.lt.s32 %t, %t
  %f = cuda.constant 0.0 : f32
  cuda.if %p {
    cuda.for %i = 0 to 2 step 1 {
      // CHECK: cuda.shuffle under a divergent condition
      %g = cuda.shuffle %f xor 1
    }
  }
  cuda.return
}

// -----
%a = "test.op"() : () -> f32
// CHECK: operand 0: expected i32, found f32
%b = "cuda.add.s32"(%a, %a) : (f32, f32) -> i32

// -----
%p = "test.op"() : () -> !cuda.ptr<global>
// CHECK: offset: expected a multiple of 16 bytes, found 8
%a, %b, %c, %d = cuda.load <global> %p[8] -> i32, i32, i32, i32

// -----
%p = "test.op"() : () -> !cuda.ptr<global>
// CHECK: expected at most 16 bytes, found 32
%a, %b, %c, %d = cuda.load <global> %p -> i64, i64, i64, i64

// -----
%p = "test.op"() : () -> !cuda.ptr<global>
// CHECK: expected a vector of 1, 2 or 4 registers, found 3
%a, %b, %c = cuda.load <global> %p -> i32, i32, i32

// -----
%p = "test.op"() : () -> !cuda.ptr<shared>
// CHECK: offset: expected a multiple of 16 bytes, found 4
%a = cuda.ldmatrix <shared> %p[4] x 1

// -----
%f = "test.op"() : () -> f32
// CHECK: yielded values: expected (f32) after the step, found (i32)
%r = cuda.for %i = 0 to 2 step 1 carry (%a = %f : f32) {
  cuda.yield %i : i32
}

// -----
// CHECK: stop: expected more than start 2, found 2
cuda.for %i = 2 to 2 step 1 {
}

// -----
// CHECK: address space: expected one of global, shared, found local
%p = "test.op"() : () -> !cuda.ptr<local>

// -----
// CHECK: block: expected 1 to 1024 threads, found 2048
cuda.kernel @k() grid [1, 1, 1] block 2048 shared 0 target "sm_80" version "7.0" {
  cuda.return
}

// -----
// CHECK: name: expected letters, digits, _ and $, found 'a b'
cuda.kernel @"a b"() grid [1, 1, 1] block 32 shared 0 target "sm_80" version "7.0" {
  cuda.return
}

// -----
// CHECK: parameter 0: expected !cuda.ptr<global>, found i32
cuda.kernel @k(%n: i32) grid [1, 1, 1] block 32 shared 0 target "sm_80" version "7.0" {
  cuda.return
}

// -----
cuda.kernel @k() grid [1, 1, 1] block 32 shared 0 target "sm_80" version "7.0" {
  // CHECK: cuda.shared.base: the kernel has no shared memory
  %s = cuda.shared.base
  cuda.return
}

// -----
// CHECK: expected bounds of 30 bits, found 4294967296
cuda.for %i = 0 to 4294967296 step 1 {
}

// -----
cuda.kernel @k(%x: !cuda.ptr<global>) grid [1, 1, 1] block 32 shared 16 target "sm_80" version "7.0" {
  %s = cuda.shared.base
  // CHECK: offset of the source: expected a multiple of 16 bytes, found 8
  cuda.copy_async 16 <global> %x[8] to <shared> %s
  cuda.return
}

// -----
cuda.kernel @k(%x: !cuda.ptr<global>) grid [1, 1, 1] block 32 shared 16 target "sm_80" version "7.0" {
  %s = cuda.shared.base
  // CHECK: expected 4, 8 or 16 bytes, found 2
  cuda.copy_async 2 <global> %x to <shared> %s
  cuda.return
}
