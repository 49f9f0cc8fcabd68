// The functions of an MPI that are measured, for one binary interface.
#pragma once

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "loaded.hpp"

// Result, name behind PMPI_, parameters; handle types as in Functions.
#define PACELINE_PEER_FUNCTIONS(FUNCTION)                                               \
  FUNCTION(int, Error_string, (int, char*, int*))                                       \
  FUNCTION(int, Comm_rank, (Comm, int*))                                                \
  FUNCTION(int, Comm_size, (Comm, int*))                                                \
  FUNCTION(int, Barrier, (Comm))                                                        \
  FUNCTION(int, Bcast, (void*, int, Datatype, int, Comm))                               \
  FUNCTION(int, Allreduce, (const void*, void*, int, Datatype, Op, Comm))               \
  FUNCTION(int, Reduce, (const void*, void*, int, Datatype, Op, int, Comm))             \
  FUNCTION(int, Reduce_scatter_block, (const void*, void*, int, Datatype, Op, Comm))    \
  FUNCTION(int, Allgather, (const void*, int, Datatype, void*, int, Datatype, Comm))    \
  FUNCTION(int, Alltoall, (const void*, int, Datatype, void*, int, Datatype, Comm))     \
  FUNCTION(int, Gather, (const void*, int, Datatype, void*, int, Datatype, int, Comm))  \
  FUNCTION(int, Scatter, (const void*, int, Datatype, void*, int, Datatype, int, Comm)) \
  FUNCTION(int, Iallreduce,                                                             \
           (const void*, void*, int, Datatype, Op, Comm, Request*))                     \
  FUNCTION(int, Ireduce,                                                                \
           (const void*, void*, int, Datatype, Op, int, Comm, Request*))                \
  FUNCTION(int, Ibcast, (void*, int, Datatype, int, Comm, Request*))                    \
  FUNCTION(int, Iallgatherv, (const void*, int, Datatype, void*, const int*,            \
           const int*, Datatype, Comm, Request*))                                       \
  FUNCTION(int, Waitall, (int, Request*, Status*))                                      \
  FUNCTION(int, Sendrecv, (const void*, int, Datatype, int, int, void*, int, Datatype,  \
           int, int, Comm, Status*))                                                    \
  FUNCTION(int, Reduce_local, (const void*, void*, int, Datatype, Op))

namespace paceline::peers {

template <class A>
struct Functions {
  using Comm = typename A::Comm;
  using Datatype = typename A::Datatype;
  using Op = typename A::Op;
  using Request = typename A::Request;
  using Status = typename A::Status;

#define PACELINE_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  PACELINE_PEER_FUNCTIONS(PACELINE_DECLARE)
#undef PACELINE_DECLARE

  static Functions load(const Loaded& library) {
    Functions f;
#define PACELINE_LOAD(result, name, parameters) \
  f.name = reinterpret_cast<decltype(f.name)>(library.need("PMPI_" #name));
    PACELINE_PEER_FUNCTIONS(PACELINE_LOAD)
#undef PACELINE_LOAD
    return f;
  }

  void check(int code, const char* what) const {
    if (code == A::success) return;
    char text[A::error_string + 1] = {};
    int length = 0;
    if (Error_string(code, text, &length) != A::success) length = 0;
    fail(Fault::resource, "mpi: PMPI_", what, " failed: ",
         std::string_view(text, std::size_t(std::clamp(length, 0, A::error_string))), ".");
  }
};

}  // namespace paceline::peers
