// The standard binary interface of MPI 5, as libraries called libmpi_abi offer it.
//
// Handles are pointers; predefined ones are small numbers.
#pragma once

#include <cstdint>

#include "transport/mpi/abi/functions.hpp"

namespace paceline::mpi {

struct Standard {
  static constexpr const char* name = "standard";
  using Comm = struct StandardComm*;
  using Datatype = struct StandardDatatype*;
  using Op = struct StandardOp*;
  using Request = struct StandardRequest*;
  using Errhandler = struct StandardErrhandler*;
  using Message = struct StandardMessage*;
  struct Status {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
    int internal[5];
  };

  static constexpr int success = 0, error_in_status = 19, undefined = -32766;
  static constexpr int any_source = -1;
  static constexpr int single = 0, funneled = 1024, serialized = 2048, multiple = 4096;
  static constexpr int tag_ub = 501;
  static constexpr int error_string = 512, version_string = 8192;
  static void* in_place() { return reinterpret_cast<void*>(1); }

  static MpiHandles<Standard> handles(const Symbols&) {
    const auto type = [](std::uintptr_t n) { return reinterpret_cast<Datatype>(n); };
    return {
        .world = reinterpret_cast<Comm>(0x101),
        .errors_return = reinterpret_cast<Errhandler>(0x143),
        .byte = type(0x247),
    };
  }
};

}  // namespace paceline::mpi
