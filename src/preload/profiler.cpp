#include "profiler.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/error.hpp"
#include "base/options.hpp"
#include "base/str.hpp"
#include "profile_state.hpp"

namespace paceline::preload {
namespace {

// What did the calls before they were recorded.
std::array<paceline_function, PACELINE_DOOR_CALLS> host;

// The numbers of the collectives in the file.
enum Name : int {
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) kName_##name,
#include "mpi_calls.def"
};

// Bytes of a full message.
struct Volume {
  std::uint64_t bytes = 0;
};

std::uint64_t size_of(MPI_Datatype type) {
  int size = 0;
  return type != MPI_DATATYPE_NULL && PMPI_Type_size(type, &size) == MPI_SUCCESS && size > 0
             ? std::uint64_t(size) : 0;
}
std::uint64_t positive(std::int64_t n) { return n > 0 ? std::uint64_t(n) : 0; }

// Fortran passes addresses. Such an object goes in the place of one, and reads as what is there.
struct FortranInt {
  const MPI_Fint* at;
  operator std::int64_t() const { return *at; }
};
struct FortranType {
  const MPI_Fint* at;
  operator MPI_Datatype() const { return PMPI_Type_f2c(*at); }
};
struct FortranTypes {
  const MPI_Fint* at;
  MPI_Datatype operator[](int i) const { return PMPI_Type_f2c(at[i]); }
};
static_assert(sizeof(FortranInt) == sizeof(void*) && sizeof(FortranTypes) == sizeof(void*));

// What the table computes with, for a communicator.
struct Volumes {
  const Watched& here;

  bool is_at(std::int64_t root) const { return here.rank == root; }
  Volume one(std::int64_t n, MPI_Datatype type) const { return {positive(n) * size_of(type)}; }
  Volume all(std::int64_t n, MPI_Datatype type) const {
    return {positive(n) * size_of(type) * std::uint64_t(here.ranks)};
  }
  template <class Count>
  Volume sum(const Count* counts, MPI_Datatype type) const {
    std::uint64_t elements = 0;
    for (int r = 0; r < here.ranks; ++r) elements += positive(counts[r]);
    return {elements * size_of(type)};
  }
  template <class Count, class Types>
  Volume each(const Count* counts, const Types& types) const {
    std::uint64_t bytes = 0;
    for (int r = 0; r < here.ranks; ++r) bytes += positive(counts[r]) * size_of(types[r]);
    return {bytes};
  }
};

// Where a program of Fortran calls from, while what wraps MPI for it calls the function in C.
thread_local const void* fortran_caller = nullptr;

template <class Body>
int from_fortran(const void* caller, Body&& body) {
  fortran_caller = caller;
  const int status = body();
  fortran_caller = nullptr;
  return status;
}

// Records one call: `body` does it, and returns what MPI returns. Between groups the arguments of
// some ranks mean nothing, so that nothing is computed from them.
template <class Bytes, class Body>
int recorded(int name, MPI_Comm comm, const void* from, Bytes&& bytes, Body&& body) {
  Watched* const here = watched(comm);
  if (!here) return body();
  const Volume volume = here->is_between_groups ? Volume{} : bytes(Volumes{*here});
  const std::uint32_t number = here->calls.fetch_add(1, std::memory_order_relaxed);
  CallRecord* const record =
      recorder().enter({name, here->id, number, site_of(from), volume.bytes, false});
  const int status = body();
  if (record) Recorder::leave(*record, status == MPI_SUCCESS);
  return status;
}

template <class Bytes, class Body>
int begun(int name, MPI_Comm comm, const void* from, MPI_Request* request, Bytes&& bytes,
          Body&& body) {
  Watched* const here = watched(comm);
  if (!here) return body();
  const Volume volume = here->is_between_groups ? Volume{} : bytes(Volumes{*here});
  const std::uint32_t number = here->calls.fetch_add(1, std::memory_order_relaxed);
  CallRecord* const record =
      recorder().enter({name, here->id, number, site_of(from), volume.bytes, true});
  const int status = body();
  if (!record) return status;
  Recorder::leave(*record, status == MPI_SUCCESS);
  if (status == MPI_SUCCESS) pending().add(*request, record);
  return status;
}

template <class Function>
Function* host_as(int which) {
  return reinterpret_cast<Function*>(host[std::size_t(which)]);
}

// --- the functions that record, from the tables -------------------------------------------------
#define UNWRAP(...) __VA_ARGS__
#define ONE(n, type) volumes.one(n, type)
#define ALL(n, type) volumes.all(n, type)
#define SUM(counts, type) volumes.sum(counts, type)
#define EACH(counts, types) volumes.each(counts, types)
#define AT(root) volumes.is_at(root)
#define BYTES(bytes) [&]([[maybe_unused]] const Volumes& volumes) -> Volume { return {bytes}; }
#define CALLER (fortran_caller ? fortran_caller : __builtin_return_address(0))
#define IN const void*
#define OUT void*

#define ROOT int
#define OP MPI_Op
#define TYPE MPI_Datatype
#define TYPES const MPI_Datatype*
#define FORM(suffix, name, nonblocking, types, values, bytes)                                     \
  int name##suffix(UNWRAP types MPI_Comm comm) {                                                  \
    using Function = int(UNWRAP types MPI_Comm);                                                  \
    return recorded(kName_##name, comm, CALLER, BYTES(bytes), [&] {                               \
      return host_as<Function>(PACELINE_DOOR_##name##suffix)(UNWRAP values comm);                 \
    });                                                                                           \
  }                                                                                               \
  int nonblocking##suffix(UNWRAP types MPI_Comm comm, MPI_Request* request) {                     \
    using Function = int(UNWRAP types MPI_Comm, MPI_Request*);                                    \
    return begun(kName_##name, comm, CALLER, request, BYTES(bytes), [&] {                         \
      return host_as<Function>(PACELINE_DOOR_##nonblocking##suffix)(UNWRAP values comm, request); \
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
#undef COUNT
#undef COUNTS
#undef DISPLS

#undef ROOT
#undef OP
#undef TYPE
#undef TYPES
#define ROOT FortranInt
#define OP const MPI_Fint*
#define TYPE FortranType
#define TYPES FortranTypes
#define COUNT FortranInt
#define COUNTS const MPI_Fint*
#define DISPLS const MPI_Fint*
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                       \
  int name##_f(UNWRAP types const MPI_Fint* comm, MPI_Fint* error) {                               \
    using Function = void(UNWRAP types const MPI_Fint*, MPI_Fint*);                                \
    const auto body = [&] {                                                                        \
      host_as<Function>(PACELINE_DOOR_##name##_f)(UNWRAP values comm, error);                      \
      return int(*error);                                                                          \
    };                                                                                             \
    if (kFortranCallsC) return from_fortran(__builtin_return_address(0), body);                    \
    return recorded(kName_##name, PMPI_Comm_f2c(*comm), __builtin_return_address(0), BYTES(bytes), \
                    body);                                                                         \
  }
#include "mpi_calls.def"

// Of the requests of a call, those that are of collectives, before and after it: MPI makes null
// what is complete.
template <class Body>
int waited(int n, MPI_Request* requests, Body&& body) {
  if (pending().is_empty() || n <= 0 || !requests) return body();
  std::vector<std::pair<int, CallRecord*>> ours;
  for (int i = 0; i < n; ++i) {
    CallRecord* const record =
        requests[i] == MPI_REQUEST_NULL ? nullptr : pending().find(requests[i]);
    if (!record) continue;
    Recorder::wait(*record);
    pending().remove(record);
    ours.emplace_back(i, record);
  }
  if (ours.empty()) return body();
  std::vector<MPI_Request> before;
  for (const auto& [i, record] : ours) before.push_back(requests[i]);
  const int status = body();
  for (std::size_t k = 0; k < ours.size(); ++k) {
    const auto& [i, record] = ours[k];
    if (requests[i] == MPI_REQUEST_NULL) Recorder::complete(*record, status == MPI_SUCCESS);
    else pending().add(before[k], record);
  }
  return status;
}

#define REQUESTS MPI_Request*
#define STATUSES MPI_Status*
#define PACELINE_ROW(name, types, values, n, requests)                                  \
  int name types {                                                                      \
    using Function = int types;                                                         \
    return waited(n, requests, [&] { return host_as<Function>(PACELINE_DOOR_##name) values; }); \
  }
#include "mpi_waits.def"

template <class Function>
paceline_function untyped(Function* function) {
  return reinterpret_cast<paceline_function>(function);
}

// Of a call that this MPI does not have nothing can be recorded: it stays what it is.
template <class Function>
void put(paceline_function table[], int which, Function* function) {
  if (table[which]) table[which] = untyped(function);
}

}  // namespace

bool is_profile_wanted() { return !text_of(Option::profile).empty(); }

void record_calls(paceline_function table[PACELINE_DOOR_CALLS]) {
  for (std::size_t i = 0; i < PACELINE_DOOR_CALLS; ++i) host[i] = table[i];
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  put(table, PACELINE_DOOR_##name, name);                                    \
  put(table, PACELINE_DOOR_##nonblocking, nonblocking);                      \
  put(table, PACELINE_DOOR_##name##_c, name##_c);                            \
  put(table, PACELINE_DOOR_##nonblocking##_c, nonblocking##_c);              \
  put(table, PACELINE_DOOR_##name##_f, name##_f);
#include "mpi_calls.def"
#define PACELINE_ROW(name, types, values, n, requests) put(table, PACELINE_DOOR_##name, name);
#include "mpi_waits.def"
}

void begin_profile() {
  compare_clocks("start");
}

}  // namespace paceline::preload
