// Plain xdsl-opt knows Prism's dialects and passes through the entry point `xdsl.universe`.
// RUN: xdsl-opt %examples/rms_norm.mlir | filecheck %s
// RUN: env COLUMNS=9999 xdsl-opt --help | filecheck %s --check-prefix=HELP

// CHECK: kernel.rms_norm %x eps <1 / 100000> :
// HELP-DAG: prism-generate
// HELP-DAG: prism-superoptimize
// HELP-DAG: prism-ptx
