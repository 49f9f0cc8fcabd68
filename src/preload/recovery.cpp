#include "recovery.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace paceline::preload {
namespace {

// Reads the number of the call that differed: "broadcast #3: count differs ...".
bool read_number(std::string_view sentence, std::uint32_t& number) {
  const auto mark = sentence.find('#');
  if (mark == std::string_view::npos) return false;
  char* end = nullptr;
  const char* begin = sentence.data() + mark + 1;
  number = static_cast<std::uint32_t>(std::strtoul(begin, &end, 10));
  return end != begin;
}

bool is_after(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) > 0; }

// Knowledge of one rank about its calls.
struct Known {
  std::uint32_t ended;  // the last call that a rank has ended, or spoilt
  std::uint32_t now;    // the one that it is in
  bool is_reported;     // some rank has returned the error
};

// Returns the last call that has failed or ended on any rank. If no rank has returned the error
// yet, each returns it from the call that it is in.
std::uint32_t agree(MPI_Comm comm, std::uint32_t wrong, const Known& known) {
  int said[] = {static_cast<int>(known.ended - wrong), static_cast<int>(known.now - wrong),
                known.is_reported};
  PMPI_Allreduce(MPI_IN_PLACE, said, 3, MPI_INT, MPI_MAX, comm);
  return wrong + static_cast<std::uint32_t>(said[2] ? said[0] : said[1]);
}

}  // namespace

bool goes_on_by_host(CommState& state, MPI_Comm comm, const Error& error) {
  std::uint32_t wrong = 0;
  if (!state.communicator.valid() || !read_number(error.what(), wrong)) return false;
  const std::uint32_t now = state.calls;
  if (!is_after(now, wrong)) {
    state.has_reported = true;
    return false;
  }
  state.ended_by_others =
      agree(comm, wrong, {state.is_spoilt ? now : now - 1, now, state.has_reported});
  state.communicator = {};
  state.why = FallbackReason::differed;
  if (state.rank == 0)
    std::fprintf(stderr, "paceline: preload: %s Further calls on this communicator of %d ranks are "
                 "the host MPI's.\n", error.what(), state.ranks);
  return is_after(now, state.ended_by_others);
}

void check_not_ended(CommState& state) {
  if (state.why != FallbackReason::differed ||
      !is_after(state.ended_by_others, state.calls)) return;
  ++state.calls;
  fail(Fault::mismatch, "calls on this communicator differ between ranks, and another rank has "
       "ended this one. The host MPI takes those that no rank has ended.");
}

}  // namespace paceline::preload
