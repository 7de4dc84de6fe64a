// nll_loss.cu: the negative log-likelihood of one class a row and its gradient, as PyTorch 2.11's
// nll_loss_forward_reduce_cuda_kernel_2d and nll_loss_backward_reduce_cuda_kernel_2d compute them, without class
// weights. One block: every thread subtracts the rows a block's size apart, then the halves of the block are added.
//
// A target that is no class makes PyTorch abort. Here the loss becomes NaN, its row gets no gradient, and nothing
// outside of the tensors is read or written.
#include "prelude.cuh"

template <class T> __device__ __forceinline__ void nll_loss_forward(T* loss, T* total_weight, const T* input,
                                                                    const int64_t* target, int mean, int rows,
                                                                    int64_t classes, int64_t ignore) {
  DYN_SHARED(float, sum);
  float* weight = sum + blockDim.x;
  float s = 0, w = 0;
  for (int i = threadIdx.x; i < rows; i += blockDim.x) {
    int64_t t = target[i];
    if (t == ignore) continue;
    s -= t >= 0 && t < classes ? ld(input + i * classes + t) : NAN;
    w += 1;
  }
  sum[threadIdx.x] = s;
  weight[threadIdx.x] = w;
  __syncthreads();
  for (uint32_t half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      sum[threadIdx.x] += sum[threadIdx.x + half];
      weight[threadIdx.x] += weight[threadIdx.x + half];
    }
    __syncthreads();
  }
  if (threadIdx.x > 0) return;
  st(total_weight, weight[0]);
  st(loss, mean ? sum[0] / weight[0] : sum[0]);
}

// to was filled with zeros before. The quotient is rounded to T before it is negated and stored.
template <class T> __device__ __forceinline__ void nll_loss_backward(T* to, const T* grad, const int64_t* target,
                                                                     const T* total_weight, int mean, int rows,
                                                                     int64_t classes, int64_t ignore) {
  float g = mean ? ld(grad) / ld(total_weight) : ld(grad);
  GRID_STRIDE(i, rows) {
    int64_t t = target[i];
    if (t != ignore && t >= 0 && t < classes) st(to + i * classes + t, -g);
  }
}

#define ENTRIES(T, suffix)                                                                                         \
  KERNEL_BOUNDS(nll_loss_forward_##suffix, 1024, T* loss, T* total_weight, const T* input, const int64_t* target,  \
                int mean, int rows, int64_t classes, int64_t ignore) {                                             \
    nll_loss_forward(loss, total_weight, input, target, mean, rows, classes, ignore);                              \
  }                                                                                                                \
  KERNEL(nll_loss_backward_##suffix, T* to, const T* grad, const int64_t* target, const T* total_weight, int mean, \
         int rows, int64_t classes, int64_t ignore) {                                                              \
    nll_loss_backward(to, grad, target, total_weight, mean, rows, classes, ignore);                                \
  }
EACH_DTYPE(ENTRIES)
