// H = X + R; O = rmsnorm(H) g: a residual and the norm after it, both results needed.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!row = tensor<1x?xf16, #sym.shape<[1, d]>>

func.func @add_rms_norm(%x: !x, %residual: !x, %gain: !row) -> (!x, !x) {
  %h = kernel.add %x, %residual : (!x, !x) -> !x
  %norm = kernel.rms_norm %h eps <1.0e-5> : (!x) -> !x
  %o = kernel.mul %norm, %gain : (!x, !row) -> !x
  func.return %h, %o : !x, !x
}
