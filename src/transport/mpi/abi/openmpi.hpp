// The binary interface of Open MPI 4 and 5.
//
// Handles are pointers; predefined ones are the addresses of objects that the library defines.
#pragma once

#include <cstddef>

#include "transport/mpi/abi/functions.hpp"

namespace paceline::mpi {

struct OpenMpi {
  static constexpr const char* name = "openmpi";
  using Comm = struct OpenMpiComm*;
  using Datatype = struct OpenMpiDatatype*;
  using Op = struct OpenMpiOp*;
  using Request = struct OpenMpiRequest*;
  using Errhandler = struct OpenMpiErrhandler*;
  using Message = struct OpenMpiMessage*;
  struct Status {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
    int cancelled;
    std::size_t count;
  };

  static constexpr int success = 0, error_in_status = 18, undefined = -32766;
  static constexpr int any_source = -1;
  static constexpr int single = 0, funneled = 1, serialized = 2, multiple = 3;
  static constexpr int tag_ub = 0;
  static constexpr int error_string = 256, version_string = 256;
  static void* in_place() { return reinterpret_cast<void*>(1); }

  static MpiHandles<OpenMpi> handles(const Symbols& s) {
    const auto comm = [&](const char* n) { return static_cast<Comm>(s.need(n)); };
    const auto handler = [&](const char* n) { return static_cast<Errhandler>(s.need(n)); };
    const auto type = [&](const char* n) { return static_cast<Datatype>(s.need(n)); };
    return {
        .world = comm("ompi_mpi_comm_world"),
        .errors_return = handler("ompi_mpi_errors_return"),
        .byte = type("ompi_mpi_byte"),
    };
  }
};

}  // namespace paceline::mpi
