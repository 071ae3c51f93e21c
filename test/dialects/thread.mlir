// RUN: %roundtrip

!acc = !thread.fragment<[8, 64], mma warps [4, 1, 1] tiles [1, 1] swap>
!part = !thread.fragment<[16, 16], mma warps [1, 2, 2] tiles [1, 1], partial>
!full = !thread.fragment<[16, 16], mma warps [1, 2, 2] tiles [1, 1]>
!rows = !thread.fragment<[8, 16], rows threads 128 lanes 16 vector 1>
!x = !thread.shared<[8, 64], f16, pitch 72>
!w = !thread.shared<[64, 64], f16, pitch 72>

// CHECK-LABEL: thread.kernel @k(%x: tensor<8x4096xf16>, %w: tensor<4096x4096xf16>, %o: tensor<8x4096xf16>) grid [64, 1, 1] warps 4 target "sm_80" {
thread.kernel @k(%x: tensor<8x4096xf16>, %w: tensor<4096x4096xf16>, %o: tensor<8x4096xf16>) grid [64, 1, 1] warps 4 target "sm_80" {
  // CHECK-NEXT: %xs = thread.alloc : !thread.shared<[8, 64], f16, pitch 72>
  %xs = thread.alloc : !x
  %ws = thread.alloc : !w
  %s = thread.alloc : !thread.shared<[8, 1], f32, pitch 1>
  // CHECK: %z = thread.zero : !thread.fragment<[8, 64], mma warps [4, 1, 1] tiles [1, 1] swap>
  %z = thread.zero : !acc
  // CHECK-NEXT: %y = thread.zero : !thread.fragment<[8, 16], rows threads 128 lanes 16 vector 1>
  %y = thread.zero : !rows
  // CHECK-NEXT: %a, %t = thread.for i < 64 carry (%b = %z : {{.*}}, %u = %y : {{.*}}) {
  %a, %t = thread.for i < 64 carry (%b = %z : !acc, %u = %y : !rows) {
    // CHECK-NEXT: thread.copy %x [8, 4096 cut i by 64] to %xs : tensor<8x4096xf16>, !thread.shared<[8, 64], f16, pitch 72>
    thread.copy %x [8, 4096 cut i by 64] to %xs : tensor<8x4096xf16>, !x
    // CHECK-NEXT: thread.copy %w [4096 cut i by 64, 4096 cut x by 64] to %ws :
    thread.copy %w [4096 cut i by 64, 4096 cut x by 64] to %ws : tensor<4096x4096xf16>, !w
    // CHECK-NEXT: thread.barrier
    thread.barrier
    // CHECK-NEXT: %c = thread.mma %xs, %ws, %b :
    %c = thread.mma %xs, %ws, %b : !x, !w, !acc -> !acc
    // CHECK-NEXT: %v = thread.reduce dim 1 vector 4 (%e = %xs : !thread.shared<[8, 64], f16, pitch 72>) within [8, 4096 cut i by 64] into %u : {{.*}} {
    %v = thread.reduce dim 1 vector 4 (%e = %xs : !x) within [8, 4096 cut i by 64] into %u : !rows {
      // CHECK-NEXT: %f = arith.mulf %e, %e : f32
      %f = arith.mulf %e, %e : f32
      // CHECK-NEXT: thread.yield %f : f32
      thread.yield %f : f32
    }
    // CHECK: thread.barrier
    thread.barrier
    // CHECK-NEXT: thread.yield %c, %v :
    thread.yield %c, %v : !acc, !rows
  }
  // CHECK: thread.sum_lanes %t to %s :
  thread.sum_lanes %t to %s : !rows, !thread.shared<[8, 1], f32, pitch 1>
  thread.barrier
  // CHECK: %q = thread.map (%g = %a : {{.*}}, %h = %s : {{.*}}) within [8, 64] -> {{.*}} {
  %q = thread.map (%g = %a : !acc, %h = %s : !thread.shared<[8, 1], f32, pitch 1>) within [8, 64] -> !acc {
    %i = arith.divf %g, %h : f32
    thread.yield %i : f32
  }
  // CHECK: thread.store %q to %o [8, 4096 cut x by 64] once [y] :
  thread.store %q to %o [8, 4096 cut x by 64] once [y] : !acc, tensor<8x4096xf16>
  %p = thread.zero : !part
  %m = thread.alloc : !thread.shared<[1, 512], f32, pitch 512>
  // CHECK: %n = thread.sum_warps %p via %m : !thread.fragment<[16, 16], mma warps [1, 2, 2] tiles [1, 1], partial>, !thread.shared<[1, 512], f32, pitch 512> -> !thread.fragment<[16, 16], mma warps [1, 2, 2] tiles [1, 1]>
  %n = thread.sum_warps %p via %m : !part, !thread.shared<[1, 512], f32, pitch 512> -> !full
  %k = thread.alloc : !thread.shared<[10, 9], f16, pitch 24>
  // CHECK: thread.spill %n to %k :
  thread.spill %n to %k : !full, !thread.shared<[10, 9], f16, pitch 24>
  // CHECK-NEXT: thread.for i < 2 {
  thread.for i < 2 {
  }
  // CHECK: %ring = thread.alloc : !thread.shared<[64, 32], f16, pitch 32, swizzle, stages 3>
  %ring = thread.alloc : !thread.shared<[64, 32], f16, pitch 32, swizzle, stages 3>
  // CHECK-NEXT: thread.copy async %w [4096 cut i by 64, 4096 cut x by 32] at i = 1 to %ring :
  thread.copy async %w [4096 cut i by 64, 4096 cut x by 32] at i = 1 to %ring : tensor<4096x4096xf16>, !thread.shared<[64, 32], f16, pitch 32, swizzle, stages 3>
  // CHECK-NEXT: thread.commit
  thread.commit
  // CHECK-NEXT: thread.for i < 64 {
  thread.for i < 64 {
    // CHECK-NEXT: thread.wait 1
    thread.wait 1
    // CHECK-NEXT: thread.copy async %w [4096 cut i by 64, 4096 cut x by 32] ahead 2 to %ring :
    thread.copy async %w [4096 cut i by 64, 4096 cut x by 32] ahead 2 to %ring : tensor<4096x4096xf16>, !thread.shared<[64, 32], f16, pitch 32, swizzle, stages 3>
  }
  thread.return
}

// CHECK: thread.kernel @chained
thread.kernel @chained() grid [1, 1, 1] warps 2 target "sm_80" {
  %v = thread.alloc : !thread.shared<[32, 8], f16, pitch 8>
  %p = thread.zero : !thread.fragment<[16, 32], mma warps [1, 2, 1] tiles [1, 2]>
  %o = thread.zero : !thread.fragment<[16, 8], mma warps [1, 1, 2] tiles [1, 1], partial>
  // CHECK: %q = thread.mma %p, %v, %o : !thread.fragment<[16, 32], mma warps [1, 2, 1] tiles [1, 2]>,
  %q = thread.mma %p, %v, %o : !thread.fragment<[16, 32], mma warps [1, 2, 1] tiles [1, 2]>, !thread.shared<[32, 8], f16, pitch 8>, !thread.fragment<[16, 8], mma warps [1, 1, 2] tiles [1, 1], partial> -> !thread.fragment<[16, 8], mma warps [1, 1, 2] tiles [1, 1], partial>
  %z = thread.zero : !thread.fragment<[16, 16], mma warps [1, 2, 1] tiles [1, 1]>
  // CHECK: %s = thread.reduce dim 1 vector 1 (%e = %p : {{.*}}) within [16, 30] into %z : !thread.fragment<[16, 16], mma warps [1, 2, 1] tiles [1, 1]> {
  %s = thread.reduce dim 1 vector 1 (%e = %p : !thread.fragment<[16, 32], mma warps [1, 2, 1] tiles [1, 2]>) within [16, 30] into %z : !thread.fragment<[16, 16], mma warps [1, 2, 1] tiles [1, 1]> {
    thread.yield %e : f32
  }
  %t = thread.alloc : !thread.shared<[16, 2], f32, pitch 4>
  // CHECK: thread.sum_lanes %s to %t :
  thread.sum_lanes %s to %t : !thread.fragment<[16, 16], mma warps [1, 2, 1] tiles [1, 1]>, !thread.shared<[16, 2], f32, pitch 4>
  thread.return
}
