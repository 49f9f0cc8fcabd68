// Watchdog: finds why a rank that waits waits too long: a peer is lost, is in another call, or is
// late. It breaks the communicator, or warns. Whoever waits calls it, every SessionState::kWatchS;
// it has no thread.
#pragma once

#include <string>

#include "runtime/progress/failures.hpp"
#include "runtime/progress/session_state.hpp"
#include "runtime/progress/shm_groups.hpp"

namespace paceline {

class Watchdog {
 public:
  Watchdog(SessionState& state, Failures& failures, ShmGroups& shm, Driver& driver)
      : state_(state), failures_(failures), shm_(shm), driver_(driver) {}

  // With the lock held. Throws nothing while calls are under way: that would break them
  // (Driver::fail_under_way()).
  void watch(double now);         // `now` as of now_s()
  void watch_if_due();            // for those who wait by test(): no more than every kWatchS
  int awaits() const;             // as a Listener's

  // Without the lock; throws what WorldConfig::idle throws. For those who wait by many short
  // wait_for(): while they do, the progress thread leaves the work to them, and no single wait is
  // long enough for a look of its own.
  void watch_between_waits();

 private:
  void follow_awaited();
  void look_for_mismatches();
  void look_for_lost();
  Limit limit_of(const ActiveOp& active) const;   // timeout_ms 0: it may wait for ever
  void give_up(ActiveOp& active, const Limit& limit);
  void warn(ActiveOp& active, double waited_s);
  // What errors and warnings say: where those are that the call waits for, then who is further
  // behind than they are.
  std::string missing(const ActiveOp& active) const;
  std::string behind(const ActiveOp& active) const;

  SessionState& state_;
  Failures& failures_;
  ShmGroups& shm_;
  Driver& driver_;
  int put_off_ = 0;        // looks in a row at which something moved
  double watched_s_ = 0;   // when watch_if_due() last did
  int awaited_ = -1;       // the rank that awaits() prefers, as follow_awaited() found; -1: none
};

}  // namespace paceline
