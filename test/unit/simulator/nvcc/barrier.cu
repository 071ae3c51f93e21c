#include <cuda/barrier>
#include <cuda/ptx>
#include <stdint.h>
// Tiles of 1024 ints by bulk copies that mbarriers track, two stages; sums them, counts with __syncthreads_count, writes back by a bulk copy.
namespace ptx = cuda::ptx;
extern "C" __global__ void bulk(const int *in, int *sums, int *out, int tiles) {
  __shared__ alignas(128) int buffer[2][1024]; __shared__ alignas(128) int back[1024]; __shared__ uint64_t bar[2]; __shared__ int total;
  int t = threadIdx.x;
  if (t == 0) { ptx::mbarrier_init(&bar[0], 1); ptx::mbarrier_init(&bar[1], 1); total = 0; }
  __syncthreads();
  auto fetch = [&](int i) {
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, &buffer[i & 1][0], in + (size_t)(blockIdx.x * tiles + i) * 1024, 4096, &bar[i & 1]);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar[i & 1], 4096);
  };
  if (t == 0) fetch(0);
  for (int i = 0; i < tiles; i++) {
    if (t == 0 && i + 1 < tiles) fetch(i + 1);
    while (!ptx::mbarrier_try_wait_parity(&bar[i & 1], (i >> 1) & 1)) {}
    int s = 0;
    for (int j = t; j < 1024; j += blockDim.x) { s += buffer[i & 1][j]; back[j] = buffer[i & 1][j] + 1; }
    atomicAdd(&total, s);
    int odd = __syncthreads_count(s & 1);
    if (t == 0) atomicAdd(&total, odd << 20);
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (t == 0) { ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + (size_t)(blockIdx.x * tiles + i) * 1024, back, 4096); ptx::cp_async_bulk_commit_group(); ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>()); }
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = total;
}
// A producer warp and consumer warps by cuda::barrier (arrive, wait with tokens).
extern "C" __global__ void tokens(const int *in, int *out, int n) {
  using barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ barrier full, empty; __shared__ int box[32];
  if (threadIdx.x == 0) { init(&full, blockDim.x); init(&empty, blockDim.x); }
  __syncthreads();
  int acc = 0;
  for (int i = 0; i < n; i++) {
    if (threadIdx.x < 32) { box[threadIdx.x] = in[(blockIdx.x * n + i) * 32 + threadIdx.x]; (void)full.arrive(); }
    else { full.wait(full.arrive()); acc += box[threadIdx.x & 31]; }
    empty.arrive_and_wait();
  }
  if (threadIdx.x >= 32) out[blockIdx.x * (blockDim.x - 32) + threadIdx.x - 32] = acc;
}
