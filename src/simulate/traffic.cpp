#include "simulate/traffic.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "ir/layout.hpp"
#include "ir/load_store.hpp"

namespace paceline {
namespace {

Home home_of(const Schedule& schedule, const Segment& segment) {
  const bool own = segment.owner == kOwn || segment.owner == schedule.problem.rank;
  if (segment.space == Space::scratch) return own ? Home::stage : Home::peer_stage;
  return own ? Home::buffer : Home::peer_buffer;
}

bool is_staged(Home home) { return home == Home::stage || home == Home::peer_stage; }

Pass pass_of(const Schedule& schedule, const Step& step) {
  if (step.kind == Kind::reduce) return Pass::reduce;
  const Segment* const target = schedule.begin(step);
  if (is_staged(home_of(schedule, target[0]))) return Pass::copy_in;
  return is_staged(home_of(schedule, target[1])) ? Pass::copy_out : Pass::copy;
}

bool moves(const Step& step) { return step.kind == Kind::reduce || step.kind == Kind::copy; }

void add(Traffic& traffic, Pass pass, Home home, const Moved& moved) {
  traffic.by_pass[static_cast<std::size_t>(pass)] += moved;
  traffic.by_home[static_cast<std::size_t>(home)] += moved;
}

// `made`: what the steps just before have made; null: nothing.
Traffic traffic_of_step(const Schedule& schedule, const Step& step, std::uint64_t bytes,
                        const Segment* made) {
  Traffic out;
  const Pass pass = pass_of(schedule, step);
  const Segment* const target = schedule.begin(step);
  add(out, pass, home_of(schedule, *target), {0, bytes, 0});
  for (const Segment* source = target + 1; source != schedule.end(step); ++source) {
    const bool again = made && step.kind == Kind::copy && *source == *made;
    add(out, pass, home_of(schedule, *source), {bytes, 0, again ? bytes : 0});
  }
  return out;
}

// For each rank, the first step that cannot be done before the late rank is there. Signals and
// waits of a pair are matched in their order, and every rank does its steps in turn.
std::vector<std::size_t> held_up_from(const std::vector<Schedule>& world, int late) {
  const std::size_t ranks = world.size();
  std::vector<std::size_t> done(ranks, 0);   // steps that need not wait
  std::vector<std::vector<std::size_t>> told(ranks, std::vector<std::size_t>(ranks, 0));
  for (bool goes_on = true; std::exchange(goes_on, false);)
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (static_cast<int>(rank) == late) continue;
      for (std::size_t& next = done[rank]; next < world[rank].steps.size(); ++next) {
        const Step& step = world[rank].steps[next];
        const auto peer = static_cast<std::size_t>(step.peer);
        if (step.kind == Kind::signal) ++told[rank][peer];
        if (step.kind == Kind::wait && told[peer][rank] <= static_cast<std::size_t>(step.seq))
          break;
        goes_on = true;
      }
    }
  return done;
}

}  // namespace

std::string_view name_of(Pass pass) {
  static constexpr std::array<std::string_view, kPasses> kNames{"copy in", "reduce", "copy out",
                                                                "copy"};
  return kNames[static_cast<std::size_t>(pass)];
}

std::string_view name_of(Home home) {
  static constexpr std::array<std::string_view, kHomes> kNames{
      "own buffers", "own stage", "peers' buffers", "peers' stages"};
  return kNames[static_cast<std::size_t>(home)];
}

Moved& Moved::operator+=(const Moved& other) {
  read += other.read;
  written += other.written;
  again += other.again;
  return *this;
}

Moved Traffic::total() const {
  Moved all;
  for (const Moved& moved : by_pass) all += moved;
  return all;
}

Traffic& Traffic::operator+=(const Traffic& other) {
  for (std::size_t i = 0; i < kPasses; ++i) by_pass[i] += other.by_pass[i];
  for (std::size_t i = 0; i < kHomes; ++i) by_home[i] += other.by_home[i];
  signals += other.signals;
  syncs = std::max(syncs, other.syncs);
  return *this;
}

std::vector<Traffic> traffic_by_step(const Schedule& schedule, std::size_t count,
                                     std::size_t element_bytes) {
  require(is_load_store(schedule), "traffic: ", schedule.algorithm,
          " sends messages; only the steps of load/store schedules are counted");
  const Layout layout = even_layout(schedule.problem, count);
  std::vector<Traffic> out(schedule.steps.size());
  const Segment* made = nullptr;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (step.kind == Kind::signal || step.kind == Kind::wait) made = nullptr;
    if (!moves(step)) continue;
    const Segment* const target = schedule.begin(step);
    const std::uint64_t bytes = element_bytes * count_of(schedule, layout, *target);
    out[i] = traffic_of_step(schedule, step, bytes, made);
    // A copy of what was just made leaves that at hand for the next copy of it.
    if (!made || step.kind != Kind::copy || target[1] != *made) made = target;
  }
  return out;
}

std::vector<Traffic> traffic_after(const std::vector<Schedule>& world, int late, std::size_t count,
                                   std::size_t element_bytes) {
  const std::vector<std::size_t> first = held_up_from(world, late);
  std::vector<Traffic> out(world.size());
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    const std::vector<Traffic> steps = traffic_by_step(world[rank], count, element_bytes);
    for (std::size_t i = first[rank]; i < steps.size(); ++i) out[rank] += steps[i];
  }
  return out;
}

Traffic traffic_of(const Schedule& schedule, std::size_t count, std::size_t element_bytes) {
  Traffic out;
  for (const Traffic& step : traffic_by_step(schedule, count, element_bytes)) out += step;
  const Step* before = nullptr;
  for (const Step& step : schedule.steps) {
    out.signals += step.kind == Kind::signal;
    out.syncs += step.kind == Kind::wait && (!before || before->kind != Kind::wait);
    before = &step;
  }
  return out;
}

Traffic traffic_of(const std::vector<Schedule>& world, std::size_t count,
                   std::size_t element_bytes) {
  Traffic out;
  for (const Schedule& schedule : world) out += traffic_of(schedule, count, element_bytes);
  return out;
}

}  // namespace paceline
