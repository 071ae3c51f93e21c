// Q, K, V = X W in one product with the concatenated weight [W_q | W_k | W_v]: q columns of queries,
// k of keys and k of values.
!x = tensor<?x?xf16, #sym.shape<[n, d]>>
!w = tensor<?x?xf16, #sym.shape<[d, q + 2 * k]>>
!qkv = tensor<?x?xf16, #sym.shape<[n, q + 2 * k]>>
!q = tensor<?x?xf16, #sym.shape<[n, q]>>
!k = tensor<?x?xf16, #sym.shape<[n, k]>>

func.func @fused_qkv(%x: !x, %w_qkv: !w) -> (!q, !k, !k) {
  %qkv = kernel.matmul %x, %w_qkv : (!x, !w) -> !qkv
  %q = kernel.slice %qkv dim 1 from <0> to <q> : (!qkv) -> !q
  %k = kernel.slice %qkv dim 1 from <q> to <q + k> : (!qkv) -> !k
  %v = kernel.slice %qkv dim 1 from <q + k> to <q + 2 * k> : (!qkv) -> !k
  func.return %q, %k, %v : !q, !k, !k
}
