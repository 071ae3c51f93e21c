// Plain xdsl-opt runs the whole pipeline; without a shape it ends with the proven graphs.
// RUN: xdsl-opt %examples/matmul.mlir -p prism-superoptimize | filecheck %s --check-prefix=PROVEN
// RUN: xdsl-opt %examples/matmul.mlir -p 'prism-superoptimize{shape="n=7,k=100,m=130" target="sm_90"}' | filecheck %s --check-prefix=PTX

// PROVEN-COUNT-8: #kernel.verdict<equal, "
// PROVEN-NOT: #kernel.verdict

// PTX: func.func @matmul(
// PTX: cuda.binary @[[KERNEL:matmul__g[0-9]+_k0]] grid
// PTX-SAME: target "sm_90"
// PTX: ".target sm_90"
// PTX: ".visible .entry [[KERNEL]]("
// PTX: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// PTX: kernel.launch @[[KERNEL]](%x, %w)
