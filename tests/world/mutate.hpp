// Broken worlds: each function breaks a proven one in one way, at every possible place.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/str.hpp"
#include "ir/edges.hpp"
#include "verify/verify.hpp"

namespace paceline::test {

struct Mutant {
  std::string what;    // the break, with its rank and step
  World world;
};
using Mutants = std::vector<Mutant>;

inline std::string at(int rank, std::uint32_t step, const Schedule& s) {
  return str(" at rank ", rank, " step ", step, " (", name_of(s.steps[step].kind), ")");
}

// The world with `change(schedule, step)` done to one step of one rank. The edges are derived anew,
// so that the mutant has only the mistake that it is named after.
template <class Change>
World changed(const World& world, int rank, std::uint32_t step, Change&& change) {
  World out = world;
  Schedule& s = out[std::size_t(rank)];
  change(s, step);
  derive_slots(s);
  derive_edges(s);
  return out;
}

inline void erase(Schedule& s, std::uint32_t step) { s.steps.erase(s.steps.begin() + step); }

inline void repeat(Schedule& s, std::uint32_t step) {
  const Step again = s.steps[step];
  s.steps.insert(s.steps.begin() + step, again);
}

// A mutant for every step for which `fits(schedule, step)`.
template <class Fits, class Change>
Mutants everywhere(const World& world, const char* name, Fits&& fits, Change&& change) {
  Mutants out;
  for (int r = 0; r < static_cast<int>(world.size()); ++r) {
    const Schedule& s = world[std::size_t(r)];
    for (std::uint32_t i = 0; i < s.steps.size(); ++i)
      if (fits(s, s.steps[i])) out.push_back({name + at(r, i, s), changed(world, r, i, change)});
  }
  return out;
}

inline auto is(Kind kind) {
  return [kind](const Schedule&, const Step& step) { return step.kind == kind; };
}

// The wait that a signal wakes, or the receive of a send.
inline std::uint32_t other_end(const World& world, int rank, const Step& step, Kind arrival) {
  const std::vector<Step>& steps = world[std::size_t(step.peer)].steps;
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const Step& x) {
    return x.kind == arrival && x.peer == rank && x.seq == step.seq && x.lane == step.lane;
  });
  return static_cast<std::uint32_t>(found - steps.begin());
}

// True if the rank signals a peer after the signals that this one belongs to.
inline bool signals_later(const Schedule& s, std::uint32_t signal) {
  std::uint32_t i = signal;
  while (i < s.steps.size() && s.steps[i].kind == Kind::signal) ++i;
  return std::any_of(s.steps.begin() + i, s.steps.end(),
                     [](const Step& step) { return step.kind == Kind::signal; });
}

// A signal without its wait is a mismatch; without both, a rank goes on too early. `all`: also the
// last signals of a rank, some of which nothing later in the call needs.
inline Mutants lost_signals_of(const World& world, bool all) {
  Mutants out = everywhere(world, "lost signal", is(Kind::signal), erase);
  for (int r = 0; r < static_cast<int>(world.size()); ++r) {
    const Schedule& s = world[std::size_t(r)];
    for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
      if (s.steps[i].kind != Kind::signal) continue;
      if (!all && !signals_later(s, i)) continue;
      const int peer = s.steps[i].peer;
      const std::uint32_t wait = other_end(world, r, s.steps[i], Kind::wait);
      out.push_back({"lost signal and wait" + at(r, i, s),
                     changed(changed(world, r, i, erase), peer, wait, erase)});
    }
  }
  return out;
}

inline Mutants lost_signals(const World& world) { return lost_signals_of(world, true); }

// Independent of verify's own: blocks as a set, paths by search. A slot counts as one cell.
using Footprint = std::set<std::tuple<Space, int, int, int>>;

inline Footprint footprint(const Schedule& s, const Step& step, bool only_writes) {
  Footprint out;
  for (std::uint32_t k = 0; k < step.segments; ++k) {
    const Segment& segment = s.begin(step)[k];
    if (segment.space == Space::incoming || (only_writes && !writes(step.kind, k))) continue;
    const bool scratch = segment.space == Space::scratch;
    for (int b = segment.first; b < segment.first + segment.blocks; ++b)
      out.insert({segment.space, segment.owner, segment.slot, scratch ? 0 : b});
  }
  return out;
}

inline bool meet_in(const Footprint& a, const Footprint& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& cell) { return b.count(cell) > 0; });
}

inline bool conflict(const Schedule& s, std::uint32_t x, std::uint32_t y) {
  const Step &a = s.steps[x], &b = s.steps[y];
  return meet_in(footprint(s, a, true), footprint(s, b, false)) ||
         meet_in(footprint(s, a, false), footprint(s, b, true));
}

inline bool path(const Schedule& s, std::uint32_t from, std::uint32_t to) {
  std::vector<std::uint32_t> open{from};
  std::set<std::uint32_t> seen;
  while (!open.empty()) {
    const std::uint32_t i = open.back();
    open.pop_back();
    if (i == to) return true;
    if (!seen.insert(i).second) continue;
    for (std::uint32_t e = s.edge_begin[i]; e < s.edge_begin[i + 1]; ++e)
      open.push_back(s.edges[e]);
  }
  return false;
}

// Drops each edge without which two conflicting steps have no order. Leaves edges that a longer
// path replaces, or that only a window or a signal requires.
inline Mutants lost_edges(const World& world) {
  Mutants out;
  for (int r = 0; r < static_cast<int>(world.size()); ++r) {
    const Schedule& s = world[std::size_t(r)];
    for (const Edge& edge : edges_of(s)) {
      if (!conflict(s, edge.first, edge.second)) continue;
      std::vector<Edge> rest = edges_of(s);
      rest.erase(std::find(rest.begin(), rest.end(), edge));
      World mutant = world;
      set_edges(mutant[std::size_t(r)], std::move(rest));
      if (path(mutant[std::size_t(r)], edge.first, edge.second)) continue;
      out.push_back({str("lost edge ", edge.first, " -> ", edge.second, at(r, edge.second, s)),
                     std::move(mutant)});
    }
  }
  return out;
}

// Pipelines in which a copy no longer waits for the copy whose lane it takes over, on ranks where
// it takes over scratch as well: elsewhere that is no mistake.
inline Mutants lost_windows(const World& world) {
  Mutants out;
  for (int r = 0; r < static_cast<int>(world.size()); ++r) {
    const Schedule& s = world[std::size_t(r)];
    const auto steps = static_cast<std::uint32_t>(s.steps.size()) / std::uint32_t(s.pipeline);
    if (std::none_of(s.segments.begin(), s.segments.end(),
                     [](const Segment& x) { return x.space == Space::scratch; }))
      continue;
    for (int copy = s.lanes; copy < s.pipeline; ++copy) {
      const std::uint32_t begin = std::uint32_t(copy) * steps;
      std::vector<Edge> rest = edges_of(s);
      std::erase_if(rest, [&](const Edge& e) {
        return e.first < begin && e.second >= begin && e.second < begin + steps;
      });
      World mutant = world;
      set_edges(mutant[std::size_t(r)], std::move(rest));
      out.push_back({"lost window" + at(r, begin, s), std::move(mutant)});
    }
  }
  return out;
}

}  // namespace paceline::test
