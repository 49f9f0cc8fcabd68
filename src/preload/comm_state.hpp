// States: what we know of each communicator of MPI, kept at it as an attribute.
//
// A state is made by the first of our calls on a communicator. At a later call, the same one on all
// ranks, they agree whether Paceline serves it; if any rank cannot, all its calls are the host's.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "host_mpi.hpp"
#include "runtime/communicator.hpp"

namespace paceline::preload {

// Why a call passes to the host MPI. Each is equal on all ranks of a correct program. The words for
// them are in summary.cpp.
enum class FallbackReason {
  one_rank, between_groups, option, not_joined, empty, type, op, too_long, host, refused,
  differed, recovers, early
};
inline constexpr int kFallbackReasons = 13;

struct CallStats {
  std::uint64_t served = 0, bytes = 0;
  std::array<std::uint64_t, kFallbackReasons> passed = {};

  void add(const CallStats& other);
};
using Counts = std::array<CallStats, kCollectives>;

struct CommState {
  Communicator communicator;  // invalid: all calls pass, because of `why`
  FallbackReason why = FallbackReason::one_rank;
  int rank = 0, ranks = 1, nodes = 1;
  int joins_in = 0;   // calls until it is joined, that one counted; 0: it has been, or never is
  std::uint32_t calls = 0;            // that were to be served, so far; Paceline numbers them alike
  // Where calls have differed between ranks (recovery.hpp): the last call that fails on this rank,
  // whether it has reported an error, and whether a failed call has overwritten its input.
  std::uint32_t ended_by_others = 0;
  bool has_reported = false, is_spoilt = false;
  Counts counts;                 // no lock: MPI forbids two collectives on it at the same time
  std::vector<std::byte> spare;  // for packed data

  CallStats& of(Collective collective) { return counts[static_cast<std::size_t>(collective)]; }
  std::byte* spare_bytes(std::size_t bytes);  // at least so many
  void trim();  // after a call: what is much is given back, so that a communicator keeps 16 MiB
};

// There are states from now on, where MPI runs, until MPI_Finalize, which sums up.
void begin_states();

// The state of this process at `comm`, made where it is not there yet. Null where MPI is not
// running or `comm` is null: then the call passes, uncounted.
CommState* state_of(MPI_Comm comm);

// Whether the options let us serve such calls; of those that the drop-in has.
bool is_wanted(Collective collective);

}  // namespace paceline::preload
