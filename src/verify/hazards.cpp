#include "verify/hazards.hpp"

#include <map>
#include <tuple>

#include "base/str.hpp"
#include "ir/edges.hpp"

namespace paceline {
namespace {

// Which nodes reach which, over a graph whose nodes are numbered in topological order.
class Reach {
 public:
  explicit Reach(std::size_t nodes) : words_((nodes + 63) / 64), bits_(nodes * words_, 0) {}

  void add(std::size_t from, std::size_t to) {  // all edges into `from` must have been added before
    std::uint64_t* target = bits_.data() + to * words_;
    const std::uint64_t* source = bits_.data() + from * words_;
    for (std::size_t w = 0; w < words_; ++w) target[w] |= source[w];
    target[from / 64] |= std::uint64_t{1} << (from % 64);
  }
  bool has(std::size_t from, std::size_t to) const {
    return bits_[to * words_ + from / 64] >> (from % 64) & 1;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;   // row `to`: everything that reaches it
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
  Reach reach(schedule.steps.size());
  for (const auto& [from, to] : edges_of(schedule)) reach.add(from, to);   // sorted by `from`
  Uses uses;
  collect(schedule, uses);
  return check(world, uses, [&](StepId x, StepId y) {
    return reach.has(std::min(x.step, y.step), std::max(x.step, y.step));
  });
}

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

  // Calls relax(from, to) for every ordering, in a topological order of `from`.
  template <class Relax>
  void sweep(Relax&& relax) const {
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
        relax(at, to);
        if (--indegree[to] == 0) ready.push_back(to);
      }
    }
  }
  std::size_t count() const { return count_; }

 private:
  const World& world_;
  const Partners& partners_;
  std::vector<std::size_t> base_;
  std::size_t count_ = 0;
};

// A peer may touch a rank's memory only while that rank is in the collective: some step of its own
// must come before, and one after. Otherwise the caller may not have filled it, or uses it again.
Verdict check_presence(const World& world, const Events& events, const Reach& reach) {
  for (const Schedule& schedule : world)
    for (std::uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const StepId id{schedule.problem.rank, i};
      const Step& step = schedule.steps[i];
      for (const Segment* s = schedule.begin(step); s != schedule.end(step); ++s) {
        if (s->owner == kOwn) continue;
        bool entered = false, stays = false;
        const Schedule& owner = world[std::size_t(s->owner)];
        for (std::uint32_t k = 0; k < owner.steps.size(); ++k) {
          entered = entered || reach.has(events.start({s->owner, k}), events.start(id));
          stays = stays || reach.has(events.end(id), events.end({s->owner, k}));
        }
        if (!entered || !stays)
          return {str("hazards: ", name(world, id), " touches memory of rank ", s->owner,
                      ", which ", entered ? "may have left" : "may not be there yet")};
      }
    }
  return {};
}

Verdict check_across(const World& world, const Partners& partners) {
  const Events events(world, partners);
  Reach reach(events.count());
  events.sweep([&](std::size_t from, std::size_t to) { reach.add(from, to); });
  Uses uses;
  for (const Schedule& schedule : world) collect(schedule, uses);
  const Verdict conflicts = check(world, uses, [&](StepId x, StepId y) {
    return reach.has(events.end(x), events.start(y)) || reach.has(events.end(y), events.start(x));
  });
  return conflicts ? check_presence(world, events, reach) : conflicts;
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
