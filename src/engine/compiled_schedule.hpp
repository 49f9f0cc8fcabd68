// CompiledSchedule: a schedule with everything filled in but the addresses: places, lengths,
// kernels, scratch.
//
// Made once per shape and kept; starting it allocates nothing.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "ir/layout.hpp"
#include "ir/schedule.hpp"
#include "kernels/kernels.hpp"

namespace paceline {

// Somewhere in one of the caller's buffers, a peer's, or the scratch of the operation.
struct Place {
  Space space = Space::output;
  // Position of the rank whose buffer it is; of a mixed schedule also where that is the rank itself
  // and the place is in its staging buffer.
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
  std::int32_t incoming = -1;  // recv_reduce: which source is the message
  std::size_t bytes = 0;       // of the target or the message
};

struct CompiledSchedule {
  std::shared_ptr<const Schedule> schedule;
  bool load_store = false;   // proven to be one, and its rank has a stage (ir/load_store.hpp)
  bool mixed = false;      // its rank reaches others' staging buffers, and sends (engine/mixed.hpp)
  Type type = Type::u8;
  Reduce reduce = nullptr;  // where the collective combines
  ReduceCopy reduce_copy = nullptr;  // likewise
  int divisor = 1;          // average: what finish() divides by
  bool has_notes = false;   // at the end of its messages (engine/notes.hpp): see add_notes()
  std::size_t notes_at = 0;   // where it is mixed: of those that it shows, in the staging buffer
  std::size_t scratch_bytes = 0;
  std::size_t staging_bytes = 0;   // where it is mixed: the part of scratch in the staging buffer
  std::vector<CompiledStep> steps;
  std::vector<Stretch> stretches;
  std::vector<Place> places;
  // Of a call on a device: its steps in the order in which they are enqueued (engine/enqueued.hpp).
  std::vector<std::uint32_t> order;
  // Schedules of the positions, of a call whose ranks claim them.
  std::vector<std::shared_ptr<const CompiledSchedule>> positions;
  // Where calls may go by who comes when: what they then are, with positions; this is the usual.
  std::shared_ptr<const CompiledSchedule> by_arrival;
};

// `peers`: the layouts of all ranks, by position, where the schedule touches their memory.
CompiledSchedule resolve(std::shared_ptr<const Schedule> schedule, const Layout& layout, Type type,
                         Op op,
              const std::vector<Layout>& peers = {});

// Its ranks tell each other of their arrivals, in its messages and its staging buffer.
void add_notes(CompiledSchedule& bound);
// What that may take of a staging buffer; bytes.
std::size_t most_staging_for_notes(int ranks);

// What is left when nothing is combined: transfers and copies, with wrong results. Throws a refusal
// where a step combines what it reads from its peers' memory: then nothing would be moved either.
void leave_out_combining(CompiledSchedule& bound, bool load_store);

}  // namespace paceline
