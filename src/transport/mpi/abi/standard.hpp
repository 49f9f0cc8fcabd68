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
    const auto op = [](std::uintptr_t n) { return reinterpret_cast<Op>(n); };
    return {
        .world = reinterpret_cast<Comm>(0x101),
        .no_request = reinterpret_cast<Request>(0x180),
        .errors_return = reinterpret_cast<Errhandler>(0x143),
        .byte = type(0x247),
        .f64 = type(0x214),
        .f32 = type(0x210),
        .i8 = type(0x240),
        .u8 = type(0x241),
        .i16 = type(0x248),
        .u16 = type(0x249),
        .i32 = type(0x250),
        .u32 = type(0x251),
        .i64 = type(0x258),
        .u64 = type(0x259),
        .boolean = type(0x238),
        .sum = op(0x21),
        .product = op(0x24),
        .min = op(0x22),
        .max = op(0x23),
        .bit_and = op(0x28),
        .bit_or = op(0x29),
        .bit_xor = op(0x2a),
        .logical_and = op(0x30),
        .logical_or = op(0x31),
        .logical_xor = op(0x32),
    };
  }
};

}  // namespace paceline::mpi
