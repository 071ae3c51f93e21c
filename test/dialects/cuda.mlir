// RUN: %roundtrip

// CHECK-LABEL: cuda.kernel @all(%x: !cuda.ptr<global>, %o: !cuda.ptr<global>) grid [2, 3, 1] block 128 shared 512 target "sm_80" version "7.0" {
cuda.kernel @all(%x: !cuda.ptr<global>, %o: !cuda.ptr<global>) grid [2, 3, 1] block 128 shared 512 target "sm_80" version "7.0" {
  // CHECK-NEXT: %t = cuda.tid.x
  %t = cuda.tid.x
  // CHECK-NEXT: %c = cuda.constant 4 : i32
  %c = cuda.constant 4 : i32
  // CHECK-NEXT: %k = cuda.mad.lo.s32 %t, %c, %t
  %k = cuda.mad.lo.s32 %t, %c, %t
  // CHECK-NEXT: %in = cuda.setp.lt.s32 %k, %c
  %in = cuda.setp.lt.s32 %k, %c
  // CHECK-NEXT: %b = cuda.mul.wide.u32 %k, %c
  %b = cuda.mul.wide.u32 %k, %c
  // CHECK-NEXT: %p = cuda.advance.global %x, %b
  %p = cuda.advance.global %x, %b
  // CHECK-NEXT: %l0, %l1, %l2, %l3 = cuda.load <global> %p[16] if %in -> i32, i32, i32, i32
  %l0, %l1, %l2, %l3 = cuda.load <global> %p[16] if %in -> i32, i32, i32, i32
  // CHECK-NEXT: %h0, %h1 = cuda.unpack.f16 %l0
  %h0, %h1 = cuda.unpack.f16 %l0
  // CHECK-NEXT: %f = cuda.cvt.f32.f16 %h0
  %f = cuda.cvt.f32.f16 %h0
  // CHECK-NEXT: %s = cuda.shared.base
  %s = cuda.shared.base
  // CHECK-NEXT: cuda.store %f : f32 to <shared> %s[8] if %in
  cuda.store %f : f32 to <shared> %s[8] if %in
  // CHECK-NEXT: cuda.barrier
  cuda.barrier
  // CHECK-NEXT: %a0, %a1, %a2, %a3 = cuda.ldmatrix trans <shared> %s[16] x 4
  %a0, %a1, %a2, %a3 = cuda.ldmatrix trans <shared> %s[16] x 4
  // CHECK-NEXT: %b0, %b1 = cuda.ldmatrix <shared> %s x 2
  %b0, %b1 = cuda.ldmatrix <shared> %s x 2
  // CHECK-NEXT: %z = cuda.constant 0.000000e+00 : f32
  %z = cuda.constant 0.0 : f32
  // CHECK-NEXT: %r0, %r1 = cuda.for %i = 0 to 64 step 2 carry (%u = %z : f32, %v = %f : f32) {
  %r0, %r1 = cuda.for %i = 0 to 64 step 2 carry (%u = %z : f32, %v = %f : f32) {
    // CHECK-NEXT: %d0, %d1, %d2, %d3 = cuda.mma %a0, %a1, %a2, %a3 * %b0, %b1 + %u, %v, %u, %v
    %d0, %d1, %d2, %d3 = cuda.mma %a0, %a1, %a2, %a3 * %b0, %b1 + %u, %v, %u, %v
    // CHECK-NEXT: %e = cuda.shuffle %d0 xor 16
    %e = cuda.shuffle %d0 xor 16
    // CHECK-NEXT: cuda.yield %e, %d1 : f32, f32
    cuda.yield %e, %d1 : f32, f32
  }
  // CHECK: cuda.copy_async 16 <global> %o[64] to <shared> %s[16] size %t if %in
  cuda.copy_async 16 <global> %o[64] to <shared> %s[16] size %t if %in
  // CHECK-NEXT: cuda.copy_async 4 <global> %o to <shared> %s
  cuda.copy_async 4 <global> %o to <shared> %s
  // CHECK-NEXT: cuda.commit
  cuda.commit
  // CHECK-NEXT: cuda.wait 2
  cuda.wait 2
  // CHECK: cuda.for %j = 0 to 4 step 1 {
  // CHECK-NEXT: }
  cuda.for %j = 0 to 4 step 1 {
  }
  // CHECK-NEXT: cuda.if %in {
  cuda.if %in {
    // CHECK-NEXT: cuda.store %r0, %r1 : f32 to <global> %o
    cuda.store %r0, %r1 : f32 to <global> %o
  }
  // CHECK: cuda.return
  cuda.return
}

// CHECK: cuda.binary @text grid [1, 1, 1] block 32 shared 0 target "sm_80" version "7.0" ptx {
// CHECK-NEXT: ".version 7.0"
// CHECK-NEXT: ".target sm_80"
// CHECK-NEXT: }
cuda.binary @text grid [1, 1, 1] block 32 shared 0 target "sm_80" version "7.0" ptx { ".version 7.0" ".target sm_80" }
