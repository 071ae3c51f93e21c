#include <assert.h>
#include <stdio.h>
// The device library of CUDA: divisions, polynomials, tables, slow paths with loops, and calls.
#define EACH(k, value) o[(k) * n + i] = value
extern "C" __global__ void f32(const float *x, const float *y, float *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i], b = y[i];
  EACH(0, sinf(a)); EACH(1, cosf(a)); EACH(2, expf(b)); EACH(3, logf(fabsf(a))); EACH(4, powf(fabsf(a), b)); EACH(5, erff(b));
  EACH(6, fmodf(a, b)); EACH(7, cbrtf(a)); EACH(8, atan2f(a, b)); EACH(9, hypotf(a, b)); EACH(10, tanhf(b)); EACH(11, a / b);
  EACH(12, rintf(a)); EACH(13, sqrtf(fabsf(a))); EACH(14, lgammaf(fabsf(b))); EACH(15, nextafterf(a, b));
}
extern "C" __global__ void f64(const double *x, const double *y, double *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double a = x[i], b = y[i];
  EACH(0, sin(a)); EACH(1, cos(a)); EACH(2, exp(b)); EACH(3, log(fabs(a))); EACH(4, pow(fabs(a), b)); EACH(5, erf(b));
  EACH(6, fmod(a, b)); EACH(7, cbrt(a)); EACH(8, atan2(a, b)); EACH(9, hypot(a, b)); EACH(10, tanh(b)); EACH(11, a / b);
  EACH(12, rint(a)); EACH(13, sqrt(fabs(a))); EACH(14, lgamma(fabs(b))); EACH(15, nextafter(a, b));
}
extern "C" __global__ void checks(const int *x, int *o) {
  int i = threadIdx.x;
  assert(x[i] >= 0);
  if (x[i] > 100) printf("%d\n", x[i]);
  o[i] = x[i] + __dp2a_lo(x[i], 0x01ff02, 1) + (int)__vabsdiffu4(x[i], 0x10203) + (int)__fns(x[i], 3, 2);
}
