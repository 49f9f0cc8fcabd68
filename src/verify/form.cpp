#include "verify/form.hpp"

#include <algorithm>
#include <tuple>

#include "base/str.hpp"
#include "ir/contract.hpp"

namespace paceline {
namespace {

auto common(const Schedule& s) {
  return std::tuple(s.problem.collective, s.problem.ranks, s.problem.root, s.problem.commutative,
                    s.problem.canonical, s.problem.uneven, s.problem.nodes, s.units, s.cuts,
                    s.within, s.pipeline, s.lanes, s.tail_reads_scratch);
}

bool has_room(const Schedule& owner, const Segment& s) {
  if (s.slot < 0 || s.slot >= static_cast<int>(owner.slots.size()) || s.first < s.origin)
    return false;
  const std::vector<Segment>& shapes = owner.slots[std::size_t(s.slot)].shapes;
  return std::any_of(shapes.begin(), shapes.end(), [&](const Segment& shape) {
    return shape.like == s.like && shape.origin == s.origin &&
           shape.first + shape.blocks >= s.first + s.blocks;
  });
}

std::string place_fault(const World& world, int rank, const Step& step, const Segment& s) {
  if (s.blocks < 1 || s.first < 0 || s.first + s.blocks > world[0].blocks())
    return str("names blocks [", s.first, ", ", s.first + s.blocks, ") of ", world[0].blocks());
  if (s.space == Space::incoming)
    return step.kind == Kind::recv_reduce ? "" : "names the message of a receive";
  if (s.owner < kOwn || s.owner >= static_cast<int>(world.size()) || s.owner == rank)
    return str("names memory of rank ", s.owner);
  const Schedule& owner = world[std::size_t(s.owner == kOwn ? rank : s.owner)];
  if (s.space == Space::scratch && !has_room(owner, s)) return "names more of a slot than it has";
  return {};
}

bool right_number(const Schedule& schedule, const Step& step) {
  const auto incoming = std::count_if(schedule.begin(step), schedule.end(step),
                                      [](const Segment& s) { return s.space == Space::incoming; });
  switch (step.kind) {
    case Kind::send:
    case Kind::recv: return true;
    case Kind::copy: return step.segments == 2;
    case Kind::finish: return step.segments == 1;
    case Kind::reduce: return step.segments >= 2;
    case Kind::recv_reduce:
      return step.segments >= 2 && incoming == 1 && schedule.begin(step)->space != Space::incoming;
    default: return step.segments == 0;
  }
}

bool equally_long(const Schedule& schedule, const Segment& a, const Segment& b) {
  if (a.blocks != b.blocks) return false;
  for (int i = 0; i < a.blocks; ++i)
    if (size_name(schedule, a, a.first + i) != size_name(schedule, b, b.first + i)) return false;
  return true;
}

std::string step_fault(const World& world, const Schedule& schedule, const Step& step) {
  if (!right_number(schedule, step)) return str("has ", step.segments, " segments");
  for (const Segment* s = schedule.begin(step); s != schedule.end(step); ++s)
    if (std::string bad = place_fault(world, schedule.problem.rank, step, *s); !bad.empty())
      return bad;
  if (step.kind == Kind::send || step.kind == Kind::recv) return {};
  for (std::uint32_t k = 1; k < step.segments; ++k)
    if (!equally_long(schedule, *schedule.begin(step), schedule.begin(step)[k]))
      return "combines blocks of different length";
  return {};
}

}  // namespace

Verdict check_form(const World& world) {
  for (int rank = 0; rank < static_cast<int>(world.size()); ++rank) {
    const Schedule& schedule = world[std::size_t(rank)];
    if (schedule.problem.rank != rank || schedule.problem.ranks != static_cast<int>(world.size()) ||
        common(schedule) != common(world[0]))
      return {str("form: rank ", rank, " has another problem or cuts it otherwise than rank 0")};
    for (std::uint32_t i = 0; i < schedule.steps.size(); ++i)
      if (std::string bad = step_fault(world, schedule, schedule.steps[i]); !bad.empty())
        return {str("form: ", name(world, {rank, i}), " ", bad)};
  }
  return {};
}

}  // namespace paceline
