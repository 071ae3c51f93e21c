// O = (A / B) C with B of full shape: the division does not move behind the product.
!a = tensor<?x?xf16, #sym.shape<[n, d]>>
!c = tensor<?x?xf16, #sym.shape<[d, m]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>

func.func @div_matmul(%a: !a, %b: !a, %c: !c) -> !o {
  %quotient = kernel.div %a, %b : (!a, !a) -> !a
  %o = kernel.matmul %quotient, %c : (!a, !c) -> !o
  func.return %o : !o
}
