// The data types and operations that every MPI predefines, by Paceline's names for them.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "transport/mpi/abi/mpich.hpp"
#include "transport/mpi/abi/openmpi.hpp"

namespace paceline::peers {

// Numbers under MPICH's interface and the standard one, the names of objects under Open MPI's.
struct Predefined {
  std::string_view name;
  int mpich;
  const char* openmpi;
  std::uintptr_t standard;
};

inline constexpr Predefined kTypes[] = {
    {"float64", 0x4c00080b, "ompi_mpi_double", 0x214},
    {"float32", 0x4c00040a, "ompi_mpi_float", 0x210},
    {"int8", 0x4c000137, "ompi_mpi_int8_t", 0x240},
    {"uint8", 0x4c00013b, "ompi_mpi_uint8_t", 0x241},
    {"int16", 0x4c000238, "ompi_mpi_int16_t", 0x248},
    {"uint16", 0x4c00023c, "ompi_mpi_uint16_t", 0x249},
    {"int32", 0x4c000439, "ompi_mpi_int32_t", 0x250},
    {"uint32", 0x4c00043d, "ompi_mpi_uint32_t", 0x251},
    {"int64", 0x4c00083a, "ompi_mpi_int64_t", 0x258},
    {"uint64", 0x4c00083e, "ompi_mpi_uint64_t", 0x259},
    {"bool", 0x4c00013f, "ompi_mpi_c_bool", 0x238},
};

inline constexpr Predefined kOps[] = {
    {"sum", 0x58000003, "ompi_mpi_op_sum", 0x21},
    {"product", 0x58000004, "ompi_mpi_op_prod", 0x24},
    {"min", 0x58000002, "ompi_mpi_op_min", 0x22},
    {"max", 0x58000001, "ompi_mpi_op_max", 0x23},
    {"bit_and", 0x58000006, "ompi_mpi_op_band", 0x28},
    {"bit_or", 0x58000008, "ompi_mpi_op_bor", 0x29},
    {"bit_xor", 0x5800000a, "ompi_mpi_op_bxor", 0x2a},
    {"logical_and", 0x58000005, "ompi_mpi_op_land", 0x30},
    {"logical_or", 0x58000007, "ompi_mpi_op_lor", 0x31},
    {"logical_xor", 0x58000009, "ompi_mpi_op_lxor", 0x32},
};

inline constexpr Predefined kNoRequest = {"no request", 0x2c000000, "ompi_request_null", 0x180};

// The handle of one binary interface. `names` has need(name), which finds an object of the library.
template <class A, class Handle, class Names>
Handle handle_of(const Predefined& one, const Names& names) {
  if constexpr (std::is_base_of_v<mpi::Mpich, A>)
    return one.mpich;
  else if constexpr (std::is_base_of_v<mpi::OpenMpi, A>)
    return static_cast<Handle>(names.need(one.openmpi));
  else
    return reinterpret_cast<Handle>(one.standard);
}

}  // namespace paceline::peers
