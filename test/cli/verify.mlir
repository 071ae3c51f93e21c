// A hand-written graph: proven as it stands in %s, refused when it divides where it must multiply.
// RUN: prism verify %examples/swiglu.mlir %s | filecheck %s --check-prefix=EQUAL
// RUN: sed 's/threadblock.mul/threadblock.div/' %s > %t.mlir && not prism verify %examples/swiglu.mlir %t.mlir --json | filecheck %s --check-prefix=WRONG
// RUN: prism verify %examples/swiglu.mlir %s --write-certificate %t.json && prism verify %examples/swiglu.mlir %s --certificate %t.json | filecheck %s --check-prefix=EQUAL
// RUN: sed 's/comb-of-part/part-of-comb/' %t.json > %t2.json && not prism verify %examples/swiglu.mlir %s --certificate %t2.json | filecheck %s --check-prefix=ALTERED

// ALTERED: mine: certificate: the certificate was altered
// EQUAL: graph  workload  verdict
// EQUAL-NEXT: mine   swiglu    equal

// WRONG: "ok": false
// WRONG: "name": "mine"
// WRONG: "verdict": "not_proven"

!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>
!xt = !threadblock.tile<[n, d], f16>
!wt = !threadblock.tile<[d, d / grid.x], f16>
!ot = !threadblock.tile<[n, d / grid.x], f32>

func.func @mine(%x: !x, %w_gate: !w, %w_up: !w) -> !x {
  %o = kernel.graph_def grid [x] loop [] (%a = %x : !x, %b = %w_gate : !w, %c = %w_up : !w) -> !x {
    %xt = threadblock.input %a imap {} fmap {} : !x -> !xt
    %gt = threadblock.input %b imap {x = 1} fmap {} : !w -> !wt
    %ut = threadblock.input %c imap {x = 1} fmap {} : !w -> !wt
    %g = threadblock.matmul %xt, %gt : (!xt, !wt) -> !ot
    %s = threadblock.sigmoid %g : (!ot) -> !ot
    %act = threadblock.mul %g, %s : (!ot, !ot) -> !ot
    %u = threadblock.matmul %xt, %ut : (!xt, !wt) -> !ot
    %p = threadblock.mul %u, %act : (!ot, !ot) -> !ot
    %r = threadblock.output %p omap {x = 1} : !ot -> !x
    threadblock.yield %r : !x
  }
  func.return %o : !x
}
