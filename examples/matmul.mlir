// O = X W.
!x = tensor<?x?xf16, #sym.shape<[n, k]>>
!w = tensor<?x?xf16, #sym.shape<[k, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>

func.func @matmul(%x: !x, %w: !w) -> !o {
  %o = kernel.matmul %x, %w : (!x, !w) -> !o
  func.return %o : !o
}
