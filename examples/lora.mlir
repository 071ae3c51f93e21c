// O = X W + (X A) B, a linear layer with a low-rank adapter of rank 16 (LoRA; its scale is folded into B).
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, m]>>
!a = tensor<?x16xf16, #sym.shape<[d, 16]>>
!b = tensor<16x?xf16, #sym.shape<[16, m]>>
!xa = tensor<?x16xf16, #sym.shape<[n, 16]>>
!o = tensor<?x?xf16, #sym.shape<[n, m]>>

func.func @lora(%x: !x, %w: !w, %a: !a, %b: !b) -> !o {
  %base = kernel.matmul %x, %w : (!x, !w) -> !o
  %low = kernel.matmul %x, %a : (!x, !a) -> !xa
  %delta = kernel.matmul %low, %b : (!xa, !b) -> !o
  %o = kernel.add %base, %delta : (!o, !o) -> !o
  func.return %o : !o
}
