#include "ir/fuse.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "ir/edges.hpp"

namespace paceline {
namespace {

// Steps that use a slot, in order.
std::vector<std::uint32_t> users(const Schedule& schedule, int slot) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (std::any_of(schedule.begin(step), schedule.end(step), [&](const Segment& s) {
          return s.space == Space::scratch && s.slot == slot;
        }))
      out.push_back(i);
  }
  return out;
}

// The slot is written by `recv` as a whole, and read by `reduce` once and exactly as written.
bool fits(const Schedule& schedule, const Step& recv, const Step& reduce) {
  if (recv.kind != Kind::recv || recv.segments != 1 || reduce.kind != Kind::reduce) return false;
  const Segment& message = *schedule.begin(recv);
  if (*schedule.begin(reduce) == message) return false;
  return std::count(schedule.begin(reduce) + 1, schedule.end(reduce), message) == 1;
}

// Whether no step after `reduce` reads what `recv` left in the slot: a receive comes next.
bool ends(const Schedule& schedule, const std::vector<std::uint32_t>& users, std::size_t reduce) {
  return reduce + 1 == users.size() || schedule.steps[users[reduce + 1]].kind == Kind::recv;
}

// Whether the reduce has to wait for a send of the receive's own round. Fused, the receive would
// wait for it too, while the peer's send waits for the receive: two ranks that exchange would wait
// for each other.
bool waits_for_own_send(const Schedule& schedule, const std::vector<Edge>& edges,
                        std::uint32_t recv, std::uint32_t reduce) {
  std::uint32_t round = recv;   // where it began: behind the receive before this one
  while (round > 0 && schedule.steps[round - 1].kind != Kind::recv) --round;
  return std::any_of(edges.begin(), edges.end(), [&](const Edge& edge) {
    return edge.second == reduce && edge.first >= round &&
           schedule.steps[edge.first].kind == Kind::send;
  });
}

}  // namespace

Schedule fuse(const Schedule& schedule) {
  require(schedule.pipeline == 1, "a schedule is fused before it is pipelined");
  Schedule out = schedule;
  const std::vector<Edge> edges = edges_of(schedule);
  std::vector<std::optional<std::uint32_t>> received_by(schedule.steps.size());   // by reduce
  std::vector<bool> gone(schedule.steps.size(), false);
  for (int slot = 0; slot < static_cast<int>(schedule.slots.size()); ++slot) {
    const std::vector<std::uint32_t> uses = users(schedule, slot);
    for (std::size_t i = 0; i + 1 < uses.size(); ++i) {
      const std::uint32_t recv = uses[i], reduce = uses[i + 1];
      if (gone[recv] || received_by[reduce] ||
          !fits(schedule, schedule.steps[recv], schedule.steps[reduce]) ||
          !ends(schedule, uses, i + 1) || waits_for_own_send(schedule, edges, recv, reduce))
        continue;
      received_by[reduce] = recv;
      gone[recv] = true;
    }
  }
  out.steps.clear();
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    if (gone[i]) continue;
    Step step = schedule.steps[i];
    if (received_by[i]) {
      const Step& recv = schedule.steps[*received_by[i]];
      const Segment message = *schedule.begin(recv);
      for (std::uint32_t s = step.first + 1; s < step.first + step.segments; ++s)
        if (out.segments[s] == message) out.segments[s].space = Space::incoming;
      step.kind = Kind::recv_reduce;
      step.peer = recv.peer;
      step.seq = recv.seq;
    }
    out.steps.push_back(step);
  }
  derive_slots(out);
  derive_edges(out);
  return out;
}

}  // namespace paceline
