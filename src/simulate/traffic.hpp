// traffic: how many bytes the steps of load/store schedules (ir/load_store.hpp) read and write.
//
// It counts bytes, not time. A step reads each of its sources once and writes its target once; that
// is all that is counted. Not counted: what a store may read first to own its line, the lines of
// the signals, and the division of an average, which depends on the operation.
// docs/design/0020-traffic.md sets the counts beside those of the literature.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/schedule.hpp"

namespace paceline {

// Purpose of a step. A stage is scratch that peers reach; `copy` leads from buffer to buffer, own
// or a peer's, past all stages.
enum class Pass : std::uint8_t { copy_in, reduce, copy_out, copy };
inline constexpr int kPasses = 4;
std::string_view name_of(Pass pass);

// Place of data, as the rank that moves it sees it.
enum class Home : std::uint8_t { buffer, stage, peer_buffer, peer_stage };
inline constexpr int kHomes = 4;
std::string_view name_of(Home home);

struct Moved {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  std::uint64_t again = 0;   // of what is read: what the rank made in the steps just before

  std::uint64_t total() const { return read + written; }
  Moved& operator+=(const Moved& other);
  bool operator==(const Moved&) const = default;
};

struct Traffic {
  std::array<Moved, kPasses> by_pass;
  std::array<Moved, kHomes> by_home;   // the same bytes, told apart in the other way
  std::uint64_t signals = 0;           // one for each peer that is told
  std::uint64_t syncs = 0;             // times that a rank waits; of several, the most of any

  const Moved& of(Pass pass) const { return by_pass[static_cast<std::size_t>(pass)]; }
  const Moved& of(Home home) const { return by_home[static_cast<std::size_t>(home)]; }
  Moved total() const;
  Traffic& operator+=(const Traffic& other);
};

// Traffic of each step of one rank; waits, signals and ends of sums move nothing.
std::vector<Traffic> traffic_by_step(const Schedule& schedule, std::size_t count,
                                     std::size_t element_bytes);

// Traffic of each rank once the rank `late` has come, if all others have done what they could
// without it: the steps from the first one on that waits for `late`, directly or through another
// rank; all steps of `late` itself.
std::vector<Traffic> traffic_after(const std::vector<Schedule>& world, int late, std::size_t count,
                                   std::size_t element_bytes);

// Traffic of one rank, and of all ranks of a node together. `count`: elements per unit. Throws an
// internal error if messages are sent: only their transport knows what those cost.
Traffic traffic_of(const Schedule& schedule, std::size_t count, std::size_t element_bytes);
Traffic traffic_of(const std::vector<Schedule>& world, std::size_t count,
                   std::size_t element_bytes);

}  // namespace paceline
