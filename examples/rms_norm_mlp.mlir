// N = rmsnorm(X); O = (N W_up) * (N W_gate).
// Measured in the paper at d = 1024, n = 8 and n = 16.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>

func.func @rms_norm_mlp(%x: !x, %w_up: !w, %w_gate: !w) -> !x {
  %norm = kernel.rms_norm %x eps <1.0e-5> : (!x) -> !x
  %up = kernel.matmul %norm, %w_up : (!x, !w) -> !x
  %gate = kernel.matmul %norm, %w_gate : (!x, !w) -> !x
  %o = kernel.mul %up, %gate : (!x, !x) -> !x
  func.return %o : !x
}
