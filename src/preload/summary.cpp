#include "summary.hpp"

#include <cstdio>
#include <initializer_list>
#include <string>

#include "base/options.hpp"
#include "base/str.hpp"
#include "stub.h"

namespace paceline::preload {
namespace {

// In the order of FallbackReason.
constexpr const char* kWhy[] = {
    "one rank",  "between groups", "PACELINE_PRELOAD", "not joined", "no data",
    "datatype",  "operation",      "host is faster", "wrong arguments", "calls differed",
    "ULFM",      "first calls",    "no thread may drive them",
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
  if (count.served + passed == 0) return {};
  return str("paceline: preload: ", name, ": ", count.served, " served, ",
             human_bytes(double(count.bytes)), "; ", passed, " passed", why, why.empty() ? "" : ")",
             "\n");
}

const unsigned long* counters = nullptr;   // of the stub, by call

std::uint64_t times(std::initializer_list<int> calls) {
  std::uint64_t sum = 0;
  for (int call : calls) sum += counters ? __atomic_load_n(&counters[call], __ATOMIC_RELAXED) : 0;
  return sum;
}

// Adds a line if the host has made such calls, which the drop-in never serves. In MPICH's family a
// call in Fortran is one in C as well, but for those of mpi_f08 without buffers.
void add_hosts(std::string& text, const char* name, std::uint64_t in_c, std::uint64_t in_fortran) {
  if (const std::uint64_t all = in_c + (kFortranCallsC ? 0 : in_fortran); all > 0)
    text += str("paceline: preload: ", name, ": ", all, ", the MPI's own\n");
}

std::string lines_of(const Counts& counts) {
  std::string text;
  const auto serves = [&](const char* name, Row row) {
    text += line_of(name, counts[static_cast<std::size_t>(row)]);
  };
#define IN_FORTRAN(name) \
  times({PACELINE_STUB_##name##_f, PACELINE_STUB_##name##_f08, PACELINE_STUB_##name##_f08ts})
#define HOSTS(name, c) \
  add_hosts(text, "MPI_" #name, times({PACELINE_STUB_##c, PACELINE_STUB_##c##_c}), IN_FORTRAN(c));
#define LINES_SERVED(name, nonblocking)      \
  serves("MPI_" #name, Row::name);           \
  serves("MPI_" #nonblocking, Row::I##name); \
  serves("MPI_" #name "_init", Row::name##_init);
#define LINES_WITHOUT_COUNTS LINES_SERVED
#define LINES_HOST(name, nonblocking) \
  HOSTS(name, name) HOSTS(nonblocking, I##name) HOSTS(name##_init, name##_init)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  LINES_##kind(name, nonblocking)
#include "mpi_calls.def"
  return text;
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
  if (rank == 0 && is_asked_for()) std::fputs(lines_of(counts).c_str(), stderr);
}

}  // namespace paceline::preload
