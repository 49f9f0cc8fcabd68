// Compares schedules and choices with tests/golden/: a line for each algorithm, and for each
// machine, layout and collective. Moving code changes no line; a commit that changes one says why.
// `./dev verify --golden` compares all of them, `--write` writes them anew.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/str.hpp"
#include "coll/registry.hpp"
#include "ir/schedule.hpp"
#include "model/machine.hpp"
#include "transport/shm/provision.hpp"
#include "tune/choose.hpp"
#include "verify/sweep.hpp"

namespace paceline {
namespace {

constexpr int kMostRanks = 9, kFewRanks = 5;   // where proofs of everything end, and the short form

bool is_set(const char* name) { return std::getenv(name) != nullptr; }

std::string path_of(const char* name) { return str(std::getenv("PACELINE_GOLDEN"), "/", name); }

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Checks each line by itself, so that all that differ show.
void compare_or_write(const char* name, const std::vector<std::string>& lines) {
  if (is_set("PACELINE_GOLDEN_WRITE")) {
    std::ofstream file(path_of(name));
    for (const std::string& line : lines) file << line << "\n";
    REQUIRE(file.good());
    return;
  }
  const std::vector<std::string> golden = lines_of(path_of(name));
  CHECK(golden.size() == lines.size());
  for (std::size_t i = 0; i < std::min(lines.size(), golden.size()); ++i)
    CHECK(lines[i] == golden[i]);
}

// Hash of the text of all worlds of an algorithm with a number of ranks.
class Worlds {
 public:
  Worlds(const Algorithm& algorithm, int most_ranks) {
    for (const Shape& shape : sweep(algorithm, most_ranks)) {
      add(describe(algorithm, shape));
      if (why_not(algorithm, problem_of(algorithm, shape, 0))) {
        add("rejected");
        continue;
      }
      ++count_;
      for (const Schedule& schedule : make_world(algorithm, shape)) add(print(schedule));
    }
  }
  std::string text() const { return str(count_, " ", hex(hash_)); }

 private:
  void add(std::string_view text) { hash_ = (hash_ ^ hash_of(text)) * 0x100000001b3u; }

  std::size_t count_ = 0;
  std::uint64_t hash_ = 0;
};

std::string schedules_line(const Algorithm& algorithm, int most_ranks) {
  return str(name_of(algorithm.collective), "/", algorithm.name, ", ", most_ranks, " ranks: ",
             Worlds(algorithm, most_ranks).text());
}

struct Layout {
  const char* name;
  std::vector<int> nodes;   // of each rank
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {"2", {0, 0}},
      {"3", {0, 0, 0}},
      {"8", std::vector<int>(8, 0)},
      {"16", std::vector<int>(16, 0)},
      {"2 x 1", {0, 1}},
      {"9 x 1", {0, 1, 2, 3, 4, 5, 6, 7, 8}},
      {"4 x 2", {0, 0, 1, 1, 2, 2, 3, 3}},
      {"3 and 1", {0, 0, 0, 1}},
  };
  return all;
}

Problem problem_on(const Layout& layout, Collective collective) {
  Problem problem;
  problem.collective = collective;
  problem.ranks = static_cast<int>(layout.nodes.size());
  problem.one_node = layout.nodes.back() == 0;
  problem.single_copy = problem.one_node;
  if (!problem.one_node) problem.nodes = layout.nodes;
  problem.node_staging = !problem.one_node;
  return problem;
}

std::string text_of(const Choice& choice) {
  const Cut& cut = choice.cut;
  std::string text(choice.algorithm->name);
  if (cut.segments > 1) text += str(" ", cut.segments, "s");
  if (cut.window > 1) text += str(" ", cut.window, "w");
  if (cut.knobs.radix > 0) text += str(" ", cut.knobs.radix, "r");
  if (cut.knobs.blocks > 0) text += str(" ", cut.knobs.blocks, "b");
  return text;
}

// Returns the choices for calls of eight sizes on a machine.
std::string choices_line(Machine machine, const Layout& layout, const Problem& problem) {
  constexpr std::size_t kStageBytes = 8u << 20;   // as PACELINE_STAGE_BYTES is by default
  constexpr std::size_t kKiB = 1u << 10, kMiB = 1u << 20;
  machine.ranks_per_node =
      static_cast<int>(std::ranges::count(layout.nodes, layout.nodes.front()));
  std::string text;
  for (std::size_t bytes : {std::size_t{8}, std::size_t{256}, 4 * kKiB, 32 * kKiB, 256 * kKiB,
                            kMiB, 8 * kMiB, 64 * kMiB}) {
    const std::size_t stage = stage_bytes(kStageBytes, std::max(machine.ranks_per_node, 2));
    const Choice choice = choose(problem, {.bytes = bytes, .machine = machine,
                                           .stage_bytes = stage});
    text += str(text.empty() ? "" : ", ", human_bytes(double(bytes)), " ", text_of(choice));
  }
  return text;
}

std::vector<std::string> all_choices() {
  std::vector<std::string> lines;
  for (const Machine& machine : known_machines())
    for (const Layout& layout : layouts()) {
      if (layout.nodes.back() == 0 && &machine != &known_machines().front()) continue;
      for (int c = 0; c < kCollectives; ++c) {
        Problem problem = problem_on(layout, static_cast<Collective>(c));
        const auto add = [&](const char* how) {
          const std::string on = problem.one_node ? "one node" : machine.name;
          lines.push_back(str(on, ", ", layout.name, ", ", name_of(problem.collective), how, ": ",
                              choices_line(machine, layout, problem)));
        };
        add("");
        if (problem.one_node) {
          problem.symmetric = true;
          add(" in symmetric memory");
          problem.symmetric = false;
        }
        if (problem.collective == Collective::barrier) continue;
        problem.late = {1};
        add(" with rank 1 late");
        if (problem.collective != Collective::allreduce &&
            problem.collective != Collective::reduce) continue;
        problem.late.clear(), problem.commutative = false;
        add(" in rank order");
        problem.commutative = true, problem.canonical = true;
        add(" canonical");
        problem.canonical = false, problem.late = {1}, problem.fast = true;
        add(" with rank 1 late, fast");
      }
    }
  return lines;
}

}  // namespace

TEST_CASE("golden: schedules") {
  REQUIRE(is_set("PACELINE_GOLDEN"));   // the folder, which ctest and ./dev verify --golden set
  std::vector<std::string> lines;
  const bool is_whole = is_set("PACELINE_LONG") || is_set("PACELINE_GOLDEN_WRITE");
  for (const Algorithm* algorithm : registry()) {
    lines.push_back(schedules_line(*algorithm, kFewRanks));
    if (is_whole) lines.push_back(schedules_line(*algorithm, kMostRanks));
  }
  if (is_whole) return compare_or_write("schedules", lines);
  // Every other line of the file is of few ranks.
  const std::vector<std::string> golden = lines_of(path_of("schedules"));
  REQUIRE(golden.size() == 2 * lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) CHECK(lines[i] == golden[2 * i]);
}

TEST_CASE("golden: choices") {
  REQUIRE(is_set("PACELINE_GOLDEN"));
  compare_or_write("choices", all_choices());
}

}  // namespace paceline
