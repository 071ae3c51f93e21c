// E = exp(Q Kt); O = (E / sum(E)) V: decode attention without the maximum, as in the paper.
// Rows g are query heads x query positions, keys h are key heads x positions: the paper measures b = 2,
// g = 8 and h = 8192 (1024 positions) and 16384, head dim 128.
!q = tensor<?x?x128xf16, #sym.shape<[b, g, 128]>>
!kt = tensor<?x128x?xf16, #sym.shape<[b, 128, h]>>
!v = tensor<?x?x128xf16, #sym.shape<[b, h, 128]>>
!s = tensor<?x?x?xf16, #sym.shape<[b, g, h]>>
!row = tensor<?x?x1xf16, #sym.shape<[b, g, 1]>>

func.func @attention(%q: !q, %kt: !kt, %v: !v) -> !q {
  %scores = kernel.matmul %q, %kt : (!q, !kt) -> !s
  %e = kernel.exp %scores : (!s) -> !s
  %total = kernel.sum %e dim 2 : (!s) -> !row
  %p = kernel.div %e, %total : (!s, !row) -> !s
  %o = kernel.matmul %p, %v : (!s, !v) -> !q
  func.return %o : !q
}
