// Predefined datatypes and operations of MPI as Paceline's, looked up by handle.
#pragma once

#include <cstddef>

#include "base/types.hpp"
#include "host_mpi.hpp"

namespace paceline::preload {

// Which operations MPI defines for a datatype.
enum class Class { integer, other_integer, floating, byte, boolean, plain };

struct Element {
  Type type = Type::u8;
  Class kind = Class::plain;  // plain: no operation that we have
  std::size_t bytes = 0;      // size and extent
};

// Null for datatypes that are not predefined, have holes, or that we do not know.
const Element* find_element(MPI_Datatype type);
// Null for operations that are not predefined, or that we do not have.
const Op* find_op(MPI_Op op);

// Whether MPI defines the operation for the datatype. The rest is the host's to refuse.
bool is_defined(Op op, Class kind);

}  // namespace paceline::preload
