// sgd.cu: SGD with momentum for all parameters, and the exponential moving average of parameters and buffers, in one
// launch. The arithmetic is that of PyTorch's foreach implementation, rounding point by rounding point: each of its
// calls reads and writes fp32, and add with alpha compiles to one fused multiply-add.
//
//   weight decay  g = fma(wd, p, g)            _foreach_add(g, p, alpha=wd); not called for wd = 0
//   momentum      m = m * momentum             _foreach_mul_; PyTorch's first step sets m = g instead: it starts at -0
//   here,
//                 m = fma(1, g, m) = m + g     and -0 * momentum + g is g, bit for bit
//   Nesterov      g = fma(momentum, m, g)      else g = m. Without weight decay the foreach call works in place on the
//                 parameter's own .grad, with it on a copy: so with IN_PLACE the gradient itself changes here too
//   parameter     p = fma(-lr, g, p)
//   average       a = a * d                    _foreach_mul_
//                 a = fma(1 - d, p, a)         _foreach_add_, 1 - d in double before it is rounded
#include "prelude.cuh"

// One tensor. gradient is null where there is none (then p and m stay); average is null where there is none.
struct sgd_tensor {
  float* p;
  float* gradient;
  float* m;
  float* average;
  int64_t n;
  int64_t group;
};

// A piece of a tensor, for one block.
struct sgd_piece {
  int64_t tensor, begin, end;
};

// What may change from step to step.
struct sgd_settings {
  float minus_lr[16], weight_decay[16];
  float momentum, average_keep, average_take;
  uint32_t flags;
};
enum { NESTEROV = 1, IN_PLACE = 2 };

KERNEL(sgd, const sgd_tensor* tensors, const sgd_piece* pieces, const sgd_settings* s) {
  sgd_piece piece = pieces[blockIdx.x];
  sgd_tensor t = tensors[piece.tensor];
  float momentum = s->momentum, minus_lr = s->minus_lr[t.group], wd = s->weight_decay[t.group];
  float keep = s->average_keep, take = s->average_take;
  bool nesterov = s->flags & NESTEROV, in_place = s->flags & IN_PLACE && wd == 0.f;
  for (int64_t i = piece.begin + threadIdx.x; i < piece.end; i += blockDim.x) {
    float p = t.p[i];
    if (t.gradient) {
      float g = t.gradient[i];
      if (wd != 0.f) g = fmaf(wd, p, g);
      if (momentum != 0.f) {
        float m = t.m[i] * momentum + g;
        t.m[i] = m;
        g = nesterov ? fmaf(momentum, m, g) : m;
        if (nesterov && in_place) t.gradient[i] = g;
      }
      p = fmaf(minus_lr, g, p);
      t.p[i] = p;
    }
    if (t.average) t.average[i] = fmaf(take, p, t.average[i] * keep);
  }
}
