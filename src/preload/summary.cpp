#include "summary.hpp"

#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "base/str.hpp"
#include "stub.h"

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
    "calls differed", "ULFM", "first calls",
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

const unsigned long* counters = nullptr;   // of the stub, by call

#ifdef OPEN_MPI
constexpr bool kSeesFortran = false;   // its Fortran library calls PMPI_*
#else
constexpr bool kSeesFortran = true;    // its Fortran library calls MPI_*, which the stub counts
#endif

std::uint64_t times(std::initializer_list<int> calls) {
  std::uint64_t sum = 0;
  for (int call : calls) sum += counters ? __atomic_load_n(&counters[call], __ATOMIC_RELAXED) : 0;
  return sum;
}

struct HostCalls {   // of one name, which the drop-in never serves
  const char* name;
  std::uint64_t in_c, in_fortran;
};

std::vector<HostCalls> host_calls() {
  std::vector<HostCalls> found;
#define OWN_SERVED(name) 0
#define OWN_WITHOUT_COUNTS(name) 0
#define OWN_HOST(name) times({PACELINE_STUB_##name})
#define IN_FORTRAN(name) \
  times({PACELINE_STUB_##name##_f, PACELINE_STUB_##name##_f08, PACELINE_STUB_##name##_f08ts})
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes)                    \
  found.push_back({"MPI_" #name, OWN_##kind(name) + times({PACELINE_STUB_##name##_c}),          \
                   IN_FORTRAN(name)});                                                          \
  found.push_back({"MPI_" #nonblocking,                                                         \
                   times({PACELINE_STUB_I##name, PACELINE_STUB_I##name##_c}),                   \
                   IN_FORTRAN(I##name)});                                                       \
  found.push_back({"MPI_" #name "_init",                                                        \
                   times({PACELINE_STUB_##name##_init, PACELINE_STUB_##name##_init_c}),         \
                   IN_FORTRAN(name##_init)});
#include "mpi_calls.def"
  return found;
}

bool is_asked_for() {
  try {
    return text_of(Option::preload_summary) == "on";
  } catch (const std::exception&) {
    return false;  // it was printed when the first communicator was made
  }
}

}  // namespace

void count_host_calls(const unsigned long* of_the_stub) { counters = of_the_stub; }

void print_summary(const Counts& counts) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  const bool all = is_asked_for();
  std::string text;
  std::uint64_t served = 0, unseen = 0;
  for (const auto& row : kRows) {
    const CallStats& count = counts[static_cast<std::size_t>(row.collective)];
    served += count.served;
    if (all) text += line_of(row.name, count);
  }
  for (const HostCalls& own : host_calls()) {
    const std::uint64_t past = kSeesFortran ? 0 : own.in_fortran;
    unseen += past;
    if (all && own.in_c + past > 0)
      text += str("paceline: preload: ", own.name, ": ", own.in_c + past, ", the MPI's own\n");
  }
  if (unseen > 0 && served == 0)
    text += str("paceline: preload: nothing was served: the program made ", unseen, " calls in "
                "Fortran, and Open MPI's Fortran library passes the drop-in by.\n");
  std::fputs(text.c_str(), stderr);
}

}  // namespace paceline::preload
