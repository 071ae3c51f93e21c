// Decode with multi-head latent attention (DeepSeek), projections absorbed: 128 heads share one latent
// of 512 numbers a position, which is key and value, and one rotary key of 64.
// O = softmax((Q_c C^T + Q_r K_r^T) / sqrt(192)) C, for b sequences of h positions.
!qc = tensor<?x128x512xf16, #sym.shape<[b, 128, 512]>>
!qr = tensor<?x128x64xf16, #sym.shape<[b, 128, 64]>>
!c = tensor<?x?x512xf16, #sym.shape<[b, h, 512]>>
!kr = tensor<?x?x64xf16, #sym.shape<[b, h, 64]>>
!ct = tensor<?x512x?xf16, #sym.shape<[b, 512, h]>>
!krt = tensor<?x64x?xf16, #sym.shape<[b, 64, h]>>
!s = tensor<?x128x?xf16, #sym.shape<[b, 128, h]>>

func.func @mla_decode(%q_latent: !qc, %q_rope: !qr, %latent: !c, %k_rope: !kr) -> !qc {
  %ct = kernel.transpose %latent perm [0, 2, 1] : (!c) -> !ct
  %krt = kernel.transpose %k_rope perm [0, 2, 1] : (!kr) -> !krt
  %from_latent = kernel.matmul %q_latent, %ct : (!qc, !ct) -> !s
  %from_rope = kernel.matmul %q_rope, %krt : (!qr, !krt) -> !s
  %raw = kernel.add %from_latent, %from_rope : (!s, !s) -> !s
  %scores = kernel.scale %raw by <0.07216878364870322> : (!s) -> !s
  %p = kernel.softmax %scores dim 2 : (!s) -> !s
  %o = kernel.matmul %p, %latent : (!s, !c) -> !qc
  func.return %o : !qc
}
