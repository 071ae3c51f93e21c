// O = gelu(X W_gate) * (X W_up), with gelu(x) = x (1 + erf(x / sqrt 2)) / 2.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>

func.func @geglu(%x: !x, %w_gate: !w, %w_up: !w) -> !o {
  %gate = kernel.matmul %x, %w_gate : (!x, !w) -> !o
  %act = kernel.gelu %gate : (!o) -> !o
  %up = kernel.matmul %x, %w_up : (!x, !w) -> !o
  %o = kernel.mul %act, %up : (!o, !o) -> !o
  func.return %o : !o
}
