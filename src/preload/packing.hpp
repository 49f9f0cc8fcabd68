// Packing: buffers of any MPI datatype as the bytes that they send and receive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host_mpi.hpp"

namespace paceline::preload {

// Returns the bytes of `count` elements without holes: equal on all ranks with equal signatures,
// even if their datatypes differ. Throws if MPI refuses the datatype.
std::size_t packed_bytes(std::size_t count, MPI_Datatype type);

// Copies between `count` elements of a buffer and their `bytes` contiguous bytes. MPI packs only
// the elements themselves, so that one side of a message may pack and the other not. Throws a
// resource error for an element of more than 2 GiB.
void pack(const void* buffer, std::size_t count, MPI_Datatype type, std::byte* packed,
          std::size_t bytes);
void unpack(const std::byte* packed, std::size_t bytes, void* buffer, std::size_t count,
            MPI_Datatype type);

// Returns the address of the element with this index.
void* element_at(const void* buffer, std::int64_t index, MPI_Datatype type);

}  // namespace paceline::preload
