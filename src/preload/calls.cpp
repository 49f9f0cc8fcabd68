// The calls that the drop-in library serves: each becomes a call of Paceline, or passes to the
// host, the MPI of this process.
//
// The decision uses only what is equal on all ranks: the communicator's state and options, the
// length, and for reductions the datatype and the operation, which MPI requires to be equal. Calls
// that only move data may use a different datatype on each rank; their length counts packed bytes,
// and a rank whose datatype has holes packs. The host reports wrong arguments. Each rank copies its
// own buffers on a GPU, after the check of their addresses.
#include <climits>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "base/copy_bytes.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "device.hpp"
#include "stub.h"
#include "elements.hpp"
#include "hosts.hpp"
#include "packing.hpp"
#include "profiler.hpp"
#include "recovery.hpp"
#include "refusals.hpp"
#include "comm_state.hpp"
#include "summary.hpp"

namespace paceline::preload {
namespace {

constexpr std::size_t kMostPacked = INT_MAX;  // bytes: MPI_Pack counts them in an int

// Prints the current exception and calls the communicator's error handler, which by default ends
// the program.
int report(const char* name, MPI_Comm comm) {
  int code = MPI_ERR_OTHER;
  try {
    throw;
  } catch (const Error& error) {
    std::fprintf(stderr, "paceline: %s: %s\n", name, error.what());
    if (error.fault() == Fault::usage) code = MPI_ERR_ARG;
    if (error.fault() == Fault::resource) code = MPI_ERR_NO_MEM;
    if (error.fault() == Fault::internal) code = MPI_ERR_INTERN;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "paceline: %s: %s\n", name, error.what());
    code = MPI_ERR_NO_MEM;
  }
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

// Counts the call as the host's and returns false, which the caller returns.
bool pass_to_host(CommState& state, Collective collective, FallbackReason why) {
  ++state.of(collective).passed[static_cast<std::size_t>(why)];
  return false;
}

// True if Paceline serves a call of `bytes` on this communicator; else counts it as the host's.
bool is_ours(CommState& state, Collective collective, std::size_t bytes) {
  if (state.why == FallbackReason::differed && is_wanted(collective)) check_not_ended(state);
  if (!state.communicator.valid()) return pass_to_host(state, collective, state.why);
  if (!is_wanted(collective)) return pass_to_host(state, collective, FallbackReason::option);
  if (bytes == 0 && collective != Collective::barrier)
    return pass_to_host(state, collective, FallbackReason::empty);
  if (is_hosts_faster({collective, bytes, state.ranks, state.nodes}))
    return pass_to_host(state, collective, FallbackReason::host);
  return true;
}

void serve(CommState& state, Call& call, std::size_t bytes) {
  ++state.calls;
  call.may_wait = false;
  try {
    state.communicator.run(call);
  } catch (const Error&) {
    state.is_spoilt = has_op(call.collective) && call.input == call.output;
    throw;
  }
  CallStats& count = state.of(call.collective);
  ++count.served;
  count.bytes += bytes;
}

// A reduction as MPI describes it.
struct Reduction {
  Collective collective;
  int count;
  MPI_Datatype type;
  MPI_Op op;
  int root = 0;
};

// Returns the reduction as a call of Paceline without buffers; nothing if it is the host's.
std::optional<Call> call_of(CommState& state, const Reduction& r) {
  if (r.count < 0 || r.root < 0 || r.root >= state.ranks) return {};
  const Element* element = find_element(r.type);
  const Op* op = find_op(r.op);
  const bool is_per_rank = r.collective == Collective::reduce_scatter;
  const std::size_t bytes = !element ? 1   // not known, and not empty: the type is the reason
                                     : std::size_t(r.count) * element->bytes *
                                           std::size_t(is_per_rank ? state.ranks : 1);
  if (!is_ours(state, r.collective, bytes)) return {};
  if (!op) return pass_to_host(state, r.collective, FallbackReason::op), std::nullopt;
  if (!element || element->kind == Class::plain || !is_defined(*op, element->kind))
    return pass_to_host(state, r.collective, FallbackReason::type), std::nullopt;
  std::optional<Call> call(std::in_place);
  call->collective = r.collective;
  call->type = element->type;
  call->op = *op;
  call->root = r.root;
  call->count = std::size_t(r.count);
  return call;
}

std::size_t bytes_of(const Call& call) { return call.count * size_of(call.type); }

// Common frame of all calls below. `body` serves the call and returns true; if it returns false,
// `host` makes the call.
template <class Body, class Host>
int serve_or_pass(const char* name, MPI_Comm comm, Body&& body, Host&& host) noexcept {
  CommState* state = nullptr;
  try {
    state = state_of(comm);
    if (state && body(*state)) {
      state->trim();
      return MPI_SUCCESS;
    }
  } catch (const Error& error) {
    if (!state || error.fault() != Fault::mismatch || !goes_on_by_host(*state, comm, error))
      return report(name, comm);
  } catch (...) {
    return report(name, comm);
  }
  return host();
}

int allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const auto ours = [&](CommState& state) {
    auto call = call_of(state, {Collective::allreduce, count, type, op});
    if (!call) return false;
    if (are_refused(Collective::allreduce, {in, out, out, count}))
      return pass_to_host(state, Collective::allreduce, FallbackReason::refused);
    const bool in_place = in == MPI_IN_PLACE || in == out;
    const HostCopy input(in_place ? nullptr : in, bytes_of(*call), true);
    HostCopy output(out, bytes_of(*call), in_place);
    call->input = in_place ? output.address() : input.address();
    call->output = output.address();
    serve(state, *call, bytes_of(*call));
    output.put_back();
    return true;
  };
  return serve_or_pass("MPI_Allreduce", comm, ours,
               [&] { return PMPI_Allreduce(in, out, count, type, op, comm); });
}

// MPI_Reduce allows MPI_IN_PLACE only at the root. On other ranks Open MPI refuses it; MPICH would
// read from that address.
bool in_place_away_from_root(CommState& state) {
  if (kFamily.starts_with("Open MPI"))
    return pass_to_host(state, Collective::reduce, FallbackReason::refused);
  fail(Fault::usage, "reduce: rank ", state.rank,
       " passes MPI_IN_PLACE; only the root may, others must pass their input.");
}

int reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root,
           MPI_Comm comm) {
  const auto ours = [&](CommState& state) {
    auto call = call_of(state, {Collective::reduce, count, type, op, root});
    if (!call) return false;
    const bool at_root = state.rank == root;  // elsewhere `out` may be anything
    if (!at_root && in == MPI_IN_PLACE) return in_place_away_from_root(state);
    const void* into = at_root ? out : in;
    if (are_refused(Collective::reduce, {in, into, at_root ? out : nullptr, count}))
      return pass_to_host(state, Collective::reduce, FallbackReason::refused);
    const bool in_place = at_root && (in == MPI_IN_PLACE || in == out);
    const HostCopy input(in_place ? nullptr : in, bytes_of(*call), true);
    HostCopy output(at_root ? out : nullptr, bytes_of(*call), in_place);
    call->input = in_place ? output.address() : input.address();
    call->output = output.address();
    serve(state, *call, bytes_of(*call));
    output.put_back();
    return true;
  };
  return serve_or_pass("MPI_Reduce", comm, ours,
               [&] { return PMPI_Reduce(in, out, count, type, op, root, comm); });
}

int reduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm) {
  const auto ours = [&](CommState& state) {
    auto call = call_of(state, {Collective::reduce_scatter, count, type, op});
    if (!call) return false;
    if (are_refused(Collective::reduce_scatter, {in, out, out, count}))
      return pass_to_host(state, Collective::reduce_scatter, FallbackReason::refused);
    const std::size_t piece = bytes_of(*call), all = piece * std::size_t(state.ranks);
    // In place MPI wants the result at the front, where rank 0's piece of the input is.
    const bool in_place = in == MPI_IN_PLACE || in == out;
    const HostCopy input(in_place ? nullptr : in, all, true);
    HostCopy output(out, in_place ? all : piece, in_place);
    call->input = in_place ? output.address() : input.address();
    call->output = in_place ? state.spare_bytes(piece) : static_cast<std::byte*>(output.address());
    serve(state, *call, all);
    if (in_place) copy_bytes(output.address(), call->output, piece);
    output.put_back();
    return true;
  };
  return serve_or_pass("MPI_Reduce_scatter_block", comm, ours,
               [&] { return PMPI_Reduce_scatter_block(in, out, count, type, op, comm); });
}

void broadcast(CommState& state, void* data, std::size_t bytes, int root) {
  Call call;
  call.collective = Collective::broadcast;
  call.root = root;
  call.count = bytes;
  call.output = data;
  serve(state, call, bytes);
}

int bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const auto ours = [&](CommState& state) {
    if (count < 0 || root < 0 || root >= state.ranks || type == MPI_DATATYPE_NULL) return false;
    const Element* element = find_element(type);
    const std::size_t bytes =
        element ? element->bytes * std::size_t(count) : packed_bytes(count, type);
    if (!is_ours(state, Collective::broadcast, bytes)) return false;
    // Tested on all ranks, even on those that pack nothing.
    if (bytes > kMostPacked)
      return pass_to_host(state, Collective::broadcast, FallbackReason::too_long);
    if (element ? are_refused(Collective::broadcast, {buffer, buffer, nullptr, count})
                : is_refused(buffer, count, type))
      return pass_to_host(state, Collective::broadcast, FallbackReason::refused);
    const bool at_root = state.rank == root;
    if (element) {
      HostCopy data(buffer, bytes, at_root);
      broadcast(state, data.address(), bytes, root);
      if (!at_root) data.put_back();
      return true;
    }
    HostCopy data(buffer, std::size_t(count), type, true);
    std::byte* packed = state.spare_bytes(bytes);
    if (at_root) pack(data.address(), count, type, packed, bytes, comm);
    broadcast(state, packed, bytes, root);
    if (at_root) return true;
    unpack(packed, bytes, data.address(), count, type, comm);
    data.put_back();
    return true;
  };
  return serve_or_pass("MPI_Bcast", comm, ours,
               [&] { return PMPI_Bcast(buffer, count, type, root, comm); });
}

// One side of an allgather, on this rank.
struct Side {
  int count;
  MPI_Datatype type;
  const Element* element;
  std::size_t bytes;  // of one rank's piece

  Side(int n, MPI_Datatype t)
      : count(n),
        type(t),
        element(find_element(t)),
        bytes(element ? element->bytes * std::size_t(n) : packed_bytes(n, t)) {}

  // `pieces` of them.
  HostCopy on_host(const void* buffer, int pieces, bool is_read) const {
    if (element) return {buffer, bytes * std::size_t(pieces), is_read};
    return {buffer, std::size_t(count) * std::size_t(pieces), type, true};
  }
};

bool are_sides_refused(const CommState& state, const void* in, const Side& from, const void* out,
                       const Side& into) {
  const bool in_place = in == MPI_IN_PLACE;
  if (!in_place && !from.element && is_refused(in, from.count, from.type)) return true;
  if (!into.element && is_refused(out, into.count, into.type)) return true;
  const bool are_alike = from.type == into.type && from.count == into.count;
  const auto at = reinterpret_cast<std::uintptr_t>(out) + into.bytes * std::size_t(state.rank);
  const void* own = are_alike ? reinterpret_cast<const void*>(at) : nullptr;
  // MPI_BOTTOM is null and correct with a datatype that holds addresses.
  const auto named = [&](const void* buffer, const Side& side) {
    return buffer || side.element ? buffer : &state;
  };
  return are_refused(Collective::allgather, {named(in, from), named(out, into), own, from.count});
}

// Gathers the pieces into contiguous bytes: the receive buffer, or spare memory if its type has
// holes.
void gather(CommState& state, const void* in, const Side& from, void* out, const Side& into,
            MPI_Comm comm) {
  const std::size_t piece = into.bytes, me = std::size_t(state.rank), all =
      std::size_t(state.ranks);
  const auto count = std::size_t(into.count);
  std::byte* row =
      into.element ? static_cast<std::byte*>(out) : state.spare_bytes(piece * all);
  std::byte* own = row + piece * me;
  Call call;
  call.collective = Collective::allgather;
  call.count = piece;
  call.output = row;
  call.input = own;
  if (in == MPI_IN_PLACE) {
    if (!into.element)
      pack(element_at(out, me * count, into.type), into.count, into.type, own, piece, comm);
  } else if (from.element) {
    call.input = in;
  } else {
    pack(in, from.count, from.type, own, piece, comm);
  }
  serve(state, call, piece * all);
  if (into.element) return;
  for (std::size_t r = 0; r < all; ++r)
    unpack(row + piece * r, piece, element_at(out, r * count, into.type), into.count, into.type,
           comm);
}

int allgather(const void* in, int count, MPI_Datatype type, void* out, int out_count,
              MPI_Datatype out_type, MPI_Comm comm) {
  const auto ours = [&](CommState& state) {
    const bool in_place = in == MPI_IN_PLACE;
    if (out_count < 0 || out_type == MPI_DATATYPE_NULL) return false;
    if (!in_place && (count < 0 || type == MPI_DATATYPE_NULL)) return false;
    const Side into(out_count, out_type);
    const Side from = in_place ? into : Side(count, type);
    const std::size_t bytes = into.bytes * std::size_t(state.ranks);
    if (!is_ours(state, Collective::allgather, bytes)) return false;
    if (into.bytes > kMostPacked)
      return pass_to_host(state, Collective::allgather, FallbackReason::too_long);
    if (from.bytes != into.bytes)
      fail(Fault::usage, "rank ", state.rank, " sends ", from.bytes, " bytes and receives ",
           into.bytes, " of each rank; both must be equal.");
    if (are_sides_refused(state, in, from, out, into))
      return pass_to_host(state, Collective::allgather, FallbackReason::refused);
    const HostCopy input = from.on_host(in_place ? nullptr : in, 1, true);
    HostCopy output = into.on_host(out, state.ranks, in_place);
    gather(state, in_place ? MPI_IN_PLACE : input.address(), from, output.address(), into, comm);
    output.put_back();
    return true;
  };
  return serve_or_pass("MPI_Allgather", comm, ours, [&] {
    return PMPI_Allgather(in, count, type, out, out_count, out_type, comm);
  });
}

int barrier(MPI_Comm comm) {
  const auto ours = [&](CommState& state) {
    if (!is_ours(state, Collective::barrier, 0)) return false;
    Call call;
    serve(state, call, 0);
    return true;
  };
  return serve_or_pass("MPI_Barrier", comm, ours, [&] { return PMPI_Barrier(comm); });
}

template <class Function>
paceline_function untyped(Function* function) {
  return reinterpret_cast<paceline_function>(function);
}

void serve_calls(paceline_function table[PACELINE_STUB_CALLS]) {
  table[PACELINE_STUB_Allreduce] = untyped(allreduce);
  table[PACELINE_STUB_Bcast] = untyped(bcast);
  table[PACELINE_STUB_Reduce] = untyped(reduce);
  table[PACELINE_STUB_Reduce_scatter_block] = untyped(reduce_scatter_block);
  table[PACELINE_STUB_Allgather] = untyped(allgather);
  table[PACELINE_STUB_Barrier] = untyped(barrier);
}

}  // namespace
}  // namespace paceline::preload

int paceline_fill_stub(paceline_function table[PACELINE_STUB_CALLS],
                       const unsigned long calls[PACELINE_STUB_CALLS], char* why,
                       std::size_t length) {
  using namespace paceline::preload;
  char said[MPI_MAX_LIBRARY_VERSION_STRING + 8192] = "";  // of any MPI
  int bytes = 0;
  PMPI_Get_library_version(said, &bytes);
  if (!is_host(said)) {
    std::snprintf(why, length, "this library is for %.*s %.*s, the MPI of this process is %s",
                  int(kFamily.size()), kFamily.data(), int(kVersion.size()), kVersion.data(),
                  first_line(said).c_str());
    return 0;
  }
  try {
    // With preload=none a profile shows the unchanged program: no world is made.
    const bool profiles = is_profile_wanted();
    if (!profiles || paceline::text_of(paceline::Option::preload) != "none") {
      serve_calls(table);
      begin_states();
      count_host_calls(calls);
    }
    if (profiles) record_calls(table);
  } catch (const paceline::Error& error) {   // an option is wrong
    std::snprintf(why, length, "%s", error.what());
    return 0;
  }
  return 1;
}
