// Call: the arguments that a rank passes to a collective.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "device/driver.hpp"
#include "ir/algorithm.hpp"

namespace paceline {

class DeviceEnd;   // engine/device_end.hpp

// The device of a call's buffers, and the caller's stream: the call follows the work on it.
struct OnDevice {
  std::shared_ptr<DeviceEnd> end;   // null: the host
  device::Stream stream = {};
};

inline constexpr int kLeastUrgent = -(1 << 20), kMostUrgent = 1 << 20;   // Call::priority

// One call. A buffer may be null if the rank has none (the output of a reduce away from the root).
// The call is in place if `input == output` (allreduce, reduce, alltoall), or if one buffer is the
// rank's own unit inside the longer one (allgather, gather, reduce_scatter, scatter). Any other
// overlap is an error.
struct Call {
  Collective collective = Collective::barrier;
  Type type = Type::u8;
  Op op = Op::sum;
  int root = 0;
  const void* input = nullptr;  // broadcast: unused
  void* output = nullptr;
  std::size_t count = 0;  // elements of a unit: the vector, or the piece of one rank
  // Elements per rank, for units of differing size; empty: all units have `count` elements.
  // alltoall: sent to, and received from each rank. gather, scatter: used at the root only; `count`
  // is the rank's own unit. reduce_scatter, allgather: equal on all ranks. Only alltoall sets both
  // vectors. `uneven` is set on every rank of such a call, also on ranks without the counts.
  bool uneven = false;
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> counts_received = {};
  std::string algorithm = {};  // empty: chosen
  Cut cut = {};           // 0: chosen; knobs need a named algorithm
  int timeout_ms = 0;     // 0: the communicator's
  // Identifies the data, such as the key of a gradient; equal on all ranks, 0: none. Ranks whose
  // tags differ get a mismatch error.
  std::uint64_t tag = 0;
  std::string label = {};   // name of the tag in errors
  // Urgency among calls under way; higher is more urgent. The most urgent call goes first when
  // calls compete for a link to a peer, between messages and their chunks, and for the thread that
  // sums. Equal on all ranks; in [kLeastUrgent, kMostUrgent].
  int priority = 0;
  // true: a start may wait for an earlier call like it, if the program has always waited for such
  // calls first (runtime/arrivals.hpp). false: no start waits, as in MPI.
  bool may_wait = true;
  // true: others may be under way at the same time, such as the parts of a message that the program
  // cuts. The call is then cut only if that clearly pays, since their pieces come on top. Equal on
  // all ranks.
  bool is_one_of_many = false;
  OnDevice device = {};
};

}  // namespace paceline
