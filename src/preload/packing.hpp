// Buffers that MPI describes by any datatype, as the bytes that they send and receive.
#pragma once

#include <cstddef>

#include "host_mpi.hpp"

namespace paceline::preload {

// Bytes of `count` elements without their holes: equal on all ranks whose signatures are equal,
// whatever datatypes they describe them by. Throws where MPI refuses the datatype.
std::size_t packed_bytes(int count, MPI_Datatype type);

// Between a buffer and its `bytes` in a row. MPI packs nothing but the elements themselves: the two
// sides of a message may differ in whether they pack.
void pack(const void* buffer, int count, MPI_Datatype type, std::byte* packed, std::size_t bytes,
          MPI_Comm comm);
void unpack(const std::byte* packed, std::size_t bytes, void* buffer, int count, MPI_Datatype type,
            MPI_Comm comm);

// Where the element with this index lies in a buffer of them.
void* element_at(void* buffer, std::size_t index, MPI_Datatype type);

}  // namespace paceline::preload
