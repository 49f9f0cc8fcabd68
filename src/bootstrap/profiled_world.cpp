#include "bootstrap/profiled_world.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "profile/clocks.hpp"
#include "runtime/diagnostics/profile.hpp"

namespace paceline {
namespace {

constexpr std::uint64_t kClocks = 0x636c6b << 8;   // tags of groups that compare clocks
constexpr int kClocksMs = 10000;

// Sends a number from one rank to another as a broadcast between the two.
class PairLink : public PingLink {
 public:
  PairLink(Communicator& world, std::uint64_t tag) : world_(world), tag_(tag) {}
  void send(int peer, std::int64_t value) override { pass(world_.rank(), peer, value); }
  std::int64_t receive(int peer) override {
    std::int64_t value = 0;
    pass(peer, world_.rank(), value);
    return value;
  }

 private:
  void pass(int source, int target, std::int64_t& value) {
    Communicator& pair = pairs_[{source, target}];
    if (!pair.valid()) {
      const auto p = static_cast<std::uint64_t>(world_.size());
      pair = world_.subgroup({source, target}, tag_ + static_cast<std::uint64_t>(source) * p +
                                                   static_cast<std::uint64_t>(target));
    }
    Call call{Collective::broadcast, Type::i64};
    call.output = &value;
    call.count = 1;
    call.timeout_ms = kClocksMs;
    pair.run(call);
  }

  Communicator& world_;
  std::uint64_t tag_;
  std::map<std::pair<int, int>, Communicator> pairs_;
};

// Returns the identity of every rank's clock, which the ranks exchange in a group of their own.
std::vector<std::uint64_t> clocks_of(Communicator& world, std::uint64_t own, std::uint64_t tag) {
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::uint64_t> clocks(all.size());
  Communicator apart = world.subgroup(all, tag);
  Call call{Collective::allgather, Type::i64};
  call.input = &own;
  call.output = clocks.data();
  call.count = 1;
  call.timeout_ms = kClocksMs;
  apart.run(call);
  return clocks;
}

// Returns the offset of this rank's clock, if this rank measures it. Ranks of one node share a
// clock, and measure nothing. Must not run while calls are recorded, since its calls are not the
// program's.
std::optional<ClockOffset> compare_clocks(Communicator& world, const char* when) try {
  if (world.nodes() < 2) return {};
  const std::uint64_t tag = (kClocks + 2 * std::uint64_t{world.profile().turn()} +
                             (std::string_view(when) == "end" ? 1 : 0)) << 32;
  const std::vector<int> leaders = clock_leaders(clocks_of(world, clock_identity(), tag));
  PairLink link(world, tag + 1);
  if (std::count(leaders.begin(), leaders.end(), world.rank()) > 0)
    return measure_offset(link, profile_now_ns);
  if (world.rank() == 0)
    for (const int leader : leaders) answer_pings(link, leader, profile_now_ns);
  return {};
} catch (const Error& error) {
  std::fprintf(stderr, "paceline: profile: clocks were not compared at the %s: %s\n", when,
               error.what());
  return {};
}

}  // namespace

void begin_profile(Communicator& world, ProfileConfig config) {
  config.source = "paceline";
  config.rank = world.rank();
  config.ranks = world.size();
  world.profile().end();
  const std::optional<ClockOffset> offset = compare_clocks(world, "start");
  world.profile().begin(config);
  if (offset) world.profile().recorder()->note(clock_note("start", *offset));
}

void begin_profile(Communicator& world, const WorldConfig& config) try {
  if (config.profile_dir.empty()) return;
  begin_profile(world, {.folder = config.profile_dir,
                        .node = config.node,
                        .bytes = config.profile_bytes});
} catch (const Error& error) {
  std::fprintf(stderr, "paceline: rank %d: %s Nothing is recorded there.\n", world.rank(),
               error.what());
}

// The recorder stays, since another thread's call may still write to it.
void end_profile(Communicator& world) {
  Recorder* const recorder = world.profile().recorder();
  if (!recorder) return;
  world.profile().end();
  if (!world.broken().empty()) return;
  if (const auto offset = compare_clocks(world, "end")) recorder->note(clock_note("end", *offset));
}

}  // namespace paceline
