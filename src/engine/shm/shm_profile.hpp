// ShmProfile: from which lengths on calls in shared memory work in another way.
//
// Each profile was measured on the processors that it names; docs/design/0019-straight.md has the
// figures. A process takes one, once, and ranks that share memory share a machine: it is equal on
// all of them. To tune another processor write another profile.
#pragma once

#include <cstddef>
#include <span>

namespace paceline {

// Lengths are bytes.
struct ShmProfile {
  const char* measured_on;

  // Slots of a staging buffer (engine/shm/shm_channel.hpp).
  std::size_t short_slot;      // longest slot that has one of two fixed places
  std::size_t rotation;        // stretch of the staging buffer that longer slots rotate through,
  std::size_t short_rotation;  // while a communicator has had no slot longer than
  std::size_t modest_slot;     // this one
  bool swaps;                  // two ranks swap their staging buffers by turns

  // Reads in several streams (engine/shm/interleaved.hpp): the shortest step
  std::size_t streams_from_stage;        // that reads a peer's staging buffer,
  std::size_t streams_from_one_stage;    // that of the one of two ranks that shows something,
  std::size_t streams_from_buffer;       // a peer's own buffer;
  std::size_t streams_into_stage;        // that shows something to the other of two ranks;
  std::size_t most_in_streams;           // and the most that a call reads so
  std::size_t strip;                     // of each stream by turns

  // Stores past the caches: of outputs, in calls in which a rank writes as much, or one of two;
  std::size_t long_output, long_output_of_two;
  // of what peers are shown, where copies into the stage took this long a line, and for how long.
  double slow_line_s;
  std::size_t past_caches;
  std::size_t timed_copy;   // the shortest copy whose time is compared with that
  int slow_copies;          // in a row, before stores go past the caches
  std::size_t untimed;      // of a new staging buffer: its lines come from memory, slow as well

  std::size_t brief;       // most bytes of all steps of a call that start() stays with
  std::size_t preempted;   // most bytes of work before a more urgent call goes on
};

std::span<const ShmProfile> shm_profiles();

// This processor's.
const ShmProfile& shm_profile();

}  // namespace paceline
