// O = layernorm(X; g, b) W, with layernorm(x) = (x - mean x) / sqrt(var x + eps) g + b over the last dim.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!row = tensor<1x?xf16, #sym.shape<[1, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>

func.func @layer_norm_linear(%x: !x, %gain: !row, %bias: !row, %w: !w) -> !o {
  %norm = kernel.layer_norm %x, %gain, %bias eps <1.0e-5> : (!x, !row, !row) -> !x
  %o = kernel.matmul %norm, %w : (!x, !w) -> !o
  func.return %o : !o
}
