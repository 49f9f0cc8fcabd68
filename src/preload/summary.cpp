#include "summary.hpp"

#include <chrono>
#include <cstdio>
#include <initializer_list>
#include <iomanip>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>

#include "base/options.hpp"
#include "base/str.hpp"
#include "stub.h"

namespace paceline::preload {
namespace {

// By FallbackReason: its text, and what would change it, if anything can.
struct PassReason {
  const char* text;
  const char* remedy;
};
constexpr PassReason kReasons[] = {
    {"one rank", nullptr},
    {"between groups", nullptr},
    {"PACELINE_PRELOAD", "unset PACELINE_PRELOAD, which leaves these calls to the MPI."},
    {"not joined", "correct the cause that an earlier line of Paceline names."},
    {"no data", nullptr},
    {"datatype", "call MPI_Allreduce, not MPI_Iallreduce, with this datatype."},
    {"operation", "call MPI_Allreduce, not MPI_Iallreduce, with this operation."},
    {"wrong arguments", nullptr},
    {"calls differed", "correct the program: its ranks made different calls."},
    {"ULFM", nullptr},
    {"first calls",
     "call a communicator more than twice, and MPI_COMM_WORLD first with a blocking call."},
    {"no thread may drive them", "ask MPI_Init_thread for MPI_THREAD_MULTIPLE, and leave\n"
     "PACELINE_PROGRESS at its default."},
};
static_assert(std::size(kReasons) == kFallbackReasons);

constexpr const char* kNames[] = {
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  "MPI_" #name, "MPI_" #nonblocking, "MPI_" #name "_init",
#include "mpi_calls.def"
};

struct Share {
  std::uint64_t calls = 0, bytes = 0;
  double seconds = 0;
};

struct Tally {
  std::mutex mutex;
  std::map<std::pair<Row, std::string>, Share> served;   // by algorithm
  std::map<std::pair<Row, FallbackReason>, Share> passed;
  const unsigned long* counters = nullptr;   // of the stub, by call

  // Never destroyed: MPI may end while the process exits.
  static Tally& get() {
    static Tally* const one = new Tally;
    return *one;
  }
};

thread_local FallbackReason latest{};

std::string human_time(double seconds) {
  constexpr double kMilli = 1e-3;
  std::ostringstream out;
  out << std::fixed << std::setprecision(3);
  seconds < 1 ? out << seconds / kMilli << " ms" : out << seconds << " s";
  return out.str();
}

template <class Calls>
std::string row_of(const std::string& name, const Calls& calls, const std::string& bytes,
                   const std::string& time, const std::string& more) {
  std::ostringstream out;
  out << std::left << std::setw(29) << name << std::right << std::setw(10) << calls
      << std::setw(12) << bytes << std::setw(13) << time << "   " << more << '\n';
  return out.str();
}

std::string head_of(const char* title, const char* bytes, const char* more) {
  return row_of(title, "calls", bytes, "time", more);
}

std::string line_of(const std::string& name, std::uint64_t calls, const std::string& bytes,
                    const std::string& time, const std::string& more) {
  return row_of("  " + name, calls, bytes, time, more);
}

std::uint64_t times(std::initializer_list<int> calls) {
  const unsigned long* const counters = Tally::get().counters;
  std::uint64_t sum = 0;
  for (int call : calls) sum += counters ? __atomic_load_n(&counters[call], __ATOMIC_RELAXED) : 0;
  return sum;
}

// Adds a line if the host has made such calls, which the drop-in never serves. In MPICH's family a
// call in Fortran is one in C as well, but for those of mpi_f08 without buffers.
void add_hosts(std::string& text, const char* name, std::uint64_t in_c, std::uint64_t in_fortran) {
  if (const std::uint64_t all = in_c + (kFortranCallsC ? 0 : in_fortran); all > 0)
    text += line_of(name, all, "", "", "never served");
}

std::string lines_of_hosts() {
  std::string text;
#define IN_FORTRAN(name) \
  times({PACELINE_STUB_##name##_f, PACELINE_STUB_##name##_f08, PACELINE_STUB_##name##_f08ts})
#define HOSTS(name, c) \
  add_hosts(text, "MPI_" #name, times({PACELINE_STUB_##c, PACELINE_STUB_##c##_c}), IN_FORTRAN(c));
#define LINES_SERVED(name, nonblocking)
#define LINES_WITHOUT_COUNTS LINES_SERVED
#define LINES_HOST(name, nonblocking) \
  HOSTS(name, name) HOSTS(nonblocking, I##name) HOSTS(name##_init, name##_init)
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) \
  LINES_##kind(name, nonblocking)
#include "mpi_calls.def"
  return text;
}

// Returns the remedy for the reason that has cost most of the host's time; null if there is none.
const char* best_remedy(const Tally& all) {
  std::map<FallbackReason, double> seconds;
  for (const auto& [key, share] : all.passed) seconds[key.second] += share.seconds;
  const char* best = nullptr;
  double most = -1;
  for (const auto& [why, time] : seconds) {
    const char* const remedy = kReasons[static_cast<std::size_t>(why)].remedy;
    if (remedy && time > most) best = remedy, most = time;
  }
  return best;
}

std::string screen_of(const Tally& all, int ranks) {
  std::string served, passed = lines_of_hosts();
  for (const auto& [key, share] : all.served)
    served += line_of(kNames[static_cast<std::size_t>(key.first)], share.calls,
                      human_bytes(double(share.bytes)), human_time(share.seconds), key.second);
  for (const auto& [key, share] : all.passed)
    passed += line_of(kNames[static_cast<std::size_t>(key.first)], share.calls, "",
                      human_time(share.seconds),
                      kReasons[static_cast<std::size_t>(key.second)].text);
  const char* const remedy = best_remedy(all);
  const auto part = [](const std::string& head, const std::string& lines) {
    return lines.empty() ? "" : head + lines;
  };
  return str(
      "paceline: the collectives of rank 0 of ", ranks, "\n",
      part(head_of("by Paceline", "bytes", "algorithm"), served),
      part(head_of("by the MPI", "", "reason"), passed),
      remedy ? str("To change that, ", remedy, "\n") : "");
}

}  // namespace

void begin_summary(const unsigned long* counters) {
  Tally::get().counters = counters;
  try {
    is_summarised = text_of(Option::preload_summary) == "on";
  } catch (const std::exception&) {
    // Joining says that the option is wrong.
  }
}

double summary_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void count_served(Row row, const std::string& algorithm, std::size_t bytes, double began) {
  const double seconds = summary_clock() - began;
  Tally& all = Tally::get();
  const std::lock_guard lock(all.mutex);
  Share& share = all.served[{row, algorithm}];
  ++share.calls;
  share.bytes += bytes;
  share.seconds += seconds;
}

void count_passed(Row row, FallbackReason why) {
  if (!is_summarised) return;
  latest = why;
  Tally& all = Tally::get();
  const std::lock_guard lock(all.mutex);
  ++all.passed[{row, why}].calls;
}

void add_host_time(Row row, double seconds) {
  Tally& all = Tally::get();
  const std::lock_guard lock(all.mutex);
  all.passed[{row, latest}].seconds += seconds;
}

void print_summary() {
  if (!is_summarised) return;
  int rank = 0, ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank == 0) std::fputs(screen_of(Tally::get(), ranks).c_str(), stderr);
}

}  // namespace paceline::preload
