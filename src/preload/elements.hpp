// Predefined datatypes and operations of MPI as Paceline's, looked up by handle.
#pragma once

#include <cstddef>

#include "base/types.hpp"
#include "host_mpi.hpp"

namespace paceline::preload {

// Class of a datatype, by the operations that MPI defines for it.
enum class Class { integer, other_integer, floating, byte, boolean, plain };

struct Element {
  Type type = Type::u8;
  Class kind = Class::plain;  // plain: none of Paceline's operations
  std::size_t bytes = 0;      // size and extent
};

// Null for datatypes that are not predefined, have holes, or are unknown to Paceline.
const Element* find_element(MPI_Datatype type);
// Null for operations that are not predefined or that Paceline lacks.
const Op* find_op(MPI_Op op);

// True if MPI defines the operation for the datatype. The host refuses the others.
bool is_defined(Op op, Class kind);

}  // namespace paceline::preload
