// Attention as in attention.mlir with Q normalized first: Q <- rmsnorm(Q) over the head dim.
!q = tensor<?x?x128xf16, #sym.shape<[b, g, 128]>>
!kt = tensor<?x128x?xf16, #sym.shape<[b, 128, h]>>
!v = tensor<?x?x128xf16, #sym.shape<[b, h, 128]>>
!s = tensor<?x?x?xf16, #sym.shape<[b, g, h]>>
!row = tensor<?x?x1xf16, #sym.shape<[b, g, 1]>>

func.func @qk_norm_attention(%q: !q, %kt: !kt, %v: !v) -> !q {
  %norm = kernel.rms_norm %q eps <1.0e-5> : (!q) -> !q
  %scores = kernel.matmul %norm, %kt : (!q, !kt) -> !s
  %e = kernel.exp %scores : (!s) -> !s
  %total = kernel.sum %e dim 2 : (!s) -> !row
  %p = kernel.div %e, %total : (!s, !row) -> !s
  %o = kernel.matmul %p, %v : (!s, !v) -> !q
  func.return %o : !q
}
