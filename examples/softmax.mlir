// O = softmax(X) over the last dim. A row that is -inf throughout gives NaN.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>

func.func @softmax(%x: !x) -> !x {
  %o = kernel.softmax %x dim 1 : (!x) -> !x
  func.return %o : !x
}
