#include <cuda_fp16.h>
#include <stdint.h>
// Decode attention without the maximum: O = exp(Q K^T) V, L = row sums of exp. Q[b,8,128], Kt[b,128,h], V[b,h,128].
// grid (h / 256, b), block 128: a warp takes 16 of 64 keys a step; rows 8..15 of the tiles are zeros.
#define TK 64
#define PK (TK + 8)
#define PV (128 + 8)
static __device__ __forceinline__ uint32_t sa(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
static __device__ __forceinline__ void cp16(uint32_t d, const void *s) { asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(d), "l"(s)); }
static __device__ __forceinline__ void mma(float *d, const uint32_t *a, uint32_t b0, uint32_t b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
extern "C" __global__ void __launch_bounds__(128) attention(const half *Q, const half *Kt, const half *V, float *O, float *L, int h) {
  extern __shared__ __align__(16) half sm[];
  half *Ks = sm, *Vs = sm + 2 * 128 * PK;
  int t = threadIdx.x, w = t >> 5, l = t & 31, b = blockIdx.y, k0 = blockIdx.x * 256;
  Q += b * 8 * 128; Kt += (size_t)b * 128 * h; V += (size_t)b * h * 128;
  auto load = [&](int st, int key) {
    for (int i = 0; i < 8; i++) { int c = t + i * 128, r = c >> 3, cc = (c & 7) * 8; cp16(sa(&Ks[st * 128 * PK + r * PK + cc]), Kt + (size_t)r * h + key + cc); }
    for (int i = 0; i < 8; i++) { int c = t + i * 128, r = c >> 4, cc = (c & 15) * 8; cp16(sa(&Vs[st * TK * PV + r * PV + cc]), V + (size_t)(key + r) * 128 + cc); }
    asm volatile("cp.async.commit_group;");
  };
  uint32_t q[8][4];
  for (int k = 0; k < 8; k++) {
    const half *p = Q + (l >> 2) * 128 + k * 16 + (l & 3) * 2;
    q[k][0] = *(const uint32_t *)p; q[k][2] = *(const uint32_t *)(p + 8); q[k][1] = q[k][3] = 0;
  }
  float o[16][4] = {}, sum = 0;
  load(0, k0);
  for (int s = 0; s < 4; s++) {
    if (s < 3) { load((s + 1) & 1, k0 + (s + 1) * TK); asm volatile("cp.async.wait_group 1;"); } else asm volatile("cp.async.wait_group 0;");
    __syncthreads();
    half *ks = Ks + (s & 1) * 128 * PK, *vs = Vs + (s & 1) * TK * PV;
    float c[2][4] = {};
#pragma unroll
    for (int k = 0; k < 8; k++) {
      uint32_t x[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(sa(&ks[(k * 16 + (l & 15)) * PK + w * 16 + (l >> 4) * 8])));
      mma(c[0], q[k], x[0], x[1]); mma(c[1], q[k], x[2], x[3]);
    }
    uint32_t p[4] = {0, 0, 0, 0};
    for (int i = 0; i < 2; i++) {
      float e0 = exp2f(c[i][0] * 1.4426950408889634f), e1 = exp2f(c[i][1] * 1.4426950408889634f);
      sum += e0 + e1; half2 hh = __floats2half2_rn(e0, e1); p[2 * i] = *(uint32_t *)&hh;
    }
#pragma unroll
    for (int n = 0; n < 8; n++) {
      uint32_t x[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(sa(&vs[(w * 16 + (l & 15)) * PV + n * 16 + (l >> 4) * 8])));
      mma(o[2 * n], p, x[0], x[1]); mma(o[2 * n + 1], p, x[2], x[3]);
    }
    __syncthreads();
  }
  sum += __shfl_xor_sync(~0u, sum, 1); sum += __shfl_xor_sync(~0u, sum, 2);
  if ((l & 3) == 0) atomicAdd(L + b * 8 + (l >> 2), sum);
  for (int n = 0; n < 16; n++) for (int j = 0; j < 2; j++) atomicAdd(O + (b * 8 + (l >> 2)) * 128 + n * 8 + (l & 3) * 2 + j, o[n][j]);
}
