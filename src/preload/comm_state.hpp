// State of each MPI communicator, kept as its attribute.
//
// The first collective on a communicator makes its state. At a later call, the same one on all
// ranks, the ranks agree whether Paceline serves it; if any rank cannot, the host serves all calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "host_mpi.hpp"
#include "repeats.hpp"
#include "runtime/communicator.hpp"

namespace paceline::preload {

// Reason why a call passes to the host MPI, equal on all ranks of a correct program. summary.cpp
// has a text for each.
enum class FallbackReason {
  one_rank, between_groups, option, not_joined, empty, type, op, refused, differed, recovers, early,
  thread
};
inline constexpr int kFallbackReasons = 12;

// The collectives of MPI: the rows of mpi_calls.def, each in three forms.
enum class Row {
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  name, I##name, name##_init,
#include "mpi_calls.def"
};

struct Agreement;   // join.cpp

struct CommState : std::enable_shared_from_this<CommState> {
  Communicator communicator;  // invalid: all calls pass to the host, for the reason `why`
  FallbackReason why = FallbackReason::one_rank;
  int rank = 0, ranks = 1;
  bool drives_started = false;   // a thread may drive calls that are under way, on all ranks
  bool is_gone = false;          // MPI has freed the communicator
  // The ranks' agreement to join; null: none yet, it is made in the call that joins.
  std::shared_ptr<Agreement> agreed;
  int joins_in = 0;   // calls up to and including the one that joins; 0: joined, or never joins
  Repeats repeats;
  std::uint32_t calls = 0;            // calls given to Paceline so far, numbered as Paceline does
  // After calls have differed between ranks (recovery.hpp): the last call that fails on this rank;
  // true if it has reported an error; true if a failed call has overwritten its input.
  std::uint32_t ended_by_others = 0;
  bool has_reported = false, is_spoilt = false;
  // For the summary: of calls of so many bytes.
  std::map<std::pair<Row, std::size_t>, std::string> algorithms;
};

// Enables states from now, if MPI runs, until MPI_Finalize, which calls `before_end`, ends all and
// prints the summary.
void begin_states(void (*before_end)());

// Returns the state of `comm`, which it makes if there is none. Null if MPI is not running or
// `comm` is null: the call then passes, uncounted.
CommState* state_of(MPI_Comm comm);

// Returns the same for a call that must not wait for others: it joins only if they have agreed.
CommState* state_for_start(MPI_Comm comm);
// Returns it without counting a call.
CommState* find_state(MPI_Comm comm);

// True if the options let Paceline serve this collective.
bool is_wanted(Collective collective);

}  // namespace paceline::preload
