#include "profile/clocks.hpp"

#include <limits>
#include <set>

#include "base/str.hpp"

namespace paceline {
namespace {

enum : std::int64_t { kStop, kGoOn };

}  // namespace

std::string clock_note(std::string_view when, const ClockOffset& offset) {
  return str("{\"clock\":\"", when, "\",\"at_ns\":", offset.at_ns, ",\"offset_ns\":",
             offset.offset_ns, ",\"error_ns\":", offset.error_ns, "}");
}

std::vector<int> clock_leaders(const std::vector<std::uint64_t>& clock_of_rank) {
  std::vector<int> leaders;
  std::set<std::uint64_t> seen;
  for (std::size_t rank = 0; rank < clock_of_rank.size(); ++rank)
    if (seen.insert(clock_of_rank[rank]).second && rank > 0)
      leaders.push_back(static_cast<int>(rank));
  return leaders;
}

// Rank 0 reads its clock somewhere within the round trip: in the middle of it, give or take half.
ClockOffset measure_offset(PingLink& link, const ClockHook& now, PingLimits limits) {
  ClockOffset best;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (int round = 0; round < limits.most; ++round) {
    const std::int64_t sent = now();
    link.send(0, kGoOn);
    const std::int64_t theirs = link.receive(0);
    const std::int64_t came = now();
    if (came - sent < shortest) {
      shortest = came - sent;
      const std::int64_t middle = sent + shortest / 2;
      best = {middle, middle - theirs, (shortest + 1) / 2};
    }
    if (round + 1 >= limits.least && shortest <= limits.good_ns) break;
  }
  link.send(0, kStop);
  return best;
}

void answer_pings(PingLink& link, int peer, const ClockHook& now) {
  while (link.receive(peer) == kGoOn) link.send(peer, now());
}

}  // namespace paceline
