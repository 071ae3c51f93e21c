// A named graph with fixed parameters; the rest is still tuned.
// RUN: prism-opt %examples/rms_norm.mlir -p 'prism-superoptimize,prism-tune{shape="n=7,d=1000" target="sm_90" graph="rms_norm__g5" set="tile.x=64,loop.i=10,warps=2"}' | filecheck %s
// RUN: prism-opt %examples/rms_norm.mlir --verify-diagnostics -p 'prism-superoptimize,prism-tune{shape="n=8"}' | filecheck %s --check-prefix=UNBOUND
// RUN: prism-opt %examples/rms_norm.mlir --verify-diagnostics -p 'prism-generate,prism-tune{shape="n=8,d=64"}' | filecheck %s --check-prefix=UNPROVEN

// CHECK: func.func @rms_norm__g5(
// CHECK-SAME: kernel.sizes = {n = 7 : i64, d = 1000 : i64}, kernel.target = "sm_90"
// CHECK: params {grid.x = 16 : i64, tile.x = 64 : i64, loop.i = 10 : i64, tile.i = 100 : i64, warps = 2 : i64, swap = {{[01]}} : i64, stages = {{[0-9]}} : i64}

// UNBOUND: size 'd' has no value in --shape
// UNPROVEN: @rms_norm: not proven equal to any of {{[0-9]+}} candidate graphs
