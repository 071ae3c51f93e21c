// RUN: prism-opt %s --split-input-file --verify-diagnostics -p prism-verify,prism-lower-to-thread | filecheck %s

!t = tensor<?x?xf16, #sym.shape<[n, d]>>
!tile = !threadblock.tile<[n, d], f32>
func.func @w(%x: !t) -> !t {
  %y = kernel.exp %x : (!t) -> !t
  func.return %y : !t
}
// A graph that computes something else.
// CHECK: @w__g0: expected a verdict equal, found not_proven
func.func @w__g0(%x: !t) -> !t attributes {kernel.candidate_of = @w, kernel.sizes = {n = 4 : i64, d = 8 : i64}, kernel.target = "sm_80"} {
  %y = kernel.graph_def grid [] loop [] params {warps = 1 : i64} (%a = %x : !t) -> !t {
    %b = threadblock.input %a imap {} fmap {} : !t -> !threadblock.tile<[n, d], f16>
    %c = threadblock.neg %b : (!threadblock.tile<[n, d], f16>) -> !tile
    %o = threadblock.output %c omap {} : !tile -> !t
    threadblock.yield %o : !t
  }
  func.return %y : !t
}

// -----
!t = tensor<?x?xf16, #sym.shape<[n, d]>>
!tile = !threadblock.tile<[n, d], f32>
func.func @w(%x: !t) -> !t {
  %y = kernel.exp %x : (!t) -> !t
  func.return %y : !t
}
// CHECK: %y = kernel.graph_def: shared memory of a block: w__g0_k0 takes 1064960 bytes, sm_80 has 166912
func.func @w__g0(%x: !t) -> !t attributes {kernel.candidate_of = @w, kernel.sizes = {n = 1024 : i64, d = 512 : i64}, kernel.target = "sm_80"} {
  %y = kernel.graph_def grid [] loop [] params {warps = 32 : i64} (%a = %x : !t) -> !t {
    %b = threadblock.input %a imap {} fmap {} : !t -> !threadblock.tile<[n, d], f16>
    %c = threadblock.exp %b : (!threadblock.tile<[n, d], f16>) -> !tile
    %o = threadblock.output %c omap {} : !tile -> !t
    threadblock.yield %o : !t
  }
  func.return %y : !t
}

// -----
!t = tensor<?x?xf16, #sym.shape<[n, d]>>
func.func @w(%x: !t) -> !t {
  %y = kernel.exp %x : (!t) -> !t
  func.return %y : !t
}
// CHECK: %y = kernel.graph_def: no parameters: run prism-tune first
func.func @w__g0(%x: !t) -> !t attributes {kernel.candidate_of = @w, kernel.sizes = {n = 4 : i64, d = 8 : i64}, kernel.target = "sm_80"} {
  %y = kernel.graph_def grid [] loop [] (%a = %x : !t) -> !t {
    %b = threadblock.input %a imap {} fmap {} : !t -> !threadblock.tile<[n, d], f16>
    %c = threadblock.exp %b : (!threadblock.tile<[n, d], f16>) -> !threadblock.tile<[n, d], f32>
    %o = threadblock.output %c omap {} : !threadblock.tile<[n, d], f32> -> !t
    threadblock.yield %o : !t
  }
  func.return %y : !t
}
