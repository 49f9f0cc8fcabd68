// Call: what a rank passes to a collective.
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

// Buffers of a call in a device's memory. Work that is on the stream before the call comes before
// it.
struct OnDevice {
  std::shared_ptr<DeviceEnd> end;   // null: the host
  device::Stream stream = {};
};

inline constexpr int kLeastUrgent = -(1 << 20), kMostUrgent = 1 << 20;   // Call::priority

// One call. Buffers may be null where the rank has none (the output of a reduce away from the
// root). `input == output` (allreduce, reduce, alltoall), or input or output being the rank's own
// unit inside the longer buffer (allgather, gather, reduce_scatter, scatter) means in place; any
// other overlap is an error.
struct Call {
  Collective collective = Collective::barrier;
  Type type = Type::u8;
  Op op = Op::sum;
  int root = 0;
  const void* input = nullptr;  // broadcast: unused
  void* output = nullptr;
  std::size_t count = 0;  // elements of a unit: the vector, or the piece of one rank
  // Units of differing size: elements per rank. alltoall: what is sent to, and received from each
  // rank; gather, scatter: meaningful at the root, with `count` the own unit everywhere;
  // reduce_scatter, allgather: equal on all ranks. Empty: all units have `count` elements. Both are
  // set for alltoall only. `uneven` says on every rank that this is such a call, also on those that
  // do not know the counts.
  bool uneven = false;
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> counts_received = {};
  std::string algorithm = {};  // empty: chosen
  Cut cut = {};           // 0: chosen; for knobs the algorithm must be named
  int timeout_ms = 0;     // 0: the communicator's
  // Names what the call exchanges, such as the key of a gradient; equal on all ranks, 0: none.
  // Ranks whose tags differ get a mismatch error.
  std::uint64_t tag = 0;
  std::string label = {};   // what errors call the tag
  // Of calls under way at a time the most urgent goes first wherever they compete: for a link to a
  // peer, at the borders of messages and their chunks, and for the thread that sums. Higher is more
  // urgent. Equal on all ranks; in [kLeastUrgent, kMostUrgent].
  int priority = 0;
  // A start may have to wait for the end of an earlier call like it, where the program has always
  // waited for that one first (runtime/arrivals.hpp). false: no start ever waits, as MPI has it.
  bool may_wait = true;
  OnDevice device = {};
};

}  // namespace paceline
