// Records the calls of Fortran programs. They pass addresses, the last one of the error code; the
// module mpi_f08 passes the same, but may omit the error code.
//
// In MPICH's family the Fortran wrapper calls the functions in C, which record: this file then only
// keeps the caller's address. Calls of mpi_f08 without buffers call PMPI_ names there, as in Open
// MPI; calls with buffers pass descriptors, which this file does not read.
#include "fortran.hpp"
#include "recording.hpp"

namespace paceline::preload {
namespace {

template <class Body>
int from_fortran(const void* caller, Body&& body) {
  fortran_caller = caller;
  const int status = body();
  fortran_caller = nullptr;
  return status;
}

#define HERE __builtin_return_address(0)
#define IN const void*
#define OUT void*
#define ROOT FortranInt
#define OP const MPI_Fint*
#define TYPE FortranType
#define TYPES FortranTypes
#define COUNT FortranInt
#define COUNTS const MPI_Fint*
#define DISPLS const MPI_Fint*
#define AINTS const MPI_Aint*
#define LENGTH FortranInt
#define INTS MPI_Fint*
#define REQUESTS MPI_Fint*
#define STATUSES void*

// True if the Fortran wrapper calls the functions in C.
constexpr bool kCallsC_f = kFortranCallsC, kCallsC_f08 = false;

// BODY: the host's call as `body`. MADE: the request that it has made.
#define BODY(suffix, which, types, values)                          \
  using Function = void types;                                      \
  MPI_Fint own = MPI_SUCCESS;                                       \
  if (!error) error = &own;                                         \
  const auto body = [&] {                                           \
    host_as<Function>(PACELINE_STUB_##which) values;                \
    return int(*error);                                             \
  };                                                                \
  if (kCallsC##suffix) return from_fortran(HERE, body)
#define MADE [&] { return PMPI_Request_f2c(*request); }

#define FORM(suffix, name, types, values, bytes)                                                  \
  int name##suffix(UNWRAP types const MPI_Fint* comm, MPI_Fint* error) {                          \
    BODY(suffix, name##suffix, (UNWRAP types const MPI_Fint*, MPI_Fint*),                         \
         (UNWRAP values comm, error));                                                            \
    return recorded(kName_##name, PMPI_Comm_f2c(*comm), HERE, BYTES(bytes), body);                \
  }                                                                                               \
  int I##name##suffix(UNWRAP types const MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {    \
    BODY(suffix, I##name##suffix, (UNWRAP types const MPI_Fint*, MPI_Fint*, MPI_Fint*),           \
         (UNWRAP values comm, request, error));                                                   \
    return begun(kName_##name, PMPI_Comm_f2c(*comm), HERE, BYTES(bytes), MADE, body);             \
  }                                                                                               \
  int name##_init##suffix(UNWRAP types const MPI_Fint* comm, const MPI_Fint* info,                \
                          MPI_Fint* request, MPI_Fint* error) {                                   \
    BODY(suffix, name##_init##suffix,                                                             \
         (UNWRAP types const MPI_Fint*, const MPI_Fint*, MPI_Fint*, MPI_Fint*),                   \
         (UNWRAP values comm, info, request, error));                                             \
    return prepared(kName_##name, PMPI_Comm_f2c(*comm), BYTES(bytes), MADE, body);                \
  }
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  FORM(_f, name, types, values, bytes) FORM(_f08, name, types, values, bytes)
#include "mpi_calls.def"

#define REQUEST MPI_Fint*
#define REQUEST_AT(request) request
#define WAIT(n, body) waited(int(n), at, body)
#define ANY WAIT
#define SOME WAIT
#define TEST WAIT
#define LOOK(n, body) body()
#define START(n, body) started(int(n), at, HERE, body)
#define FREE(n, body) freed(at, body)
#define REQUEST_FORM(suffix, kind, name, types, values, n, requests)           \
  int name##suffix(UNWRAP types, MPI_Fint* error) {                            \
    BODY(suffix, name##suffix, (UNWRAP types, MPI_Fint*),                      \
         (UNWRAP values, error));                                              \
    [[maybe_unused]] const auto at = [&](int i) {                              \
      return PMPI_Request_f2c((requests)[i]);                                  \
    };                                                                         \
    return kind(n, body);                                                      \
  }
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) \
  REQUEST_FORM(_f, kind, name, types, values, n, requests)            \
  REQUEST_FORM(_f08, kind, name, types, values, n, requests)
#include "mpi_requests.def"

// Calls that pass descriptors of buffers.
#undef ROOT
#undef TYPE
#undef TYPES
#undef COUNT
#define ROOT const void*
#define TYPE const void*
#define TYPES const void*
#define COUNT const void*
#define DESCRIBED(which, types, values)                         \
  int which types {                                             \
    using Function = void types;                                \
    return from_fortran(HERE, [&] {                             \
      host_as<Function>(PACELINE_STUB_##which) values;          \
      return int(MPI_SUCCESS);                                  \
    });                                                         \
  }
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                \
  DESCRIBED(name##_f08ts, (UNWRAP types const void* comm, void* error),                     \
            (UNWRAP values comm, error))                                                    \
  DESCRIBED(I##name##_f08ts, (UNWRAP types const void* comm, void* request, void* error),   \
            (UNWRAP values comm, request, error))                                           \
  DESCRIBED(name##_init_f08ts,                                                              \
            (UNWRAP types const void* comm, const void* info, void* request, void* error),  \
            (UNWRAP values comm, info, request, error))
#include "mpi_calls.def"

}  // namespace

void record_fortran(paceline_function table[PACELINE_STUB_CALLS]) {
#define PUT(name, suffix)                                           \
  put(table, PACELINE_STUB_##name##suffix, name##suffix);           \
  put(table, PACELINE_STUB_I##name##suffix, I##name##suffix);       \
  put(table, PACELINE_STUB_##name##_init##suffix, name##_init##suffix);
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  PUT(name, _f) PUT(name, _f08) PUT(name, _f08ts)
#include "mpi_calls.def"
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) \
  put(table, PACELINE_STUB_##name##_f, name##_f);                     \
  put(table, PACELINE_STUB_##name##_f08, name##_f08);
#include "mpi_requests.def"
}

}  // namespace paceline::preload
