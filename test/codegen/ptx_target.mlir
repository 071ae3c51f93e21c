// Kernels print as PTX text, with their code or as text already.
// RUN: prism-opt %s -t prism-ptx | filecheck %s

// CHECK:      .version 7.0
// CHECK-NEXT: .target sm_80
// CHECK-NEXT: .address_size 64
// CHECK-NEXT: .visible .entry add(
// CHECK:      .reqntid 128, 1, 1
// CHECK:        @%p1 ld.global.f32 %f1, [%rd5];
// CHECK:        add.f32 %f3, %f1, %f2;
// CHECK-NEXT:   @%p1 st.global.f32 [%rd7], %f3;
// CHECK-NEXT:   ret;
// CHECK-NEXT: }
cuda.kernel @add(%x: !cuda.ptr<global>, %y: !cuda.ptr<global>, %o: !cuda.ptr<global>) grid [2, 1, 1] block 128 shared 0 target "sm_80" version "7.0" {
  %t = cuda.tid.x
  %b = cuda.ctaid.x
  %threads = cuda.constant 128 : i32
  %size = cuda.constant 200 : i32
  %k = cuda.mad.lo.s32 %b, %threads, %t
  %in = cuda.setp.lt.s32 %k, %size
  %bytes = cuda.constant 4 : i32
  %offset = cuda.mul.wide.u32 %k, %bytes
  %xp = cuda.advance.global %x, %offset
  %yp = cuda.advance.global %y, %offset
  %op = cuda.advance.global %o, %offset
  %xv = cuda.load <global> %xp if %in -> f32
  %yv = cuda.load <global> %yp if %in -> f32
  %sum = cuda.add.f32 %xv, %yv
  cuda.store %sum : f32 to <global> %op if %in
  cuda.return
}

// CHECK-NEXT: // text
cuda.binary @text grid [1, 1, 1] block 32 shared 0 target "sm_80" version "7.0" ptx { "// text" }
