// AVX-512 (F, BW, DQ, VL): vectors of 64 bytes. Empty on other processors.
#if defined(__x86_64__)

#if !defined(__AVX512BW__) || !defined(__AVX512DQ__) || !defined(__AVX512VL__)
#error "This file needs the compiler flags of src/kernels/flags.cmake."
#endif

#include "kernels/table.hpp"

#define PACELINE_VECTOR_BYTES 64
#include "kernels/reduce_impl.inc"

namespace paceline {

constinit const KernelTable kAvx512Kernels = make_table();

}  // namespace paceline

#endif
