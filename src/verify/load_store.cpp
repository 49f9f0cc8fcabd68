#include "verify/load_store.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/str.hpp"
#include "ir/load_store.hpp"

namespace paceline {
namespace {

// Blocks from the origin to the end of each slot.
std::vector<int> extents(const Schedule& schedule) {
  std::vector<int> out;
  for (const Slot& slot : schedule.slots) {
    int most = 0;
    for (const Segment& shape : slot.shapes)
      most = std::max(most, shape.first + shape.blocks - shape.origin);
    out.push_back(most);
  }
  return out;
}

// Signals without a step of another kind between them count as one. A rank counts its signals for
// all peers, so a peer that counts those it is told must be told from the first one on.
Verdict check_signals(const Schedule& schedule) {
  std::set<int> now, before;
  bool is_first = true;
  const Verdict bad{str("load/store: rank ", schedule.problem.rank,
                        " signals a peer, and not from its first signal on")};
  const auto grows = [&] {
    return !is_first && !std::includes(before.begin(), before.end(), now.begin(), now.end());
  };
  const auto end_group = [&] {
    if (now.empty()) return true;
    if (grows()) return false;
    before = std::exchange(now, {});
    is_first = false;
    return true;
  };
  for (const Step& step : schedule.steps) {
    if (step.kind == Kind::signal) {
      if (!now.insert(step.peer).second) return bad;
    } else if (!end_group()) {
      return bad;
    }
  }
  return end_group() ? Verdict{} : bad;
}

using Marks = std::vector<std::pair<int, int>>;   // lane and number, in the order of the steps

Verdict check_orders(const World& world) {
  std::map<std::pair<int, int>, Marks> told, heard;   // by signalling rank and waiting rank
  for (const Schedule& schedule : world)
    for (const Step& step : schedule.steps) {
      const int rank = schedule.problem.rank;
      if (step.kind == Kind::signal) told[{rank, step.peer}].emplace_back(step.lane, step.seq);
      if (step.kind == Kind::wait) heard[{step.peer, rank}].emplace_back(step.lane, step.seq);
    }
  for (const auto& [pair, marks] : told)
    if (marks != heard[pair])
      return {str("load/store: rank ", pair.second, " does not wait for the signals of rank ",
                  pair.first, " in their order")};
  return {};
}

// Checks a schedule whose peers' buffers this rank does not see: the system copies from one buffer
// to another. Lines have no other use then and say where the buffers are. A rank that writes to a
// peer's has shown by a signal that it is in the call.
Verdict check_attached(const World& world, const Schedule& schedule) {
  const int rank = schedule.problem.rank;
  if (!schedule.slots.empty())
    return {str("load/store: rank ", rank, " wants scratch, and is attached")};
  bool has_signalled = false;
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    has_signalled |= step.kind == Kind::signal;
    int theirs = 0;
    for (std::uint32_t k = 0; k < step.segments; ++k)
      theirs += schedule.begin(step)[k].owner != kOwn;
    if (theirs == 0) continue;
    if (theirs > 1 || step.kind != Kind::copy)
      return {str("load/store: ", name(world, {rank, i}), " is no copy between rank ", rank,
                  " and a peer")};
    if (!has_signalled)
      return {str("load/store: ", name(world, {rank, i}), " comes before any signal of rank ",
                  rank)};
  }
  return {};
}

}  // namespace

Verdict check_straight(const World& world) {
  if (!world[0].problem.one_node) return {};
  for (const Schedule& schedule : world) {
    const int rank = schedule.problem.rank;
    if (!is_load_store(schedule)) return {str("load/store: rank ", rank, " sends a message")};
    if (extents(schedule) != extents(world[0]))
      return {str("load/store: the slots of rank ", rank, " are not as long as those of rank 0")};
    if (Verdict bad = check_signals(schedule); !bad) return bad;
    if (!schedule.single_copy) continue;
    if (Verdict bad = check_attached(world, schedule); !bad) return bad;
  }
  return check_orders(world);
}

}  // namespace paceline
