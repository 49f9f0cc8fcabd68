#include "ir/load_store.hpp"

#include <algorithm>
#include <vector>

namespace paceline {

bool is_load_store(const Schedule& schedule) {
  return std::none_of(schedule.steps.begin(), schedule.steps.end(), [](const Step& step) {
    return step.kind == Kind::send || step.kind == Kind::recv || step.kind == Kind::recv_reduce;
  });
}

std::size_t signals_in(const Schedule& schedule) {
  std::vector<std::size_t> heard(static_cast<std::size_t>(schedule.problem.ranks), 0);
  std::size_t given = 0, most = 0;
  Kind before = Kind::copy;
  for (const Step& step : schedule.steps) {
    if (step.kind == Kind::signal && before != Kind::signal) most = std::max(most, ++given);
    if (step.kind == Kind::wait)
      most = std::max(most, ++heard[static_cast<std::size_t>(step.peer)]);
    before = step.kind;
  }
  return most;
}

Schedule in_order(Schedule schedule) {
  std::vector<Edge> edges;
  const auto count = static_cast<std::uint32_t>(schedule.steps.size());
  std::uint32_t before = 0, begin = 0;   // the group before, and the one that is being read
  for (std::uint32_t i = 0; i < count; ++i) {
    const Kind kind = schedule.steps[i].kind;
    const bool goes_on = i > 0 && (kind == Kind::signal || kind == Kind::wait) &&
                         kind == schedule.steps[i - 1].kind;
    if (!goes_on && i > 0) {
      before = begin;
      begin = i;
    }
    for (std::uint32_t earlier = before; earlier < begin; ++earlier) edges.emplace_back(earlier, i);
  }
  set_edges(schedule, std::move(edges));
  return schedule;
}

}  // namespace paceline
