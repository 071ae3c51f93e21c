// O_e = X_e W_e for each of e experts, whose n rows a router has gathered.
!x = tensor<?x?x?xf16, #sym.shape<[e, n, d]>>
!w = tensor<?x?x?xf16, #sym.shape<[e, d, m]>>
!o = tensor<?x?x?xf16, #sym.shape<[e, n, m]>>

func.func @expert_matmul(%x: !x, %w: !w) -> !o {
  %o = kernel.matmul %x, %w : (!x, !w) -> !o
  func.return %o : !o
}
