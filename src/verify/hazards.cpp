#include "verify/hazards.hpp"

#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "base/str.hpp"
#include "ir/edges.hpp"

namespace paceline {
namespace {

constexpr int kNobody = -1;

// Reachability of nodes from sources in a graph whose edges come in topological order. A node
// belongs to one source or to none.
class Reach {
 public:
  Reach(std::vector<int> source_of, int sources)
      : source_of_(std::move(source_of)),
        words_((std::size_t(sources) + 63) / 64),
        bits_(source_of_.size() * words_, 0) {}

  void add(std::size_t from, std::size_t to) {  // all edges into `from` must have been added before
    std::uint64_t* target = bits_.data() + to * words_;
    const std::uint64_t* before = bits_.data() + from * words_;
    for (std::size_t w = 0; w < words_; ++w) target[w] |= before[w];
    if (const int source = source_of_[from]; source != kNobody)
      target[source / 64] |= std::uint64_t{1} << (source % 64);
  }
  bool has(int source, std::size_t to) const {
    return bits_[to * words_ + std::size_t(source) / 64] >> (source % 64) & 1;
  }
  int source_of(std::size_t node) const { return source_of_[node]; }

 private:
  std::vector<int> source_of_;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;   // row `to`: every source that reaches it
};

struct Use {
  StepId step;
  Segment segment;
  bool writes;
};

// Ranges of a slot with different shapes may overlap for some counts: they count as one memory.
bool overlap(const Segment& a, const Segment& b) {
  if (a.space == Space::scratch && (a.like != b.like || a.origin != b.origin)) return true;
  return a.first < b.first + b.blocks && b.first < a.first + a.blocks;
}

using Memory = std::tuple<int, Space, int>;   // owner, space, slot
using Uses = std::map<Memory, std::vector<Use>>;

void collect(const Schedule& schedule, Uses& uses) {
  const int rank = schedule.problem.rank;
  for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    for (std::uint32_t k = 0; k < step.segments; ++k) {
      const Segment& s = schedule.begin(step)[k];
      if (s.space == Space::incoming) continue;
      const int owner = s.owner == kOwn ? rank : s.owner;
      uses[{owner, s.space, s.slot}].push_back({{rank, i}, s, writes(step.kind, k)});
    }
  }
}

template <class Ordered>
Verdict check(const World& world, const Uses& uses, Ordered&& ordered) {
  for (const auto& [memory, list] : uses)
    for (std::size_t a = 0; a < list.size(); ++a)
      for (std::size_t b = a + 1; b < list.size(); ++b) {
        if (!list[a].writes && !list[b].writes) continue;
        const StepId x = list[a].step, y = list[b].step;
        if (x.rank == y.rank && x.step == y.step) continue;
        if (!overlap(list[a].segment, list[b].segment) || ordered(x, y)) continue;
        return {str("hazards: ", name(world, x), " and ", name(world, y),
                    " touch the same blocks, one of them writes, and neither waits for the other")};
      }
  return {};
}

bool touches_peers(const World& world) {
  for (const Schedule& schedule : world)
    for (const Segment& s : schedule.segments)
      if (s.owner != kOwn) return true;
  return false;
}

Verdict check_edges(const World& world) {
  for (const Schedule& schedule : world)
    for (const auto& [from, to] : edges_of(schedule))
      if (from >= to)
        return {
            str("hazards: ", name(world, {schedule.problem.rank, to}), " waits for step ", from)};
  return {};
}

Verdict check_rank(const World& world, const Schedule& schedule) {
  std::vector<int> steps(schedule.steps.size());
  std::iota(steps.begin(), steps.end(), 0);
  Reach reach(steps, static_cast<int>(steps.size()));
  for (const auto& [from, to] : edges_of(schedule)) reach.add(from, to);   // sorted by `from`
  Uses uses;
  collect(schedule, uses);
  return check(world, uses, [&](StepId x, StepId y) {
    return reach.has(static_cast<int>(std::min(x.step, y.step)), std::max(x.step, y.step));
  });
}

template <class Each>
void for_steps(const World& world, Each&& each) {
  for (int rank = 0; rank < static_cast<int>(world.size()); ++rank)
    for (std::uint32_t i = 0; i < world[std::size_t(rank)].steps.size(); ++i)
      each(StepId{rank, i});
}

using Orderings = std::vector<std::pair<std::size_t, std::size_t>>;

// Start and end of every step of every rank, ordered by what the world guarantees: edges, and that
// a message ends at its receiver after it started at its sender. Nothing is promised to the sender.
class Events {
 public:
  Events(const World& world, const Partners& partners) : world_(world), partners_(partners) {
    for (const Schedule& s : world) {
      base_.push_back(count_);
      count_ += 2 * s.steps.size();
    }
  }
  std::size_t start(StepId id) const { return base_[std::size_t(id.rank)] + 2 * id.step; }
  std::size_t end(StepId id) const { return start(id) + 1; }

  std::size_t count() const { return count_; }

  // Every ordering (from, to), in a topological order of `from`.
  Orderings orderings() const {
    Orderings out;
    std::vector<std::vector<std::size_t>> next(count_);
    std::vector<int> indegree(count_, 0);
    const auto join = [&](std::size_t a, std::size_t b) {
      next[a].push_back(b);
      ++indegree[b];
    };
    for (int rank = 0; rank < static_cast<int>(world_.size()); ++rank) {
      const Schedule& s = world_[std::size_t(rank)];
      for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
        const StepId partner = partners_[std::size_t(rank)][i];
        const Kind kind = s.steps[i].kind;
        join(start({rank, i}), end({rank, i}));
        if (partner.rank >= 0 && kind != Kind::send && kind != Kind::signal)
          join(start(partner), end({rank, i}));
      }
      for (const auto& [from, to] : edges_of(s)) join(end({rank, from}), start({rank, to}));
    }
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < count_; ++i)
      if (indegree[i] == 0) ready.push_back(i);
    while (!ready.empty()) {
      const std::size_t at = ready.back();
      ready.pop_back();
      for (std::size_t to : next[at]) {
        out.emplace_back(at, to);
        if (--indegree[to] == 0) ready.push_back(to);
      }
    }
    return out;
  }

 private:
  const World& world_;
  const Partners& partners_;
  std::vector<std::size_t> base_;
  std::size_t count_ = 0;
};

// A peer may touch a rank's memory only while that rank is in the collective: some step of its own
// must come before, and one after. Otherwise the caller may not have filled it, or uses it again.
Verdict check_presence(const World& world, const Events& events, const Orderings& orderings) {
  const int ranks = static_cast<int>(world.size());
  std::vector<int> starts(events.count(), kNobody), ends(events.count(), kNobody);
  for_steps(world, [&](StepId id) { starts[events.start(id)] = ends[events.end(id)] = id.rank; });
  Reach before(std::move(starts), ranks), after(std::move(ends), ranks);
  for (const auto& [from, to] : orderings) before.add(from, to);
  for (auto edge = orderings.rbegin(); edge != orderings.rend(); ++edge)
    after.add(edge->second, edge->first);

  Verdict verdict;
  for_steps(world, [&](StepId id) {
    const Schedule& schedule = world[std::size_t(id.rank)];
    const Step& step = schedule.steps[id.step];
    for (const Segment* s = schedule.begin(step); verdict && s != schedule.end(step); ++s) {
      const bool read = !writes(step.kind, std::size_t(s - schedule.begin(step)));
      if (s->owner == kOwn || (s->space == Space::scratch && read)) continue;   // the engine's
      const bool entered = before.has(s->owner, events.start(id));
      if (entered && after.has(s->owner, events.end(id))) continue;
      verdict = {str("hazards: ", name(world, id), " touches memory of rank ", s->owner, ", which ",
                     entered ? "may have left" : "may not be there yet")};
    }
  });
  return verdict;
}

Verdict check_across(const World& world, const Partners& partners) {
  const Events events(world, partners);
  const Orderings orderings = events.orderings();
  std::vector<int> ends(events.count(), kNobody);
  int touching = 0;   // steps; the others only carry the order on
  for_steps(world, [&](StepId id) {
    if (world[std::size_t(id.rank)].steps[id.step].segments > 0) ends[events.end(id)] = touching++;
  });
  Reach reach(std::move(ends), touching);
  for (const auto& [from, to] : orderings) reach.add(from, to);
  Uses uses;
  for (const Schedule& schedule : world) collect(schedule, uses);
  const auto ended = [&](StepId x, StepId y) {
    return reach.has(reach.source_of(events.end(x)), events.start(y));
  };
  const Verdict conflicts =
      check(world, uses, [&](StepId x, StepId y) { return ended(x, y) || ended(y, x); });
  return conflicts ? check_presence(world, events, orderings) : conflicts;
}

}  // namespace

Verdict check_hazards(const World& world, const Partners& partners) {
  if (Verdict bad = check_edges(world); !bad) return bad;
  if (touches_peers(world)) return check_across(world, partners);
  for (const Schedule& schedule : world)
    if (Verdict bad = check_rank(world, schedule); !bad) return bad;
  return {};
}

}  // namespace paceline
