// O = (silu(X W_gate) * (X W_up)) W_down, the feed-forward part of a Llama layer.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, f]>>
!w_down = tensor<?x?xf16, #sym.shape<[f, d]>>
!h = tensor<?x?xf16, #sym.shape<[n, f]>>

func.func @gated_mlp(%x: !x, %w_gate: !w, %w_up: !w, %w_down: !w_down) -> !x {
  %gate = kernel.matmul %x, %w_gate : (!x, !w) -> !h
  %act = kernel.silu %gate : (!h) -> !h
  %up = kernel.matmul %x, %w_up : (!x, !w) -> !h
  %hidden = kernel.mul %act, %up : (!h, !h) -> !h
  %o = kernel.matmul %hidden, %w_down : (!h, !w_down) -> !x
  func.return %o : !x
}
