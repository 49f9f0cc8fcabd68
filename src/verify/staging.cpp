#include "verify/staging.hpp"

#include <algorithm>
#include <map>

#include "base/str.hpp"
#include "ir/edges.hpp"

namespace paceline {
namespace {

bool share_node(const Schedule& schedule, int peer) {
  const std::vector<int>& nodes = schedule.problem.nodes;
  return nodes[std::size_t(peer)] == nodes[std::size_t(schedule.problem.rank)];
}

Verdict check_reach(const World& world, const Schedule& schedule) {
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    const StepId id{schedule.problem.rank, i};
    const bool is_signal = step.kind == Kind::signal || step.kind == Kind::wait;
    if (is_signal && !share_node(schedule, step.peer))
      return {str("staging: ", name(world, id), " names rank ", step.peer, " of another node")};
    for (std::uint32_t k = 0; k < step.segments; ++k) {
      const Segment& s = schedule.begin(step)[k];
      if (s.owner == kOwn) continue;
      if (s.space != Space::scratch || s.slot >= schedule.staging || !share_node(schedule, s.owner))
        return {str("staging: ", name(world, id), " touches memory of rank ", s.owner,
                    " that is in no staging buffer of its node")};
      if (writes(step.kind, k) || step.kind == Kind::send)
        return {str("staging: ", name(world, id), writes(step.kind, k) ? " writes to" : " sends",
                    " the staging buffer of rank ", s.owner)};
    }
  }
  return {};
}

// Blocks from the origin to the end of each slot of the staging buffer.
std::vector<int> extents(const Schedule& schedule) {
  std::vector<int> out;
  for (int slot = 0; slot < schedule.staging; ++slot) {
    int most = 0;
    for (const Segment& shape : schedule.slots[std::size_t(slot)].shapes)
      most = std::max(most, shape.first + shape.blocks - shape.origin);
    out.push_back(most);
  }
  return out;
}

Verdict check_layout(const World& world) {
  std::map<int, int> first;   // rank of each node
  for (const Schedule& schedule : world) {
    const int rank = schedule.problem.rank, node = schedule.problem.nodes[std::size_t(rank)];
    const int other = first.try_emplace(node, rank).first->second;
    if (extents(schedule) != extents(world[std::size_t(other)]))
      return {str("staging: the staging buffer of rank ", rank, " is not laid out like that of ",
                  "rank ", other, ", on the same node")};
  }
  return {};
}

// Order of the steps of one rank: for each step, those that come before it.
class Before {
 public:
  explicit Before(const Schedule& schedule)
      : words_((schedule.steps.size() + 63) / 64), bits_(schedule.steps.size() * words_) {
    for (const auto& [from, to] : edges_of(schedule)) {   // sorted by `from`
      for (std::size_t w = 0; w < words_; ++w) bits_[to * words_ + w] |= bits_[from * words_ + w];
      bits_[to * words_ + from / 64] |= std::uint64_t{1} << (from % 64);
    }
  }
  // True if all that comes before `a` comes before `b` as well, except for `signals`.
  bool includes(std::uint32_t a, std::uint32_t b, const std::vector<std::uint64_t>& signals) const {
    for (std::size_t w = 0; w < words_; ++w)
      if (bits_[a * words_ + w] & ~bits_[b * words_ + w] & ~signals[w]) return false;
    return true;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;   // row `to`: every step before it
};

Verdict check_counting(const World& world, const Schedule& schedule) {
  std::map<int, std::map<int, std::vector<std::uint32_t>>> signals;   // by lane and number
  std::vector<std::uint64_t> marks((schedule.steps.size() + 63) / 64);
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (step.kind != Kind::signal) continue;
    signals[step.lane][step.seq].push_back(i);
    marks[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  if (signals.empty()) return {};
  const Before before(schedule);
  for (const auto& [lane, numbers] : signals) {
    const std::vector<std::uint32_t>* last = nullptr;
    for (const auto& [number, steps] : numbers) {
      for (std::uint32_t step : steps)
        for (const auto* earlier : {last, &steps})
          for (std::size_t k = 0; earlier && k < earlier->size(); ++k)
            if (!before.includes((*earlier)[k], step, marks))
              return {str("staging: ", name(world, {schedule.problem.rank, step}),
                          " may come before what ",
                          name(world, {schedule.problem.rank, (*earlier)[k]}),
                          " tells of, and has its number or a later one")};
      last = &steps;
    }
  }
  return {};
}

}  // namespace

Verdict check_staging(const World& world) {
  const auto stages = [](const Schedule& schedule) { return schedule.staging > 0; };
  if (std::none_of(world.begin(), world.end(), stages)) return {};
  for (const Schedule& schedule : world) {
    if (schedule.problem.nodes.size() != world.size())
      return {str("staging: rank ", schedule.problem.rank, " does not know every rank's node")};
    if (Verdict bad = check_reach(world, schedule); !bad) return bad;
  }
  if (Verdict bad = check_layout(world); !bad) return bad;
  for (const Schedule& schedule : world)
    if (Verdict bad = check_counting(world, schedule); !bad) return bad;
  return {};
}

}  // namespace paceline
