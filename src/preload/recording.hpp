// Recording: the parts of the functions that record calls of MPI, in C and in Fortran.
//
// Each takes `body`, which makes the call and returns MPI's status.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "stub_table.hpp"
#include "profile_state.hpp"

namespace paceline::preload {

// Functions that made the calls before they were recorded.
inline std::array<paceline_function, PACELINE_STUB_CALLS> host;

template <class Function>
Function* host_as(int which) {
  return reinterpret_cast<Function*>(host[std::size_t(which)]);
}

// Puts the functions of profile_fortran.cpp into the table.
void record_fortran(paceline_function table[PACELINE_STUB_CALLS]);

// The numbers of the collectives in the file.
enum Name : int {
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) kName_##name,
#include "mpi_calls.def"
};

// Bytes of a full message.
struct Volume {
  std::uint64_t bytes = 0;
};

inline std::uint64_t size_of(MPI_Datatype type) {
  int size = 0;
  return type != MPI_DATATYPE_NULL && PMPI_Type_size(type, &size) == MPI_SUCCESS && size > 0
             ? std::uint64_t(size) : 0;
}
inline std::uint64_t positive(std::int64_t n) { return n > 0 ? std::uint64_t(n) : 0; }

// Functions by which the table computes volumes, for one communicator.
struct Volumes {
  const Watched& here;
  int peers = here.ranks;   // number of ranks that this one hears

  bool is_at(std::int64_t root) const { return here.rank == root; }
  Volumes near() const { return {here, here.neighbours}; }
  Volume one(std::int64_t n, MPI_Datatype type) const { return {positive(n) * size_of(type)}; }
  Volume all(std::int64_t n, MPI_Datatype type) const {
    return {positive(n) * size_of(type) * std::uint64_t(peers)};
  }
  template <class Count>
  Volume sum(const Count* counts, MPI_Datatype type) const {
    std::uint64_t elements = 0;
    for (int r = 0; r < peers; ++r) elements += positive(counts[r]);
    return {elements * size_of(type)};
  }
  template <class Count, class Types>
  Volume each(const Count* counts, const Types& types) const {
    std::uint64_t bytes = 0;
    for (int r = 0; r < peers; ++r) bytes += positive(counts[r]) * size_of(types[r]);
    return {bytes};
  }
};

#define UNWRAP(...) __VA_ARGS__
#define LONG(count) count
#define LONGS(counts, length) counts
#define ONE(n, type) volumes.one(n, type)
#define ALL(n, type) volumes.all(n, type)
#define SUM(counts, type) volumes.sum(counts, type)
#define EACH(counts, types) volumes.each(counts, types)
#define NEAR_ALL(n, type) volumes.near().all(n, type)
#define NEAR_SUM(counts, type) volumes.near().sum(counts, type)
#define NEAR_EACH(counts, types) volumes.near().each(counts, types)
#define AT(root) volumes.is_at(root)
#define BYTES(bytes) [&]([[maybe_unused]] const Volumes& volumes) -> Volume { return {bytes}; }

// Caller's address in a Fortran program, while the Fortran wrapper calls the function in C.
inline thread_local const void* fortran_caller = nullptr;
#define CALLER (fortran_caller ? fortran_caller : __builtin_return_address(0))

// Returns 0 for intercommunicators, where the arguments of some ranks are meaningless.
template <class Bytes>
std::uint64_t bytes_of(const Watched& here, Bytes&& bytes) {
  return here.is_between_groups ? 0 : bytes(Volumes{here}).bytes;
}

template <class Bytes, class Body>
int recorded(int name, MPI_Comm comm, const void* from, Bytes&& bytes, Body&& body) {
  Watched* const here = watched(comm);
  if (!here) return body();
  const std::uint64_t volume = bytes_of(*here, bytes);
  const std::uint32_t number = here->calls.fetch_add(1, std::memory_order_relaxed);
  CallRecord* const record =
      recorder().enter({name, here->id, number, site_of(from), volume, false});
  const int status = body();
  if (record) Recorder::leave(*record, status == MPI_SUCCESS);
  return status;
}

// A non-blocking call. `made` returns the request that it made.
template <class Bytes, class Made, class Body>
int begun(int name, MPI_Comm comm, const void* from, Bytes&& bytes, Made&& made, Body&& body) {
  Watched* const here = watched(comm);
  if (!here) return body();
  const std::uint64_t volume = bytes_of(*here, bytes);
  const std::uint32_t number = here->calls.fetch_add(1, std::memory_order_relaxed);
  CallRecord* const record =
      recorder().enter({name, here->id, number, site_of(from), volume, true});
  const int status = body();
  if (!record) return status;
  Recorder::leave(*record, status == MPI_SUCCESS);
  if (status == MPI_SUCCESS) pending().add(made(), record, false);
  return status;
}

// Makes a persistent call. Each of its starts counts as a call.
template <class Bytes, class Made, class Body>
int prepared(int name, MPI_Comm comm, Bytes&& bytes, Made&& made, Body&& body) {
  Watched* const here = watched(comm);
  if (!here) return body();
  const std::uint64_t volume = bytes_of(*here, bytes);
  const std::uint32_t operation = here->operations.fetch_add(1, std::memory_order_relaxed);
  const int status = body();
  if (status == MPI_SUCCESS)
    persistent().add(made(), {name, recorder().operation(here->id, operation), volume});
  return status;
}

// Starts persistent calls. `request(i)` is the i-th request.
template <class Request, class Body>
int started(int n, Request&& request, const void* from, Body&& body) {
  if (persistent().is_empty()) return body();
  std::vector<std::pair<MPI_Request, CallRecord*>> ours;
  for (int i = 0; i < n; ++i) {
    const MPI_Request handle = request(i);
    const auto entry = persistent().next_start(handle, site_of(from));
    CallRecord* const record = entry ? recorder().enter(*entry) : nullptr;
    if (record) ours.emplace_back(handle, record);
  }
  const int status = body();
  for (const auto& [handle, record] : ours) {
    Recorder::leave(*record, status == MPI_SUCCESS);
    if (status == MPI_SUCCESS) pending().add(handle, record, true);
  }
  return status;
}

template <class Request, class Body>
int freed(Request&& request, Body&& body) {
  if (!persistent().is_empty() && persistent().remove(request(0)))
    while (pending().take(request(0))) continue;   // complete, at an unknown time
  return body();
}

// Records the collectives among a call's requests, before and after it. MPI sets a completed
// request to null; PMPI_Request_get_status tells if a persistent one is complete or inactive.
template <class Request, class Body>
int waited(int n, Request&& request, Body&& body) {
  if (pending().is_empty() || n <= 0) return body();
  struct Ours {
    int at;
    MPI_Request before;
    Pending::Entry entry;
  };
  std::vector<Ours> ours;
  for (int i = 0; i < n; ++i) {
    const MPI_Request before = request(i);
    if (before == MPI_REQUEST_NULL) continue;
    const auto entry = pending().take(before);
    if (!entry) continue;
    Recorder::wait(*entry->record);
    ours.push_back({i, before, *entry});
  }
  if (ours.empty()) return body();
  const int status = body();
  for (const Ours& one : ours) {
    const MPI_Request after = request(one.at);
    int is_over = after == MPI_REQUEST_NULL;
    if (one.entry.is_persistent && !is_over)
      PMPI_Request_get_status(after, &is_over, MPI_STATUS_IGNORE);
    if (is_over) Recorder::complete(*one.entry.record, status == MPI_SUCCESS);
    else pending().add(one.before, one.entry.record, one.entry.is_persistent);
  }
  return status;
}

}  // namespace paceline::preload
