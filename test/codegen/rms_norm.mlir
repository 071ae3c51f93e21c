// The kernel that multiplies first and divides after the loop, at sizes that no tile divides.
// RUN: prism-opt %s -p prism-verify,prism-lower-to-thread | filecheck %s --check-prefix=THREAD
// RUN: prism-opt %s -p prism-verify,prism-lower-to-thread,prism-lower-to-cuda | filecheck %s --check-prefix=CUDA
// RUN: prism-opt %s -p prism-verify,prism-lower-to-thread,prism-lower-to-cuda,prism-emit-ptx | filecheck %s --check-prefix=PTX

!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>

func.func @rms_norm(%x: !x, %w: !w) -> !x {
  %norm = kernel.rms_norm %x eps <1 / 100000> : (!x) -> !x
  %o = kernel.matmul %norm, %w : (!x, !w) -> !x
  func.return %o : !x
}

func.func @rms_norm__g0(%x: !x, %w: !w) -> !x attributes {kernel.candidate_of = @rms_norm, kernel.sizes = {n = 7 : i64, d = 1000 : i64}, kernel.target = "sm_80"} {
  %o = kernel.graph_def grid [x] loop [i] params {"grid.x" = 16 : i64, "tile.x" = 64 : i64, "loop.i" = 16 : i64, "tile.i" = 64 : i64, warps = 4 : i64, swap = 1 : i64, stages = 3 : i64} (%xg = %x : !x, %wg = %w : !w) -> !x {
    %xt = threadblock.input %xg imap {} fmap {i = 1} : !x -> !threadblock.tile<[n, d / loop.i], f16>
    %wt = threadblock.input %wg imap {x = 1} fmap {i = 0} : !w -> !threadblock.tile<[d / loop.i, d / grid.x], f16>
    %m = threadblock.matmul %xt, %wt : (!threadblock.tile<[n, d / loop.i], f16>, !threadblock.tile<[d / loop.i, d / grid.x], f16>) -> !threadblock.tile<[n, d / grid.x], f32, partial [i]>
    %a = threadblock.accum %m over i : !threadblock.tile<[n, d / grid.x], f32, partial [i]> -> !threadblock.tile<[n, d / grid.x], f32>
    %sq = threadblock.square %xt : (!threadblock.tile<[n, d / loop.i], f16>) -> !threadblock.tile<[n, d / loop.i], f32>
    %s = threadblock.sum %sq dim 1 : (!threadblock.tile<[n, d / loop.i], f32>) -> !threadblock.tile<[n, 1], f32, partial [i]>
    %ss = threadblock.accum %s over i : !threadblock.tile<[n, 1], f32, partial [i]> -> !threadblock.tile<[n, 1], f32>
    %ms = threadblock.scale %ss by <1 / d> : (!threadblock.tile<[n, 1], f32>) -> !threadblock.tile<[n, 1], f32>
    %me = threadblock.shift %ms by <1 / 100000> : (!threadblock.tile<[n, 1], f32>) -> !threadblock.tile<[n, 1], f32>
    %r = threadblock.sqrt %me : (!threadblock.tile<[n, 1], f32>) -> !threadblock.tile<[n, 1], f32>
    %q = threadblock.div %a, %r : (!threadblock.tile<[n, d / grid.x], f32>, !threadblock.tile<[n, 1], f32>) -> !threadblock.tile<[n, d / grid.x], f32>
    %out = threadblock.output %q omap {x = 1} : !threadblock.tile<[n, d / grid.x], f32> -> !x
    threadblock.yield %out : !x
  }
  func.return %o : !x
}

// One tile of X serves the product and the sum of squares; 7 rows are padded to the 8-side. Copies run two
// indices ahead of the loop, and the output goes through shared memory to be stored by wide vectors.
// THREAD:      thread.kernel @rms_norm__g0_k0(%x: tensor<7x1000xf16>, %w: tensor<1000x1000xf16>, %o: tensor<7x1000xf16>) grid [16, 1, 1] warps 4 target "sm_80" {
// THREAD-NEXT:   %xt = thread.alloc : !thread.shared<[8, 64], f16, pitch 72, stages 3>
// THREAD-NEXT:   %wt = thread.alloc : !thread.shared<[64, 64], f16, pitch 72, stages 3>
// THREAD-NEXT:   %ss = thread.alloc : !thread.shared<[7, 1], f32, pitch 1>
// THREAD:        thread.copy async %x [7, 1000 cut i by 64] at i = 0 to %xt :
// THREAD-NEXT:   thread.copy async %w [1000 cut i by 64, 1000 cut x by 64] at i = 0 to %wt :
// THREAD-NEXT:   thread.commit
// THREAD-NEXT:   thread.copy async %x [7, 1000 cut i by 64] at i = 1 to %xt :
// THREAD:        thread.commit
// THREAD-NEXT:   %a, %ss_1 = thread.for i < 16 carry ({{.*}} : !thread.fragment<[8, 64], mma warps [4, 1, 1] tiles [1, 1] swap>, {{.*}} : !thread.fragment<[7, 16], rows threads 128 lanes 16 vector 1>) {
// THREAD-NEXT:     thread.wait 1
// THREAD-NEXT:     thread.barrier
// THREAD-NEXT:     thread.copy async %x [7, 1000 cut i by 64] ahead 2 to %xt :
// THREAD-NEXT:     thread.copy async %w [1000 cut i by 64, 1000 cut x by 64] ahead 2 to %wt :
// THREAD-NEXT:     thread.commit
// THREAD-NEXT:     thread.mma %xt, %wt,
// THREAD-NEXT:     thread.reduce dim 1 vector 4 ({{.*}} = %xt : {{.*}}) within [7, 1000 cut i by 64]
// THREAD:          thread.yield
// THREAD:        thread.sum_lanes {{.*}} to %ss
// THREAD-NEXT:   thread.barrier
// THREAD-NEXT:   %q_1 = thread.map ({{.*}} = %a : {{.*}}, {{.*}} = %ss : {{.*}}) ->
// THREAD:          arith.constant 1.000000e-03 : f32
// THREAD:          math.sqrt
// THREAD:          arith.divf
// THREAD:        thread.spill %q_1 to %q :
// THREAD-NEXT:   thread.barrier
// THREAD-NEXT:   thread.map ({{.*}} = %q : {{.*}}) -> !thread.fragment<[7, 64], rows threads 128 lanes 8 vector 8>
// THREAD:        thread.store %{{.*}} to %o [7, 1000 cut x by 64] :
// THREAD:      func.func @rms_norm__g0(
// THREAD-NEXT:   %o = kernel.launch @rms_norm__g0_k0(%x, %w) : (tensor<?x?xf16, #sym.shape<[n, d]>>, tensor<?x?xf16, #sym.shape<[d, d]>>) -> tensor<?x?xf16, #sym.shape<[n, d]>>
// THREAD-NEXT:   func.return %o

// 2000 bytes a row allow copies of 16 bytes; rows beyond 7 and columns beyond 1000 are zero. The offsets of the
// stage in use and of the one to fill are carried; copies beyond the last index are skipped.
// CUDA:      cuda.kernel @rms_norm__g0_k0(%x: !cuda.ptr<global>, %w: !cuda.ptr<global>, %o: !cuda.ptr<global>) grid [16, 1, 1] block 128 shared 32144 target "sm_80" version "7.0" {
// CUDA:        cuda.copy_async 16 <global> %{{.*}} to <shared> %{{.*}} size %{{.*}} if %{{.*}}
// CUDA:        cuda.commit
// CUDA:        cuda.commit
// CUDA:        cuda.for %{{.*}} = 0 to 16 step 1 carry (
// CUDA:          cuda.wait 1
// CUDA-NEXT:     cuda.barrier
// CUDA:          cuda.if %{{.*}} {
// CUDA-NEXT:       cuda.copy_async 16
// CUDA:          cuda.copy_async 16 <global> %{{.*}} to <shared> %{{.*}}[1152] size %{{.*}}
// CUDA:          cuda.commit
// CUDA:          cuda.ldmatrix trans <shared> %{{.*}}[1152] x 4
// CUDA:          cuda.ldmatrix <shared> %{{.*}} x 2
// CUDA-NEXT:     cuda.mma
// CUDA:          cuda.selp.f32
// CUDA:          cuda.yield {{.*}} f32, i32, i32
// CUDA:        cuda.shuffle %{{.*}} xor 8
// CUDA:        cuda.barrier
// CUDA:        cuda.div.full.f32
// CUDA:        cuda.store %{{.*}} : f16 to <shared> %{{.*}} if %{{.*}}
// CUDA:        cuda.store %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : i32 to <global> %{{.*}} if %{{.*}}
// CUDA:        cuda.return

// PTX:      cuda.binary @rms_norm__g0_k0 grid [16, 1, 1] block 128 shared 32144 target "sm_80" version "7.0" ptx {
// PTX-NEXT:   ".version 7.0"
// PTX-NEXT:   ".target sm_80"
// PTX:        ".visible .entry rms_norm__g0_k0("
// PTX:        ".reqntid 128, 1, 1"
// PTX:        "  .shared .align 128 .b8 rms_norm__g0_k0_shared[32144];"
// PTX:        "  @%p{{[0-9]+}} cp.async.cg.shared.global
// PTX:        "  cp.async.commit_group;"
// PTX:        "  cp.async.wait_group 1;"
// PTX:        "  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// PTX:        "  shfl.sync.bfly.b32
// PTX:        "  @%p{{[0-9]+}} st.global.v4.b32
// PTX:        "  ret;"
