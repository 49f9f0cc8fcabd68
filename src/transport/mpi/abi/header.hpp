// The MPI whose mpi.h this is compiled with, linked in the ordinary way: for programs that can load
// none, such as simulated ones, and for MPIs with a binary interface of their own.
//
// Not part of the core, which knows no mpi.h: whoever wants it includes this file in one of theirs.
#pragma once

#define MPICH_SKIP_MPICXX 1  // no C++ bindings of long ago
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <memory>

#include "transport/mpi/abi/instance.hpp"

namespace paceline::mpi {

struct FromHeader {
  static constexpr const char* name = "header";
  using Comm = MPI_Comm;
  using Datatype = MPI_Datatype;
  using Op = MPI_Op;
  using Request = MPI_Request;
  using Errhandler = MPI_Errhandler;
  using Message = MPI_Message;
  using Status = MPI_Status;

  static constexpr int success = MPI_SUCCESS, error_in_status = MPI_ERR_IN_STATUS;
  static constexpr int undefined = MPI_UNDEFINED, any_source = MPI_ANY_SOURCE;
  static constexpr int single = MPI_THREAD_SINGLE, funneled = MPI_THREAD_FUNNELED;
  static constexpr int serialized = MPI_THREAD_SERIALIZED, multiple = MPI_THREAD_MULTIPLE;
  static constexpr int tag_ub = MPI_TAG_UB;
  static constexpr int error_string = MPI_MAX_ERROR_STRING;
  static constexpr int version_string = MPI_MAX_LIBRARY_VERSION_STRING;
  static void* in_place() { return MPI_IN_PLACE; }

  static MpiHandles<FromHeader> handles() {
    return {
        .world = MPI_COMM_WORLD,
        .no_request = MPI_REQUEST_NULL,
        .errors_return = MPI_ERRORS_RETURN,
        .byte = MPI_BYTE,
        .f64 = MPI_DOUBLE,
        .f32 = MPI_FLOAT,
        .i8 = MPI_INT8_T,
        .u8 = MPI_UINT8_T,
        .i16 = MPI_INT16_T,
        .u16 = MPI_UINT16_T,
        .i32 = MPI_INT32_T,
        .u32 = MPI_UINT32_T,
        .i64 = MPI_INT64_T,
        .u64 = MPI_UINT64_T,
        .boolean = MPI_C_BOOL,
        .sum = MPI_SUM,
        .product = MPI_PROD,
        .min = MPI_MIN,
        .max = MPI_MAX,
        .bit_and = MPI_BAND,
        .bit_or = MPI_BOR,
        .bit_xor = MPI_BXOR,
        .logical_and = MPI_LAND,
        .logical_or = MPI_LOR,
        .logical_xor = MPI_LXOR,
    };
  }

  static MpiFunctions<FromHeader> functions() {
    MpiFunctions<FromHeader> f;
#define PACELINE_TAKE(result, name, parameters) f.name = &PMPI_##name;
    PACELINE_MPI_FUNCTIONS(PACELINE_TAKE)
#undef PACELINE_TAKE
    return f;
  }
};

inline std::shared_ptr<MpiLibrary> make_from_header() {
  return std::make_shared<LibraryOf<FromHeader>>(FromHeader::functions(), FromHeader::handles());
}

}  // namespace paceline::mpi
