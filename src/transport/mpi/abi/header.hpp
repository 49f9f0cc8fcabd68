// The MPI whose mpi.h this is compiled with, linked in the ordinary way: for programs that can load
// none, such as simulated ones, and for MPIs with a binary interface of their own.
//
// The core knows no mpi.h and does not include this file; a program that needs it does so in one of
// its own.
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

  static MpiHandles<FromHeader> handles() {
    return {
        .world = MPI_COMM_WORLD,
        .errors_return = MPI_ERRORS_RETURN,
        .byte = MPI_BYTE,
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
