// O = rmsnorm(X) W, with rmsnorm(x) = x / sqrt(mean(x^2) + eps) over the last dim.
// Measured in the paper at n = 8, d = 4096 and n = 8, d = 1024.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, d]>>

func.func @rms_norm(%x: !x, %w: !w) -> !x {
  %norm = kernel.rms_norm %x eps <1.0e-5> : (!x) -> !x
  %o = kernel.matmul %norm, %w : (!x, !w) -> !x
  func.return %o : !x
}
