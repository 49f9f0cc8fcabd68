// The binary interface of MPICH 3.1 and newer, and of what follows it: Intel MPI and others.
//
// Handles are numbers.
#pragma once

#include "transport/mpi/abi/functions.hpp"

namespace paceline::mpi {

struct Mpich {
  static constexpr const char* name = "mpich";
  using Comm = int;
  using Datatype = int;
  using Op = int;
  using Request = int;
  using Errhandler = int;
  using Message = int;
  struct Status {
    int count_low, count_high;
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
  };

  static constexpr int success = 0, error_in_status = 17, undefined = -32766;
  static constexpr int any_source = -2;
  static constexpr int single = 0, funneled = 1, serialized = 2, multiple = 3;
  static constexpr int tag_ub = 0x64400001;
  static constexpr int error_string = 512, version_string = 8192;
  static void* in_place() { return reinterpret_cast<void*>(-1L); }

  static MpiHandles<Mpich> handles(const Symbols&) {
    return {
        .world = 0x44000000,
        .errors_return = 0x54000001,
        .byte = 0x4c00010d,
    };
  }
};

}  // namespace paceline::mpi
