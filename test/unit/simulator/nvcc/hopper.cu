// Vector atomics and a cluster of one block, for sm_90.
#include <cuda_fp16.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void v(float2*a,float4*b,float4*o){ atomicAdd(a+1,make_float2(1,2)); o[threadIdx.x]=atomicAdd(b+1,make_float4(1,2,3,4)); }
extern "C" __global__ void c(int*o){ auto c=cg::this_cluster(); __shared__ int s; if(threadIdx.x==0)s=5; c.sync(); int*r=c.map_shared_rank(&s,0); o[threadIdx.x]=*r+c.num_blocks()+c.block_rank()*10; c.sync(); }
