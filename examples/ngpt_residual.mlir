// O = l2(H + alpha (l2(A) - H)), l2(x) = x / sqrt(sum x^2) over the last dim: the residual of nGPT,
// which keeps hidden states on the unit sphere. Not an RMS norm: the sum is not divided by d.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!row = tensor<1x?xf16, #sym.shape<[1, d]>>
!col = tensor<?x1xf16, #sym.shape<[n, 1]>>

func.func @ngpt_residual(%h: !x, %a: !x, %alpha: !row) -> !x {
  %a2 = kernel.square %a : (!x) -> !x
  %a_sum = kernel.sum %a2 dim 1 : (!x) -> !col
  %a_length = kernel.sqrt %a_sum : (!col) -> !col
  %target = kernel.div %a, %a_length : (!x, !col) -> !x
  %step = kernel.sub %target, %h : (!x, !x) -> !x
  %scaled = kernel.mul %step, %alpha : (!x, !row) -> !x
  %moved = kernel.add %h, %scaled : (!x, !x) -> !x
  %m2 = kernel.square %moved : (!x) -> !x
  %m_sum = kernel.sum %m2 dim 1 : (!x) -> !col
  %m_length = kernel.sqrt %m_sum : (!col) -> !col
  %o = kernel.div %moved, %m_length : (!x, !col) -> !x
  func.return %o : !x
}
