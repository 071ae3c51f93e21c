// O = softmax(Q Kt / sqrt(128) + M) V with the maximum subtracted. M is the causal mask as an additive
// input: 0 where query g may see key h, -inf elsewhere. A row whose every key is masked gives NaN.
!q = tensor<?x?x128xf16, #sym.shape<[b, g, 128]>>
!kt = tensor<?x128x?xf16, #sym.shape<[b, 128, h]>>
!v = tensor<?x?x128xf16, #sym.shape<[b, h, 128]>>
!mask = tensor<1x?x?xf16, #sym.shape<[1, g, h]>>
!s = tensor<?x?x?xf16, #sym.shape<[b, g, h]>>
!row = tensor<?x?x1xf16, #sym.shape<[b, g, 1]>>

func.func @causal_attention(%q: !q, %kt: !kt, %v: !v, %mask: !mask) -> !q {
  %raw = kernel.matmul %q, %kt : (!q, !kt) -> !s
  %scaled = kernel.scale %raw by <0.08838834764831845> : (!s) -> !s
  %scores = kernel.add %scaled, %mask : (!s, !mask) -> !s
  %max = kernel.max %scores dim 2 : (!s) -> !row
  %shifted = kernel.sub %scores, %max : (!s, !row) -> !s
  %e = kernel.exp %shifted : (!s) -> !s
  %total = kernel.sum %e dim 2 : (!s) -> !row
  %p = kernel.div %e, %total : (!s, !row) -> !s
  %o = kernel.matmul %p, %v : (!s, !v) -> !q
  func.return %o : !q
}
