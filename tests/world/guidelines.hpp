// The performance guidelines G1 to G7 as functions of any choice: simulated times of the
// collectives that it chooses, and by how much the worst case misses each guideline.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/str.hpp"
#include "ir/lower.hpp"
#include "simulate/simulate.hpp"
#include "tune/choose.hpp"

namespace paceline::test {

using enum Collective;

inline constexpr Collective kWithData[] = {allreduce, broadcast, reduce,  reduce_scatter,
                                           allgather, alltoall,  gather, scatter};

using Chooser = std::function<Choice(const Problem&, const ChoiceInputs&)>;

// A call, with the bytes of the whole message.
struct Setting {
  Collective collective;
  int ranks;
  std::size_t bytes;
  auto operator<=>(const Setting&) const = default;
};

inline std::string describe(const Setting& s) {
  return str(name_of(s.collective), " of ", human_bytes(double(s.bytes)), " on ", s.ranks);
}

// Simulated seconds of the choices; each setting is simulated once.
class Times {
 public:
  Times(Machine machine, Chooser chooser)
      : machine_(std::move(machine)), chooser_(std::move(chooser)) {}

  double of(const Setting& s) {
    const auto [known, is_new] = seconds_.try_emplace(s);
    if (is_new) known->second = simulated(s, chosen(s));
    return known->second;
  }

  // Returns the seconds that the choice for `s` takes for a message of `bytes`.
  double start_up(const Setting& s, std::size_t bytes) const {
    Setting shorter = s;
    shorter.bytes = bytes;
    return simulated(shorter, chosen(s));
  }

  std::string choice(const Setting& s) {
    const Choice c = chosen(s);
    const int segments = c.cut.segments, blocks = c.cut.knobs.blocks;
    return str(c.algorithm->name, segments > 1 ? str(" in ", segments, " segments") : "",
               blocks > 1 ? str(" in ", blocks, " blocks") : "");
  }

 private:
  static Problem problem_of(const Setting& s) {
    Problem p;
    p.collective = s.collective;
    p.ranks = s.ranks;
    return p;
  }
  // Bytes of a unit: the message is at least `bytes` long.
  static std::size_t unit_of(const Setting& s) {
    const auto units = static_cast<std::size_t>(units_of(problem_of(s)));
    return s.collective == barrier ? 0 : (s.bytes + units - 1) / units;
  }
  Choice chosen(const Setting& s) const {
    const Problem p = problem_of(s);
    return chooser_(p, {unit_of(s) * static_cast<std::size_t>(units_of(p)), machine_});
  }

  double simulated(const Setting& s, const Choice& c) const {
    std::vector<Schedule> world;
    for (Problem p = problem_of(s); p.rank < s.ranks; ++p.rank)
      world.push_back(lower(*c.algorithm, p, c.cut));
    return simulate(world, unit_of(s), 1, machine_).span_s();
  }

  Machine machine_;
  Chooser chooser_;
  std::map<Setting, double> seconds_;
};

struct Grid {
  std::vector<int> ranks;
  std::vector<std::size_t> bytes;
};

// Worst case of a guideline: the greatest ratio of its left side to its right side, and its
// setting.
struct Worst {
  double ratio = 0;
  std::string where;
};
using Report = std::map<std::string, Worst>;

inline void note(Report& report, const std::string& rule, double left, double right,
                 const std::function<std::string()>& where) {
  Worst& worst = report[rule];
  if (left > right * worst.ratio) worst = {left / right, where()};
}

// G1: more bytes do not take less time.
inline void check_monotone(Times& t, const Grid& grid, Report& report) {
  for (Collective c : kWithData)
    for (int p : grid.ranks)
      for (std::size_t n : grid.bytes)
        for (std::size_t more : grid.bytes)
          if (more > n)
            note(report, str("G1 ", name_of(c)), t.of({c, p, n}), t.of({c, p, more}), [&] {
              return str(describe(Setting{c, p, n}), " (", t.choice({c, p, n}), ") against ",
                         human_bytes(double(more)), " (", t.choice({c, p, more}), ")");
            });
}

// G2: one call does not take longer than k calls on a k-th each; and those not longer than it plus
// k - 1 times its start-up.
inline void check_split(Times& t, const Grid& grid, Report& report) {
  for (Collective c : kWithData)
    for (int p : grid.ranks)
      for (std::size_t n : grid.bytes) {
        const Setting whole{c, p, n};
        const double start_up = t.start_up(whole, grid.bytes.front());
        for (std::size_t part : grid.bytes) {
          if (part >= n || n % part != 0) continue;
          const auto where = [&] {
            return str(describe(whole), " (", t.choice(whole), ") and ", human_bytes(double(part)),
                       " (", t.choice({c, p, part}), ")");
          };
          const double calls = double(n / part), chained = calls * t.of({c, p, part});
          note(report, str("G2 ", name_of(c)), t.of(whole), chained, where);
          note(report, str("G2 chained ", name_of(c)), chained,
               t.of(whole) + (calls - 1) * start_up, where);
        }
      }
}

// G3, G4, G5: a collective does not take longer than others that do the same together.
struct Substitute {
  const char* rule;
  Collective collective;
  std::vector<Collective> others;
};

inline void check_substitutes(Times& t, const Grid& grid, Report& report) {
  static const Substitute kSubstitutes[] = {
      {"G3 allreduce <= reduce + broadcast", allreduce, {reduce, broadcast}},
      {"G3 allreduce <= reduce_scatter + allgather", allreduce, {reduce_scatter, allgather}},
      {"G4 reduce <= allreduce", reduce, {allreduce}},
      {"G4 broadcast <= scatter + allgather", broadcast, {scatter, allgather}},
      {"G4 reduce <= reduce_scatter + gather", reduce, {reduce_scatter, gather}},
      {"G5 reduce_scatter <= reduce + scatter", reduce_scatter, {reduce, scatter}},
      {"G5 allgather <= gather + broadcast", allgather, {gather, broadcast}},
      {"G5 allgather <= alltoall", allgather, {alltoall}},
      {"G5 allgather <= allreduce", allgather, {allreduce}},
      {"G5 gather <= allgather", gather, {allgather}},
      {"G5 scatter <= broadcast", scatter, {broadcast}}};
  for (const Substitute& s : kSubstitutes)
    for (int p : grid.ranks)
      for (std::size_t n : grid.bytes) {
        double others = 0;
        for (Collective c : s.others) others += t.of({c, p, n});
        note(report, s.rule, t.of({s.collective, p, n}), others, [&] {
          std::string text = str(describe(Setting{s.collective, p, n}), " (",
                                 t.choice({s.collective, p, n}), ") against");
          for (Collective c : s.others) text += str(" ", name_of(c), " ", t.choice({c, p, n}));
          return text;
        });
      }
}

// G6: a barrier does not take longer than a small allreduce.
inline void check_barrier(Times& t, const Grid& grid, Report& report) {
  for (int p : grid.ranks)
    note(report, "G6 barrier <= allreduce(4 B)", t.of({barrier, p, 0}), t.of({allreduce, p, 4}),
         [&] { return str(p, " ranks"); });
}

// True if groups of two and three cover this many ranks in as few messages as pairs could.
inline bool is_smooth(int ranks) {
  int messages = 0, rest = ranks;
  for (int factor : {2, 3})
    for (; rest % factor == 0; rest /= factor) messages += factor - 1;
  return rest == 1 && messages <= std::ceil(std::log2(ranks));
}

// G7: more ranks do not take less time. A short allreduce that gives all ranks the same bits takes
// one round more, or as much in bytes, if their number is not smooth.
inline void check_ranks(Times& t, const Grid& grid, Report& report) {
  constexpr std::size_t kShort = 32u << 10;
  for (Collective c : kWithData)
    for (std::size_t n : grid.bytes)
      for (int p : grid.ranks) {
        const bool folds = c == allreduce && n <= kShort && !is_smooth(p);
        const double rounds = std::ceil(std::log2(p)), most = folds ? 1 + 1 / rounds : 1;
        for (int more : grid.ranks)
          if (more > p)
            note(report, str("G7 ", name_of(c), folds ? ", folding" : ""), t.of({c, p, n}),
                 most * t.of({c, more, n}), [&] {
                   return str(describe(Setting{c, p, n}), " (", t.choice({c, p, n}), ") against ",
                              more, " (", t.choice({c, more, n}), ")");
                 });
      }
}

inline Report check_all(Times& t, const Grid& grid) {
  Report report;
  for (auto check : {check_monotone, check_split, check_substitutes, check_barrier, check_ranks})
    check(t, grid, report);
  return report;
}

}  // namespace paceline::test
