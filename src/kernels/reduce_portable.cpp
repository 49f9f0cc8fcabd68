// The reference target: vectors of 16 bytes, which GCC lowers to whatever the processor has.
#include "kernels/table.hpp"

#define PACELINE_VECTOR_BYTES 16
#include "kernels/reduce_impl.inc"

namespace paceline {

constinit const KernelTable kPortableKernels = make_table();

}  // namespace paceline
