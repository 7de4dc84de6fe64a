// cuda_fp16.h: stands in for CUDA's; half_types.h has the types.
#pragma once
