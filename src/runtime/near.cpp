// The part of the session that looks after calls that send nothing, of ranks that share memory.
#include <algorithm>
#include <cstring>

#include "runtime/cpus.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/session.hpp"

namespace paceline {
namespace {

// A call that sends nothing looks so often for its peers before it waits like any other. Where
// there are more ranks than processors it lets others run in between.
constexpr int kLooks = 1000, kLooksCrowded = 200, kLooksBeforeYield = 2;

}  // namespace

// With the lock held. A call that sends nothing, while nothing else is under way, needs no
// book-keeping unless it has to wait for long. Whether it was such a call, which may be under way.
bool Session::run_through(const std::shared_ptr<Flight>& flight, const void* input, void* output,
                          const Fingerprint& fingerprint) {
  if (!flight->operation->is_straight() || !flying_.empty()) return false;
  launch(*flight, input, output, fingerprint);
  Operation& operation = *flight->operation;
  const int most = crowded_ ? kLooksCrowded : kLooks;
  Yields yields;
  for (int looks = 0; looks < most && !operation.stranger(); ++looks) {
    if (operation.advance(*transport_)) {
      looks = 0;
      yields.reset();
    }
    if (operation.done()) {
      land(*flight);
      return true;
    }
    if (!crowded_) pause();
    else if (looks >= kLooksBeforeYield && !yields.again()) break;
  }
  enlist(flight);
  return true;
}

bool Session::run_again(RecentCalls& recent, const Asked& asked) {
  check_owner();
  std::shared_ptr<Flight> flight;
  {
    const std::lock_guard lock(mutex_);
    const RecentCalls::Entry* entry = recent.find(asked);
    if (!entry || entry->flight->operation->under_way()) return false;
    if (!run_through(entry->flight, asked.call.input, asked.call.output, entry->fingerprint))
      return false;
    if (entry->flight->operation->done()) return true;
    flight = entry->flight;
  }
  wait_on(*flight);
  return true;
}

void Session::remember(RecentCalls& recent, const Asked& asked,
                       const std::shared_ptr<Flight>& flight, const Fingerprint& fingerprint) {
  const std::lock_guard lock(mutex_);
  recent.keep(asked, flight, fingerprint);
}

bool Session::stirs() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  return std::any_of(flying_.begin(), flying_.end(),
                     [](const auto& flight) { return flight->operation->stirs(); });
}

// A peer's stage shows another call than this rank's.
void Session::meet(const Flight& flight, const Stranger& stranger) {
  const Group& group = *flight.group;
  const Mark &mine = stranger.mine, &theirs = stranger.theirs;
  const int them = stranger.position, me = group.rank;
  const std::string end = ". The communicator cannot be used any more.";
  std::string what = str("calls before it differ between rank ", them, " and rank ", me);
  if (mine.number() != theirs.number())
    what = str("rank ", them, " is in ", describe(theirs.fingerprint), " as its call #",
               theirs.number(), ", rank ", me, " in ", describe(mine.fingerprint), " as its call #",
               mine.number(), ": the order of calls differs");
  else if (mine.fingerprint != theirs.fingerprint)
    what = difference(mine.fingerprint, me, theirs.fingerprint, them);
  trouble_.push_back(
      {group.context, Fault::mismatch,
       str(collective_of(mine.fingerprint), " #", mine.number(), ": ", what, end), true});
}

// The system let ranks copy each other's memory when they started, and does not now.
void Session::meet(const Flight& flight, const Barred& barred) {
  const Group& group = *flight.group;
  const std::string peer = name_of(group, group.ranks[static_cast<std::size_t>(barred.position)]);
  trouble_.push_back(
      {group.context, Fault::resource,
       str(flight.operation->describe(), ": ", name_of(group, transport_->rank()), " cannot ",
           barred.writes ? "write into" : "read", " the buffer of ", peer, ": ",
           std::strerror(barred.error), ". PACELINE_ATTACH=off does without. The communicator ",
           "cannot be used any more."),
       true});
}

}  // namespace paceline
