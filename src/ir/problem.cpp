#include "ir/problem.hpp"

#include <array>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace paceline {
namespace {

constexpr std::array<std::string_view, kCollectives> kNames{
    "allreduce", "broadcast", "reduce",  "reduce_scatter", "allgather",
    "alltoall",  "gather",    "scatter", "barrier"};

}  // namespace

std::string_view name_of(Collective collective) {
  return kNames[static_cast<std::size_t>(collective)];
}

std::string_view name_of(Numbers numbers) {
  static constexpr std::array<std::string_view, 3> kNames{"fast", "stable", "canonical"};
  return kNames[static_cast<std::size_t>(numbers)];
}

std::string_view name_of(Access access) {
  static constexpr std::array<std::string_view, 5> kNames{"messages", "nodes", "staging",
                                                          "symmetric", "single_copy"};
  return kNames[static_cast<std::size_t>(access)];
}

Collective collective_from(std::string_view name) {
  std::string known;
  for (int i = 0; i < kCollectives; ++i) {
    if (kNames[static_cast<std::size_t>(i)] == name) return static_cast<Collective>(i);
    known += str(i ? ", " : "", kNames[static_cast<std::size_t>(i)]);
  }
  fail(Fault::usage, "collective '", name, "' is not known; use one of: ", known, ".",
       did_you_mean(name, known));
}

void check_late(const Problem& problem) {
  std::vector<bool> named(static_cast<std::size_t>(problem.ranks));
  for (int rank : problem.late) {
    if (rank < 0 || rank >= problem.ranks)
      fail(Fault::usage, name_of(problem.collective), ": rank ", rank, " is named late among ",
           problem.ranks, " ranks; late ranks are 0 to ", problem.ranks - 1, ".");
    if (named[static_cast<std::size_t>(rank)])
      fail(Fault::usage, name_of(problem.collective), ": rank ", rank,
           " is named late twice; name each late rank once, the latest last.");
    named[static_cast<std::size_t>(rank)] = true;
  }
}

bool Problem::reaches(Access access) const {
  switch (access) {
    case Access::messages:
    case Access::nodes: return true;
    case Access::staging: return one_node && (!uneven || is_personal(collective));
    case Access::symmetric: return symmetric && !uneven;
    case Access::single_copy: return single_copy && !uneven;
  }
  return false;
}

bool stages_in_nodes(const Problem& problem) { return problem.node_staging && !problem.uneven; }

int units_of(const Problem& problem) {
  switch (problem.collective) {
    case Collective::allreduce:
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::barrier: return 1;
    default: return problem.ranks;
  }
}

bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::gather || collective == Collective::scatter;
}

bool is_personal(Collective collective) {
  return collective == Collective::gather || collective == Collective::scatter ||
         collective == Collective::alltoall;
}

bool has_op(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

}  // namespace paceline
