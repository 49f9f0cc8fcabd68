// The calls of Fortran programs that do not reach the functions in C: all of Open MPI; in MPICH's
// family those of mpi_f08 without buffers, such as MPI_Barrier and MPI_Wait.
#include "fortran.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "join.hpp"
#include "started.hpp"
#include "stub_table.hpp"

namespace paceline::preload {
namespace {

std::array<paceline_function, PACELINE_STUB_CALLS> before;   // those that serve, in C

struct Variables {
  std::vector<const void*> in_place, bottom;   // of each library or program that has its own
};

void add(std::vector<const void*>& to, void* library, const char* const (&names)[4]) {
  for (const char* name : names)
    if (const void* found = dlsym(library, name); found && std::ranges::find(to, found) == to.end())
      to.push_back(found);
}

int look_in(dl_phdr_info* object, std::size_t, void* data) {
  auto& found = *static_cast<Variables*>(data);
  void* const library = dlopen(object->dlpi_name[0] ? object->dlpi_name : nullptr,
                               RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return 0;
  add(found.in_place, library, {"mpi_fortran_in_place_", "mpi_fortran_in_place",
                                "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"});
  add(found.bottom, library, {"mpi_fortran_bottom_", "mpi_fortran_bottom", "mpi_fortran_bottom__",
                              "MPI_FORTRAN_BOTTOM"});
  dlclose(library);
  return 0;
}

const Variables& variables() {
  static const Variables found = [] {
    Variables all;
    dl_iterate_phdr(look_in, &all);
    return all;
  }();
  return found;
}

bool is_one_of(const std::vector<const void*>& all, const void* address) {
  return std::ranges::find(all, address) != all.end();
}

#define UNWRAP(...) __VA_ARGS__
#define LONG(count) count
#define LONGS(counts, length) counts
#define IN FortranBuffer
#define OUT FortranBuffer
#define ROOT FortranInt
#define OP FortranOp
#define TYPE FortranType
#define COUNT FortranInt
#define COUNTS const int*
#define DISPLS const int*

template <class Function>
Function* as(paceline_function function) {
  return reinterpret_cast<Function*>(function);
}

#define C_CALL(name) as<std::remove_pointer_t<decltype(&PMPI_##name)>>(before[PACELINE_STUB_##name])
#define C_STARTED(name, c) \
  as<std::remove_pointer_t<decltype(&PMPI_##name)>>(before[PACELINE_STUB_##c])

#define SERVE(suffix, name, types, values)                                                        \
  void name##suffix(UNWRAP types const MPI_Fint* comm, MPI_Fint* error) {                         \
    const int status = C_CALL(name)(UNWRAP values PMPI_Comm_f2c(*comm));                          \
    if (error) *error = status;                                                                   \
  }
#define SERVE_STARTED(suffix, name, nonblocking, types, values)                                   \
  void I##name##suffix(UNWRAP types const MPI_Fint* comm, MPI_Fint* request, MPI_Fint* error) {   \
    MPI_Request own = MPI_REQUEST_NULL;                                                           \
    const int status =                                                                            \
        C_STARTED(nonblocking, I##name)(UNWRAP values PMPI_Comm_f2c(*comm), &own);                \
    *request = PMPI_Request_c2f(own);                                                             \
    if (error) *error = status;                                                                   \
  }
#ifdef PACELINE_MPI_HAS_PERSISTENT
#define SERVE_PERSISTENT(suffix, name, types, values)                                             \
  void name##_init##suffix(UNWRAP types const MPI_Fint* comm, const MPI_Fint* info,               \
                           MPI_Fint* request, MPI_Fint* error) {                                  \
    MPI_Request own = MPI_REQUEST_NULL;                                                           \
    const int status = C_CALL(name##_init)(UNWRAP values PMPI_Comm_f2c(*comm),                    \
                                           PMPI_Info_f2c(*info), &own);                           \
    *request = PMPI_Request_c2f(own);                                                             \
    if (error) *error = status;                                                                   \
  }
#else
#define SERVE_PERSISTENT(suffix, name, types, values)
#endif

#ifdef OPEN_MPI
#define SERVE_SERVED(name, nonblocking, types, values) \
  SERVE_ALL(_f, name, nonblocking, types, values)      \
  SERVE_ALL(_f08, name, nonblocking, types, values)
#define SERVE_WITHOUT_COUNTS SERVE_SERVED
#else
#define SERVE_SERVED(name, nonblocking, types, values)
#define SERVE_WITHOUT_COUNTS(name, nonblocking, types, values) \
  SERVE_ALL(_f08, name, nonblocking, types, values)
#endif
#define SERVE_HOST(name, nonblocking, types, values)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  SERVE_##kind(name, nonblocking, types, values)
#include "mpi_calls.def"

// Requests: ours are completed first, then the host's function in Fortran is called.
#define REQUESTS MPI_Fint*
#define REQUEST MPI_Fint*
#define REQUEST_AT(request) request
#define STATUSES MPI_Fint*
#define LENGTH FortranInt
#define INTS MPI_Fint*
#define WAIT(suffix, count, at, host) with_ours(count, at, host, &Ours::wait)
#define ANY(suffix, count, at, host)                                                              \
  wait_for_some(count, at, host, [&](int& code) {                                                 \
    MPI_Fint flag = 0;                                                                            \
    as<void(FortranInt, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*)>(                  \
        before[PACELINE_STUB_Testany##suffix])(n, requests, index, &flag, status, error);         \
    code = int(*error);                                                                           \
    return flag || code != MPI_SUCCESS;                                                           \
  })
#define SOME(suffix, count, at, host)                                                             \
  wait_for_some(count, at, host, [&](int& code) {                                                 \
    as<void(FortranInt, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*, MPI_Fint*)>(                  \
        before[PACELINE_STUB_Testsome##suffix])(n, requests, done, indices, status, error);       \
    code = int(*error);                                                                           \
    return *done != 0 || code != MPI_SUCCESS;                                                     \
  })
#define TEST(suffix, count, at, host) with_ours(count, at, host, &Ours::look)
#define LOOK(suffix, count, at, host) with_ours(count, at, host, &Ours::look)
#define START(suffix, count, at, host) with_ours(count, at, host, &Ours::start)
#define FREE(suffix, count, at, host) with_ours(count, at, host, &Ours::free)
#define SERVE_REQUESTS(suffix, kind, name, types, values, n, requests)                            \
  void name##suffix(UNWRAP types, MPI_Fint* error) {                                              \
    using Function = void(UNWRAP types, MPI_Fint*);                                               \
    MPI_Fint own = MPI_SUCCESS;                                                                   \
    if (!error) error = &own;                                                                     \
    const auto host = [&] {                                                                       \
      as<Function>(before[PACELINE_STUB_##name##suffix])(UNWRAP values, error);                   \
      return int(*error);                                                                         \
    };                                                                                            \
    const auto at = [&](int i) { return PMPI_Request_f2c((requests)[i]); };                       \
    *error = MPI_Fint(kind(suffix, int(n), at, host));                                            \
  }
#ifdef OPEN_MPI
#define REQUESTS_OF_FORTRAN(...) SERVE_REQUESTS(_f, __VA_ARGS__) SERVE_REQUESTS(_f08, __VA_ARGS__)
#else
#define REQUESTS_OF_FORTRAN(...) SERVE_REQUESTS(_f08, __VA_ARGS__)
#endif
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) \
  REQUESTS_OF_FORTRAN(kind, name, types, values, n, requests)
#include "mpi_requests.def"

#define COMM MPI_Fint*
#define COMMS MPI_Fint*
#define INFO MPI_Fint*
#define GROUP MPI_Fint*
#define FROM_comm PMPI_Comm_f2c(*comm)
#define FROM_none MPI_COMM_NULL
#define SERVE_COMMS(suffix, from, name, types, values)                                            \
  void name##suffix(UNWRAP types, MPI_Fint* error) {                                              \
    using Function = void(UNWRAP types, MPI_Fint*);                                               \
    MPI_Fint own = MPI_SUCCESS;                                                                   \
    if (!error) error = &own;                                                                     \
    as<Function>(before[PACELINE_STUB_##name##suffix])(UNWRAP values, error);                     \
    if (*error == MPI_SUCCESS) attach(FROM_##from, PMPI_Comm_f2c(*made));                         \
  }
#ifdef OPEN_MPI
#define PACELINE_ROW(name, fortran, from, types, values) \
  SERVE_COMMS(_f, from, name, types, values) SERVE_COMMS(_f08, from, name, types, values)
#else
#define PACELINE_ROW(name, fortran, from, types, values) \
  SERVE_COMMS(_f08, from, name, types, values)
#endif
#include "mpi_comms.def"

}  // namespace

FortranBuffer::operator void*() const {
  if (is_one_of(variables().in_place, at)) return MPI_IN_PLACE;
  return is_one_of(variables().bottom, at) ? MPI_BOTTOM : at;
}

void serve_fortran(paceline_function table[PACELINE_STUB_CALLS]) {
  static_assert(sizeof(MPI_Fint) == sizeof(int), "arrays of counts are passed on as they are");
  std::copy_n(table, PACELINE_STUB_CALLS, before.begin());
#ifdef OPEN_MPI
#define PUT_SERVED(name) PACELINE_PUT_FORMS(name, _f) PACELINE_PUT_FORMS(name, _f08)
#define PUT_WITHOUT_COUNTS PUT_SERVED
#define PUT_REQUESTS(name)                         \
  put(table, PACELINE_STUB_##name##_f, name##_f);  \
  put(table, PACELINE_STUB_##name##_f08, name##_f08);
#else
#define PUT_SERVED(name)
#define PUT_WITHOUT_COUNTS(name) PACELINE_PUT_FORMS(name, _f08)
#define PUT_REQUESTS(name) put(table, PACELINE_STUB_##name##_f08, name##_f08);
#endif
#define PUT_HOST(name)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) PUT_##kind(name)
#include "mpi_calls.def"
#define PACELINE_ROW(kind, name, fortran, types, values, n, requests) PUT_REQUESTS(name)
#include "mpi_requests.def"
#define PACELINE_ROW(name, fortran, from, types, values) PUT_REQUESTS(name)
#include "mpi_comms.def"
}

}  // namespace paceline::preload
