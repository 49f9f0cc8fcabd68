#include "transport/shm/stopped.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/str.hpp"

namespace paceline {
namespace {

constexpr std::chrono::milliseconds kLook{250};
// Most time that counts between two looks: the looking rank may have been stopped itself, as all
// ranks are by a Ctrl-Z to their launcher.
constexpr std::chrono::milliseconds kMostBetween{1000};

}  // namespace

// The state follows the program's name, which is in brackets and may itself hold brackets.
Halt halt_of(int process_id, const Freezers& freezers) {
  std::string line;
  std::getline(std::ifstream(str("/proc/", process_id, "/stat")), line, '\0');
  const std::size_t name_ends = line.rfind(')');
  if (name_ends == line.npos || name_ends + 2 >= line.size()) return Halt::none;
  const char state = line[name_ends + 2];
  if (state == 'T') return Halt::signal;
  const bool seems_to_wait = state == 'S' || state == 'D';   // as one that is frozen does
  return seems_to_wait && freezers.hold(process_id) ? Halt::freezer : Halt::none;
}

bool Stopped::is_due(Clock::time_point now) {
  if (limit_ms_ == 0 || now - looked_ < kLook) return false;
  since_ = std::min<Clock::duration>(now - looked_, kMostBetween);
  looked_ = now;
  return true;
}

bool Stopped::outlasts(int rank, int process_id) {
  Seen& seen = of_[std::size_t(rank)];
  const Halt before = std::exchange(seen.halt, halt_of(process_id, freezers_));
  const bool goes_on = before != Halt::none && seen.halt != Halt::none;
  seen.so_far = goes_on ? seen.so_far + since_ : Clock::duration{};
  const bool outlasts = seen.so_far >= std::chrono::milliseconds(limit_ms_);
  return outlasts && !std::exchange(seen.is_told, true);
}

std::string Stopped::why(int rank, int process_id) const {
  const bool frozen = of_[std::size_t(rank)].halt == Halt::freezer;
  return str("its process ", process_id, " has been ",
             frozen ? "frozen with its control group" : "stopped by a signal", " for ",
             limit_ms_ * 1e-3, " s (PACELINE_STOPPED_MS)");
}

}  // namespace paceline
