#include <stdint.h>
// 128-bit products and sums: nvcc emits carry chains.
extern "C" __global__ void wide(const unsigned __int128 *a, const unsigned __int128 *b, unsigned __int128 *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { o[3 * i] = a[i] + b[i]; o[3 * i + 1] = a[i] - b[i]; o[3 * i + 2] = a[i] * b[i]; }
}
__device__ int lock = 0; __device__ unsigned turn = 0;
// Every thread of the grid takes one spin lock; then a ticket barrier over the grid.
extern "C" __global__ void locks(int *counter, int *seen) {
  for (bool done = false; !done;) if (atomicCAS(&lock, 0, 1) == 0) { int v = *(volatile int *)counter; *(volatile int *)counter = v + 1; __threadfence(); atomicExch(&lock, 0); done = true; }
  __syncthreads();
  if (threadIdx.x == 0) { atomicAdd(&turn, 1); while (*(volatile unsigned *)&turn < gridDim.x) {} }
  __syncthreads();
  seen[blockIdx.x * blockDim.x + threadIdx.x] = *(volatile int *)counter;
}
extern "C" __global__ void anyall(const int *x, int *o) {
  int v = x[blockIdx.x * blockDim.x + threadIdx.x];
  int c = __syncthreads_count(v > 0), a = __syncthreads_and(v > -100), r = __syncthreads_or(v > 90);
  o[blockIdx.x * blockDim.x + threadIdx.x] = c + (a ? 10000 : 0) + (r ? 100000 : 0);
}
