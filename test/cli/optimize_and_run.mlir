// From MLIR to a bundle, and from the bundle to a checked result.
// RUN: rm -rf %t && prism optimize %examples/swiglu.mlir --shape n=3,d=64 -o %t | filecheck %s --check-prefix=OPT
// RUN: prism run %t | filecheck %s --check-prefix=REPORT

// OPT: workload    swiglu (
// OPT-NEXT: shape       n=3,d=64
// OPT-NEXT: target      sm_80
// OPT-NEXT: graphs      8 found, 8 proven, 0 not proven, 0 unknown
// OPT-NEXT: chosen      swiglu__g
// OPT-NEXT: operators   {{.*}}matmul{{.*}}silu{{.*}}mul
// OPT-NEXT: maps        x: imap
// OPT-NEXT: parameters  {{.*}}warps=
// OPT-NEXT: bundle
// OPT: kernel {{ *}}grid {{ *}}block {{ *}}smem bytes  registers  spill bytes
// OPT-NEXT: swiglu__g{{.*}} 0
// OPT: stage
// OPT: generate {{.*}} ms
// OPT: verify {{.*}} ms
// OPT: assemble {{.*}} ms
// OPT: total {{.*}} ms

// REPORT: backend   sim
// REPORT: kernel {{ *}}instructions  requested / floor
// REPORT: o {{.*}} ok
// REPORT: {{^ok$}}
