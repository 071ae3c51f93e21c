// O = log(softmax(X)) over the last dim.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>

func.func @log_softmax(%x: !x) -> !x {
  %o = kernel.log_softmax %x dim 1 : (!x) -> !x
  func.return %o : !x
}
