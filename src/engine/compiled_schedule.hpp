// CompiledSchedule: a schedule with places, lengths, kernels and scratch, but without addresses.
//
// It is made once per shape and kept; a start allocates nothing.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "ir/layout.hpp"
#include "ir/schedule.hpp"
#include "kernels/kernels.hpp"

namespace paceline {

// An offset in one of the caller's buffers, in a peer's, or in the operation's scratch.
struct Place {
  Space space = Space::output;
  // Position of the rank that owns the buffer; in a mixed schedule also for the rank's own staging
  // buffer.
  int owner = kOwn;
  std::size_t offset = 0;  // bytes
};

// A stretch that is contiguous in every operand of its step. A copy has places {target, source}, a
// reduce {target, sources ...}, a send, receive or finish {where}.
struct Stretch {
  std::size_t elements = 0;
  std::uint32_t first_place = 0;
};

struct CompiledStep {
  std::uint32_t first = 0;  // its stretches
  std::uint32_t stretches = 0;
  std::uint32_t places = 0;    // per stretch
  std::int32_t incoming = -1;  // recv_reduce: index of the source that is the message
  std::size_t bytes = 0;       // of the target or the message
};

inline constexpr std::size_t kUnevenHead = 16;   // bytes for the length, before the data

// A copy through a slot, of a unit whose length only its sender and its receiver know. The sender
// writes the length before the data, and the receiver compares it with its own. Slots are equally
// long on all ranks; a unit that is longer is sent as a message.
struct UnevenCopy {
  std::uint32_t step = 0;
  int peer = 0;   // position of the other rank
  bool sends = false;
  Place slot, place;   // `place`: in a buffer of this rank
  std::size_t bytes = 0;
  bool is_message = false;
  int seq = 0;             // of the message, among those between both ranks
  std::size_t aside = 0;   // sent in place: offset of a copy, which a receive may not overwrite
};

struct CompiledSchedule {
  std::shared_ptr<const Schedule> schedule;
  bool load_store = false;   // proven to be one, and its rank has a stage (ir/load_store.hpp)
  bool mixed = false;      // its rank reaches others' staging buffers, and sends (engine/mixed.hpp)
  Type type = Type::u8;
  Reduce reduce = nullptr;  // set if the collective combines
  ReduceCopy reduce_copy = nullptr;  // set if the collective combines
  int divisor = 1;          // average: divisor of finish()
  bool has_notes = false;   // at the end of its messages (arrival/notes.hpp): see add_notes()
  std::size_t notes_at = 0;   // mixed: offset of the shown notes in the staging buffer
  std::size_t scratch_bytes = 0;
  std::size_t staging_bytes = 0;   // mixed: the part of scratch in the staging buffer
  std::size_t message_bytes = 0;   // single copies: of the whole broadcast
  std::vector<UnevenCopy> uneven_copies;   // in the order of their steps
  std::size_t aside_bytes = 0;     // of UnevenCopy::aside
  std::vector<CompiledStep> steps;
  std::vector<Stretch> stretches;
  std::vector<Place> places;
  // Call on a device: its steps in the order in which they are enqueued (engine/enqueued.hpp).
  std::vector<std::uint32_t> order;
  // Schedules of the positions, of a call whose ranks claim them.
  std::vector<std::shared_ptr<const CompiledSchedule>> positions;
  // If calls may go by arrival: the schedule for that, with positions; this one is the usual.
  std::shared_ptr<const CompiledSchedule> by_arrival;
};

// `peers`: the layouts of all ranks, by position, if the schedule touches their memory.
CompiledSchedule resolve(std::shared_ptr<const Schedule> schedule, const Layout& layout, Type type,
                         Op op,
              const std::vector<Layout>& peers = {});

// Adds notes: the ranks tell each other their arrivals, in the messages and the staging buffer.
void add_notes(CompiledSchedule& bound);
// Returns the most bytes that notes take of a staging buffer.
std::size_t most_staging_for_notes();

// Leaves out all combining, so that only transfers and copies remain, with wrong results. Throws a
// refusal if steps combine straight from peers' memory: nothing would be moved either.
void leave_out_combining(CompiledSchedule& bound, bool load_store);

}  // namespace paceline
