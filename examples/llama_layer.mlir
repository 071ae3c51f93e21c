// A whole Llama decoder layer at decode: one new position for each of b sequences, whose keys and values
// of h earlier positions are in the cache. k key heads, g query heads each, head dim 128, rotary angles
// as inputs. Returns the hidden states, and the new keys and values for the cache.
!x = tensor<?x?xf16, #sym.shape<[b, d]>>
!row = tensor<1x?xf16, #sym.shape<[1, d]>>
!wq = tensor<?x?xf16, #sym.shape<[d, 128 * g * k]>>
!wk = tensor<?x?xf16, #sym.shape<[d, 128 * k]>>
!wo = tensor<?x?xf16, #sym.shape<[128 * g * k, d]>>
!wf = tensor<?x?xf16, #sym.shape<[d, f]>>
!wd = tensor<?x?xf16, #sym.shape<[f, d]>>
!hidden = tensor<?x?xf16, #sym.shape<[b, f]>>
!q2 = tensor<?x?xf16, #sym.shape<[b, 128 * g * k]>>
!k2 = tensor<?x?xf16, #sym.shape<[b, 128 * k]>>
!q = tensor<?x?x?x128xf16, #sym.shape<[b, k, g, 128]>>
!q_half = tensor<?x?x?x64xf16, #sym.shape<[b, k, g, 64]>>
!k1 = tensor<?x?x1x128xf16, #sym.shape<[b, k, 1, 128]>>
!k1_half = tensor<?x?x1x64xf16, #sym.shape<[b, k, 1, 64]>>
!angle = tensor<1x1x1x128xf16>
!cache = tensor<?x?x?x128xf16, #sym.shape<[b, k, h, 128]>>
!kv = tensor<?x?x?x128xf16, #sym.shape<[b, k, h + 1, 128]>>
!kt = tensor<?x?x128x?xf16, #sym.shape<[b, k, 128, h + 1]>>
!s = tensor<?x?x?x?xf16, #sym.shape<[b, k, g, h + 1]>>

func.func @llama_layer(
  %x: !x, %attention_gain: !row, %w_q: !wq, %w_k: !wk, %w_v: !wk, %w_o: !wo, %cos: !angle, %sin: !angle,
  %k_cache: !cache, %v_cache: !cache, %mlp_gain: !row, %w_gate: !wf, %w_up: !wf, %w_down: !wd
) -> (!x, !k1, !k1) {
  %x_norm = kernel.rms_norm %x eps <1.0e-5> : (!x) -> !x
  %n = kernel.mul %x_norm, %attention_gain : (!x, !row) -> !x
  %q_flat = kernel.matmul %n, %w_q : (!x, !wq) -> !q2
  %k_flat = kernel.matmul %n, %w_k : (!x, !wk) -> !k2
  %v_flat = kernel.matmul %n, %w_v : (!x, !wk) -> !k2
  %q_raw = kernel.reshape %q_flat shape [b, k, g, 128] : (!q2) -> !q
  %k_raw = kernel.reshape %k_flat shape [b, k, 1, 128] : (!k2) -> !k1
  %v_new = kernel.reshape %v_flat shape [b, k, 1, 128] : (!k2) -> !k1

  %q_low = kernel.slice %q_raw dim 3 from <0> to <64> : (!q) -> !q_half
  %q_high = kernel.slice %q_raw dim 3 from <64> to <128> : (!q) -> !q_half
  %q_minus = kernel.neg %q_high : (!q_half) -> !q_half
  %q_turned = kernel.concat %q_minus, %q_low dim 3 : (!q_half, !q_half) -> !q
  %q_cos = kernel.mul %q_raw, %cos : (!q, !angle) -> !q
  %q_sin = kernel.mul %q_turned, %sin : (!q, !angle) -> !q
  %q = kernel.add %q_cos, %q_sin : (!q, !q) -> !q

  %k_low = kernel.slice %k_raw dim 3 from <0> to <64> : (!k1) -> !k1_half
  %k_high = kernel.slice %k_raw dim 3 from <64> to <128> : (!k1) -> !k1_half
  %k_minus = kernel.neg %k_high : (!k1_half) -> !k1_half
  %k_turned = kernel.concat %k_minus, %k_low dim 3 : (!k1_half, !k1_half) -> !k1
  %k_cos = kernel.mul %k_raw, %cos : (!k1, !angle) -> !k1
  %k_sin = kernel.mul %k_turned, %sin : (!k1, !angle) -> !k1
  %k_new = kernel.add %k_cos, %k_sin : (!k1, !k1) -> !k1

  %keys = kernel.concat %k_cache, %k_new dim 2 : (!cache, !k1) -> !kv
  %values = kernel.concat %v_cache, %v_new dim 2 : (!cache, !k1) -> !kv
  %kt = kernel.transpose %keys perm [0, 1, 3, 2] : (!kv) -> !kt
  %raw = kernel.matmul %q, %kt : (!q, !kt) -> !s
  %scores = kernel.scale %raw by <0.08838834764831845> : (!s) -> !s
  %p = kernel.softmax %scores dim 3 : (!s) -> !s
  %heads = kernel.matmul %p, %values : (!s, !kv) -> !q
  %flat = kernel.reshape %heads shape [b, 128 * g * k] : (!q) -> !q2
  %attention = kernel.matmul %flat, %w_o : (!q2, !wo) -> !x
  %h = kernel.add %x, %attention : (!x, !x) -> !x

  %h_norm = kernel.rms_norm %h eps <1.0e-5> : (!x) -> !x
  %m = kernel.mul %h_norm, %mlp_gain : (!x, !row) -> !x
  %gate = kernel.matmul %m, %w_gate : (!x, !wf) -> !hidden
  %act = kernel.silu %gate : (!hidden) -> !hidden
  %up = kernel.matmul %m, %w_up : (!x, !wf) -> !hidden
  %both = kernel.mul %act, %up : (!hidden, !hidden) -> !hidden
  %down = kernel.matmul %both, %w_down : (!hidden, !wd) -> !x
  %o = kernel.add %h, %down : (!x, !x) -> !x
  func.return %o, %k_new, %v_new : !x, !k1, !k1
}
