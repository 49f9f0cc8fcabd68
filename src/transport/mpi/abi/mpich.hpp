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
        .no_request = 0x2c000000,
        .errors_return = 0x54000001,
        .byte = 0x4c00010d,
        .f64 = 0x4c00080b,
        .f32 = 0x4c00040a,
        .i8 = 0x4c000137,
        .u8 = 0x4c00013b,
        .i16 = 0x4c000238,
        .u16 = 0x4c00023c,
        .i32 = 0x4c000439,
        .u32 = 0x4c00043d,
        .i64 = 0x4c00083a,
        .u64 = 0x4c00083e,
        .boolean = 0x4c00013f,
        .sum = 0x58000003,
        .product = 0x58000004,
        .min = 0x58000002,
        .max = 0x58000001,
        .bit_and = 0x58000006,
        .bit_or = 0x58000008,
        .bit_xor = 0x5800000a,
        .logical_and = 0x58000005,
        .logical_or = 0x58000007,
        .logical_xor = 0x58000009,
    };
  }
};

}  // namespace paceline::mpi
