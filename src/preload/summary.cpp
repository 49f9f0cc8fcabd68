#include "summary.hpp"

#include <cstdio>
#include <string>

#include "base/options.hpp"
#include "base/str.hpp"

namespace paceline::preload {
namespace {

constexpr struct {
  Collective collective;
  const char* name;
} kRows[] = {
    {Collective::allreduce, "MPI_Allreduce"},
    {Collective::broadcast, "MPI_Bcast"},
    {Collective::reduce, "MPI_Reduce"},
    {Collective::reduce_scatter, "MPI_Reduce_scatter_block"},
    {Collective::allgather, "MPI_Allgather"},
    {Collective::barrier, "MPI_Barrier"},
};

// In the order of FallbackReason.
constexpr const char* kWhy[] = {
    "one rank",  "between groups", "PACELINE_PRELOAD", "not joined", "no data",
    "datatype",  "operation",      "over 2 GiB", "host is faster", "wrong arguments",
    "calls differed", "ULFM",
};
static_assert(sizeof kWhy / sizeof *kWhy == kFallbackReasons);

std::string line_of(const char* name, const CallStats& count) {
  std::uint64_t passed = 0;
  std::string why;
  for (std::size_t i = 0; i < count.passed.size(); ++i) {
    if (count.passed[i] == 0) continue;
    passed += count.passed[i];
    why += str(why.empty() ? " (" : ", ", kWhy[i], ": ", count.passed[i]);
  }
  return str("paceline: preload: ", name, ": ", count.served, " served, ",
             human_bytes(double(count.bytes)), "; ", passed, " passed", why, why.empty() ? "" : ")",
             "\n");
}

bool is_asked_for() {
  try {
    return text_of(Option::preload_summary) == "on";
  } catch (const std::exception&) {
    return false;  // it has been said when the first communicator was made
  }
}

}  // namespace

void print_summary(const Counts& counts) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0 || !is_asked_for()) return;
  std::string text;
  for (const auto& row : kRows)
    text += line_of(row.name, counts[static_cast<std::size_t>(row.collective)]);
  std::fputs(text.c_str(), stderr);
}

}  // namespace paceline::preload
