#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda::wmma;
// One warp per 16x16 tile of C = A B, by the CUDA C++ warp matrix functions.
extern "C" __global__ void wmma_f16(const half *A, const half *B, float *C, int M, int N, int K) {
  int m = blockIdx.y * 16, n = blockIdx.x * 16;
  fragment<matrix_a, 16, 16, 16, half, row_major> a; fragment<matrix_b, 16, 16, 16, half, col_major> b; fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, 0.0f);
  for (int k = 0; k < K; k += 16) { load_matrix_sync(a, A + m * K + k, K); load_matrix_sync(b, B + n * K + k, K); mma_sync(c, a, b, c); }
  for (int i = 0; i < c.num_elements; i++) c.x[i] *= 2.0f;
  store_matrix_sync(C + m * N + n, c, N, mem_row_major);
}
extern "C" __global__ void wmma_s8(const signed char *A, const signed char *B, int *C, int M, int N, int K) {
  int m = blockIdx.y * 8, n = blockIdx.x * 32; __shared__ int tile[8 * 32];
  fragment<matrix_a, 8, 32, 16, signed char, row_major> a; fragment<matrix_b, 8, 32, 16, signed char, row_major> b; fragment<accumulator, 8, 32, 16, int> c;
  load_matrix_sync(c, C + m * N + n, N, mem_row_major);
  for (int k = 0; k < K; k += 16) { load_matrix_sync(a, A + m * K + k, K); load_matrix_sync(b, B + k * N + n, N); mma_sync(c, a, b, c); }
  store_matrix_sync(tile, c, 8, mem_col_major); __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32) C[(m + i % 8) * N + n + i / 8] = tile[i];
}
extern "C" __global__ void wmma_tf32(const float *A, const float *B, float *C, int M, int N, int K) {
  int m = blockIdx.y * 16, n = blockIdx.x * 16;
  fragment<matrix_a, 16, 16, 8, precision::tf32, col_major> a; fragment<matrix_b, 16, 16, 8, precision::tf32, row_major> b; fragment<accumulator, 16, 16, 8, float> c;
  fill_fragment(c, 0.0f);
  for (int k = 0; k < K; k += 8) { load_matrix_sync(a, A + k * M + m, M); load_matrix_sync(b, B + k * N + n, N);
    for (int i = 0; i < a.num_elements; i++) a.x[i] = __float_to_tf32(a.x[i]);
    for (int i = 0; i < b.num_elements; i++) b.x[i] = __float_to_tf32(b.x[i]);
    mma_sync(c, a, b, c); }
  store_matrix_sync(C + m * N + n, c, N, mem_row_major);
}
extern "C" __global__ void wmma_bf16(const __nv_bfloat16 *A, const __nv_bfloat16 *B, float *C, int M, int N, int K) {
  int m = blockIdx.y * 32, n = blockIdx.x * 8;
  fragment<matrix_a, 32, 8, 16, __nv_bfloat16, row_major> a; fragment<matrix_b, 32, 8, 16, __nv_bfloat16, row_major> b; fragment<accumulator, 32, 8, 16, float> c;
  fill_fragment(c, 0.0f);
  for (int k = 0; k < K; k += 16) { load_matrix_sync(a, A + m * K + k, K); load_matrix_sync(b, B + k * N + n, N); mma_sync(c, a, b, c); }
  store_matrix_sync(C + m * N + n, c, N, mem_row_major);
}
extern "C" __global__ void wmma_f64(const double *A, const double *B, double *C, int M, int N, int K) {
  int m = blockIdx.y * 8, n = blockIdx.x * 8;
  fragment<matrix_a, 8, 8, 4, double, row_major> a; fragment<matrix_b, 8, 8, 4, double, row_major> b; fragment<accumulator, 8, 8, 4, double> c;
  fill_fragment(c, 0.0);
  for (int k = 0; k < K; k += 4) { load_matrix_sync(a, A + m * K + k, K); load_matrix_sync(b, B + k * N + n, N); mma_sync(c, a, b, c); }
  store_matrix_sync(C + m * N + n, c, N, mem_row_major);
}
