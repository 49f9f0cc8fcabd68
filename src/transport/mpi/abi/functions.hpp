// The functions and predefined handles that Paceline uses of an MPI, for one binary interface.
//
// An interface A defines the types of handles, the layout of a status and a few constants: see the
// files beside this one.
#pragma once

#include "transport/mpi/symbols.hpp"

// Result, name behind PMPI_, parameters; handle types as in MpiFunctions.
#define PACELINE_MPI_FUNCTIONS(FUNCTION)                                                \
  FUNCTION(int, Init_thread, (int*, char***, int, int*))                                \
  FUNCTION(int, Initialized, (int*))                                                    \
  FUNCTION(int, Finalized, (int*))                                                      \
  FUNCTION(int, Finalize, ())                                                           \
  FUNCTION(int, Query_thread, (int*))                                                   \
  FUNCTION(int, Get_library_version, (char*, int*))                                     \
  FUNCTION(int, Error_string, (int, char*, int*))                                       \
  FUNCTION(double, Wtime, ())                                                           \
  FUNCTION(int, Comm_dup, (Comm, Comm*))                                                \
  FUNCTION(int, Comm_free, (Comm*))                                                     \
  FUNCTION(int, Comm_rank, (Comm, int*))                                                \
  FUNCTION(int, Comm_size, (Comm, int*))                                                \
  FUNCTION(int, Comm_set_errhandler, (Comm, Errhandler))                                \
  FUNCTION(int, Comm_get_attr, (Comm, int, void*, int*))                                \
  FUNCTION(int, Isend, (const void*, int, Datatype, int, int, Comm, Request*))          \
  FUNCTION(int, Issend, (const void*, int, Datatype, int, int, Comm, Request*))         \
  FUNCTION(int, Irecv, (void*, int, Datatype, int, int, Comm, Request*))                \
  FUNCTION(int, Iprobe, (int, int, Comm, int*, Status*))                                \
  FUNCTION(int, Improbe, (int, int, Comm, int*, Message*, Status*))                     \
  FUNCTION(int, Imrecv, (void*, int, Datatype, Message*, Request*))                     \
  FUNCTION(int, Testsome, (int, Request*, int*, int*, Status*))                         \
  FUNCTION(int, Waitsome, (int, Request*, int*, int*, Status*))                         \
  FUNCTION(int, Cancel, (Request*))                                                     \
  FUNCTION(int, Request_free, (Request*))                                               \
  FUNCTION(int, Get_count, (const Status*, Datatype, int*))                             \
  FUNCTION(int, Test_cancelled, (const Status*, int*))                                  \
  FUNCTION(int, Allgather, (const void*, int, Datatype, void*, int, Datatype, Comm))    \
  FUNCTION(int, Allgatherv,                                                             \
           (const void*, int, Datatype, void*, const int*, const int*, Datatype, Comm))

namespace paceline::mpi {

template <class A>
struct MpiFunctions {
  using Comm = typename A::Comm;
  using Datatype = typename A::Datatype;
  using Request = typename A::Request;
  using Errhandler = typename A::Errhandler;
  using Status = typename A::Status;
  using Message = typename A::Message;   // one that a probe has matched

#define PACELINE_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  PACELINE_MPI_FUNCTIONS(PACELINE_DECLARE)
#undef PACELINE_DECLARE

  static MpiFunctions load(const Symbols& symbols) {
    MpiFunctions f;
#define PACELINE_LOAD(result, name, parameters) \
  f.name = reinterpret_cast<decltype(f.name)>(symbols.need("PMPI_" #name));
    PACELINE_MPI_FUNCTIONS(PACELINE_LOAD)
#undef PACELINE_LOAD
    return f;
  }
};

template <class A>
struct MpiHandles {
  typename A::Comm world;
  typename A::Errhandler errors_return;
  typename A::Datatype byte;
};

}  // namespace paceline::mpi
