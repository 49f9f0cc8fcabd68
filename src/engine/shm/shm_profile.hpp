// ShmProfile: lengths at which calls in shared memory change their method.
//
// Each profile was measured on the processors that it names (docs/design/0019-straight.md). A
// process takes one for its life. Ranks that share memory share a machine, and so take the same. To
// tune another processor, add another profile.
#pragma once

#include <cstddef>
#include <span>

namespace paceline {

// Lengths are bytes.
struct ShmProfile {
  const char* measured_on;

  // Slots of a staging buffer (engine/shm/shm_channel.hpp).
  std::size_t short_slot;      // longest slot that has one of two fixed places
  std::size_t rotation;        // stretch of the staging buffer that longer slots rotate through
  std::size_t short_rotation;  // that stretch while no slot is longer than modest_slot
  std::size_t modest_slot;
  bool swaps;                  // two ranks swap their staging buffers in turn

  // Shortest step that uses several streams (engine/shm/interleaved.hpp).
  std::size_t streams_from_stage;        // reads from a peer's staging buffer
  std::size_t streams_from_one_stage;    // the same, if only one of two ranks shows data
  std::size_t streams_from_buffer;       // reads from a peer's own buffer
  std::size_t streams_into_stage;        // copies into the stage, if one of two ranks shows data
  std::size_t most_in_streams;           // most bytes that a call reads in streams
  std::size_t strip;                     // bytes of each stream in turn

  // Least bytes that a rank writes in a call whose outputs take non-temporal stores; of two ranks.
  std::size_t long_output, long_output_of_two;
  // Seconds per line above which copies into the stage are slow; bytes of non-temporal stores then.
  double slow_line_s;
  std::size_t past_caches;
  std::size_t timed_copy;   // the shortest copy whose time is compared with that
  int slow_copies;          // in a row, before stores go past the caches
  std::size_t untimed;      // of a new staging buffer: its lines come from memory, slow as well

  std::size_t brief;       // most bytes of all steps of a call that start() stays with
  std::size_t preempted;   // most bytes of work before a more urgent call goes on
};

std::span<const ShmProfile> shm_profiles();

// Returns this processor's profile.
const ShmProfile& shm_profile();

}  // namespace paceline
