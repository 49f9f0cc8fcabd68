#include "profiler.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/error.hpp"
#include "base/options.hpp"
#include "recording.hpp"

namespace paceline::preload {
namespace {

#define IN const void*
#define OUT void*
#define ROOT int
#define OP MPI_Op
#define TYPE MPI_Datatype
#define TYPES const MPI_Datatype*
#define AINTS const MPI_Aint*
#define FORM(suffix, name, nonblocking, types, values, bytes)                                     \
  int name##suffix(UNWRAP types MPI_Comm comm) {                                                  \
    using Function = int(UNWRAP types MPI_Comm);                                                  \
    return recorded(kName_##name, comm, CALLER, BYTES(bytes), [&] {                               \
      return host_as<Function>(PACELINE_STUB_##name##suffix)(UNWRAP values comm);                 \
    });                                                                                           \
  }                                                                                               \
  int nonblocking##suffix(UNWRAP types MPI_Comm comm, MPI_Request* request) {                     \
    using Function = int(UNWRAP types MPI_Comm, MPI_Request*);                                    \
    return begun(kName_##name, comm, CALLER, BYTES(bytes), [&] { return *request; }, [&] {        \
      return host_as<Function>(PACELINE_STUB_I##name##suffix)(UNWRAP values comm, request);       \
    });                                                                                           \
  }                                                                                               \
  int name##_init##suffix(UNWRAP types MPI_Comm comm, MPI_Info info, MPI_Request* request) {      \
    using Function = int(UNWRAP types MPI_Comm, MPI_Info, MPI_Request*);                          \
    return prepared(kName_##name, comm, BYTES(bytes), [&] { return *request; }, [&] {             \
      return host_as<Function>(PACELINE_STUB_##name##_init##suffix)(UNWRAP values comm, info,     \
                                                                    request);                     \
    });                                                                                           \
  }

#define COUNT int
#define COUNTS const int*
#define DISPLS const int*
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  FORM(, name, nonblocking, types, values, bytes)
#include "mpi_calls.def"
#undef COUNT
#undef COUNTS
#undef DISPLS

#define COUNT std::int64_t
#define COUNTS const std::int64_t*
#define DISPLS const std::intptr_t*
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  FORM(_c, name, nonblocking, types, values, bytes)
#include "mpi_calls.def"

#define REQUESTS MPI_Request*
#define STATUSES MPI_Status*
#define LENGTH int
#define INTS int*
#define REQUEST MPI_Request
#define REQUEST_AT(request) (&request)
#define WAIT(n, body) waited(n, at, body)
#define ANY WAIT
#define SOME WAIT
#define TEST WAIT
#define LOOK(n, body) body()   // its record ends with the request
#define START(n, body) started(n, at, CALLER, body)
#define FREE(n, body) freed(at, body)
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests)                  \
  int name types {                                                                     \
    using Function = int types;                                                        \
    [[maybe_unused]] const auto at = [&](int i) { return (requests)[i]; };             \
    const auto body = [&] { return host_as<Function>(PACELINE_STUB_##name) values; };  \
    return kind((requests) ? n : 0, body);                                             \
  }
#include "mpi_requests.def"

}  // namespace

bool is_profile_wanted() { return !text_of(Option::profile).empty(); }

void record_calls(paceline_function table[PACELINE_STUB_CALLS]) {
  std::copy_n(table, PACELINE_STUB_CALLS, host.begin());
#define PUT(name, nonblocking, suffix)                              \
  put(table, PACELINE_STUB_##name##suffix, name##suffix);           \
  put(table, PACELINE_STUB_I##name##suffix, nonblocking##suffix);   \
  put(table, PACELINE_STUB_##name##_init##suffix, name##_init##suffix);
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  PUT(name, nonblocking, ) PUT(name, nonblocking, _c)
#include "mpi_calls.def"
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) \
  put(table, PACELINE_STUB_##name, name);
#include "mpi_requests.def"
  record_fortran(table);
}

void begin_profile() {
  compare_clocks("start");
}

}  // namespace paceline::preload
