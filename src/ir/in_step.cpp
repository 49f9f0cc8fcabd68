#include "ir/in_step.hpp"

#include <optional>

namespace paceline {

Schedule in_step(const Schedule& schedule) {
  Schedule out = schedule;
  std::vector<Edge> edges = edges_of(schedule);
  std::optional<std::uint32_t> sent, received;   // the last of each so far
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Kind kind = schedule.steps[i].kind;
    const bool receives = kind == Kind::recv || kind == Kind::recv_reduce;
    if (kind != Kind::send && !receives) continue;
    auto& last = receives ? received : sent;
    if (last) edges.emplace_back(*last, i);
    last = i;
  }
  set_edges(out, std::move(edges));
  return out;
}

}  // namespace paceline
