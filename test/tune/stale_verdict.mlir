// A graph that was edited after its proof is not tuned, whatever its verdict says.
// RUN: prism-opt %s --verify-diagnostics -p 'prism-tune{shape="n=8,d=64"}' | filecheck %s

// CHECK: @f__g0: the verdict is of another workload or graph; run prism-verify again

!x = tensor<?x?xf16, #sym.shape<[n, d]>>

func.func @f(%x: !x) -> !x {
  %o = kernel.exp %x : (!x) -> !x
  func.return %o : !x
}

func.func @f__g0(%x: !x) -> !x attributes {kernel.candidate_of = @f, kernel.verdict = #kernel.verdict<equal, "0000">} {
  %o = kernel.graph_def grid [] loop [] (%a = %x : !x) -> !x {
    %t = threadblock.input %a imap {} fmap {} : !x -> !threadblock.tile<[n, d], f16>
    %e = threadblock.exp %t : (!threadblock.tile<[n, d], f16>) -> !threadblock.tile<[n, d], f32>
    %r = threadblock.output %e omap {} : !threadblock.tile<[n, d], f32> -> !x
    threadblock.yield %r : !x
  }
  func.return %o : !x
}
