#include "prelude.cuh"

// cat copies up to 8 inputs into one output, whatever their type: bytes. Each input is rows of len bytes that lie by
// bytes apart and go to places that lie pitch bytes apart. The y dimension of the grid is the input.
struct part {
  const uint8_t* from;
  uint8_t* to;
  uint32_t rows, len;
  int64_t by, pitch;
};

template <class Word> __device__ __forceinline__ void copy_rows(const part& p) {
  uint32_t words = p.len / sizeof(Word);
  int64_t all = (int64_t)p.rows * words;
#ifdef CUDA_HOST
  GRID_STRIDE(i, all) {
    int64_t row = i / words, at = (i - row * words) * sizeof(Word);
    *(Word*)(p.to + row * p.pitch + at) = *(const Word*)(p.from + row * p.by + at);
  }
#else
  // Four words are asked for before the first is waited for.
  int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += 4 * step) {
    Word word[4];
    uint8_t* to[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      int64_t j = i + k * step;
      if (j >= all) continue;
      uint32_t row = p.rows == 1 ? 0 : (uint32_t)j / words;
      int64_t at = (j - (int64_t)row * words) * sizeof(Word);
      to[k] = p.to + row * p.pitch + at;
      word[k] = *(const Word*)(p.from + row * p.by + at);
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
      if (i + k * step < all) *(Word*)to[k] = word[k];
  }
#endif
}

#define PART(i) \
  const uint8_t *from##i, uint8_t *to##i, uint32_t rows##i, uint32_t len##i, int64_t by##i, int64_t pitch##i
#define PICK(i) \
  case i: p = part{from##i, to##i, rows##i, len##i, by##i, pitch##i}; break;

KERNEL(cat, PART(0), PART(1), PART(2), PART(3), PART(4), PART(5), PART(6), PART(7)) {
  part p = {};
  switch (blockIdx.y) { PICK(0) PICK(1) PICK(2) PICK(3) PICK(4) PICK(5) PICK(6) PICK(7) }
  // The widest word that every row begins and ends with.
  uint64_t all = (uint64_t)p.from | (uint64_t)p.to | p.len;
  if (p.rows > 1) all |= (uint64_t)p.by | (uint64_t)p.pitch;
  if (all % 16 == 0)
    copy_rows<uint4>(p);
  else if (all % 8 == 0)
    copy_rows<uint2>(p);
  else if (all % 4 == 0)
    copy_rows<uint32_t>(p);
  else if (all % 2 == 0)
    copy_rows<uint16_t>(p);
  else
    copy_rows<uint8_t>(p);
}
