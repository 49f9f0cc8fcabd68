#include "ir/problem.hpp"

#include <array>

#include "base/error.hpp"

namespace paceline {
namespace {

constexpr std::array<std::string_view, kCollectives> kNames{
    "allreduce", "broadcast", "reduce",  "reduce_scatter", "allgather",
    "alltoall",  "gather",    "scatter", "barrier"};

}  // namespace

std::string_view name_of(Collective collective) {
  return kNames[static_cast<std::size_t>(collective)];
}

Collective collective_from(std::string_view name) {
  std::string known;
  for (int i = 0; i < kCollectives; ++i) {
    if (kNames[static_cast<std::size_t>(i)] == name) return static_cast<Collective>(i);
    known += str(i ? ", " : "", kNames[static_cast<std::size_t>(i)]);
  }
  fail(Fault::usage, "collective '", name, "' is not known; use one of: ", known, ".");
}

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

bool has_op(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

}  // namespace paceline
