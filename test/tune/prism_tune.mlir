// The tuner keeps the workload and one proven candidate, and binds sizes, target and parameters.
// RUN: prism-opt %examples/rms_norm.mlir -p 'prism-superoptimize,prism-tune{shape="n=8,d=4096" target="sm_80"}' | filecheck %s

// CHECK: func.func @rms_norm(
// CHECK: kernel.rms_norm
// CHECK: func.func @rms_norm__g5(
// CHECK-SAME: kernel.verdict = #kernel.verdict<equal, "
// CHECK-SAME: kernel.sizes = {n = 8 : i64, d = 4096 : i64}, kernel.target = "sm_80"
// CHECK: kernel.graph_def grid [x] loop [i]
// CHECK-SAME: params {grid.x = [[BLOCKS:\d+]] : i64, tile.x = [[TILE:\d+]] : i64, loop.i =
// Reads X once, multiplies in the loop, divides after it.
// CHECK: threadblock.input %x_1 imap {} fmap {i = 1}
// CHECK: threadblock.input %w_1 imap {x = 1} fmap {i = 0}
// CHECK-NOT: threadblock.input
// CHECK: threadblock.matmul
// CHECK: threadblock.accum
// CHECK: threadblock.div
// CHECK-NOT: func.func @
