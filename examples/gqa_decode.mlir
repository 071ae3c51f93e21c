// Decode attention with grouped query heads: O = softmax(Q Kt / sqrt(128)) V, the maximum subtracted.
// b = sequences x key heads, g = query heads per key head, h = positions in the cache, head dim 128:
// heads 32/8 are g = 4, 40/8 g = 5, 28/4 g = 7, 64/4 g = 16.
!q = tensor<?x?x128xf16, #sym.shape<[b, g, 128]>>
!kt = tensor<?x128x?xf16, #sym.shape<[b, 128, h]>>
!v = tensor<?x?x128xf16, #sym.shape<[b, h, 128]>>
!s = tensor<?x?x?xf16, #sym.shape<[b, g, h]>>
!row = tensor<?x?x1xf16, #sym.shape<[b, g, 1]>>

func.func @gqa_decode(%q: !q, %kt: !kt, %v: !v) -> !q {
  %raw = kernel.matmul %q, %kt : (!q, !kt) -> !s
  %scores = kernel.scale %raw by <0.08838834764831845> : (!s) -> !s
  %max = kernel.max %scores dim 2 : (!s) -> !row
  %shifted = kernel.sub %scores, %max : (!s, !row) -> !s
  %e = kernel.exp %shifted : (!s) -> !s
  %total = kernel.sum %e dim 2 : (!s) -> !row
  %p = kernel.div %e, %total : (!s, !row) -> !s
  %o = kernel.matmul %p, %v : (!s, !v) -> !q
  func.return %o : !q
}
