// Watchdog: looks after those who wait: who is lost, who disagrees, who is late.
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

  // With the lock held.
  void watch(double now);         // every now and then while somebody waits
  void watch_now_and_then();      // the same for those who wait by asking
  int awaits() const;             // as a Listener's

  // Without the lock; throws what the caller's look throws. Who waits for a moment at a time drives
  // everything, so that the thread leaves it to him, and may never wait for so long that a look is
  // due.
  void watch_between_waits();

 private:
  void follow_awaited();
  void look_for_mismatches();
  void look_for_lost();
  Limit limit_of(const ActiveOp& active) const;
  void give_up(ActiveOp& active, const Limit& limit);
  void warn(ActiveOp& active, double waited_s);
  std::string missing(const ActiveOp& active) const;
  std::string behind(const ActiveOp& active) const;

  SessionState& state_;
  Failures& failures_;
  ShmGroups& shm_;
  Driver& driver_;
  double watched_s_ = 0;   // by watch_now_and_then()
  int awaited_ = -1;       // of several that are waited for, the one whose row leads furthest
};

}  // namespace paceline
