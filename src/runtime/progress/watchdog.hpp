// Watchdog: finds out why a rank waits too long: a peer is lost, is in another call, or is late.
// It breaks the communicator, or warns. It has no thread of its own: each waiting thread calls it
// every SessionState::kWatchS.
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

  // These require the lock. An exception breaks the calls under way (Driver::fail_under_way()); it
  // is thrown only if there are none.
  void watch(double now);         // `now`: now_s()
  void watch_if_due();            // for callers that poll with test(): at most every kWatchS
  int awaits() const;             // see Listener

  // For callers that wait by many short wait_for(): each is too short for a look of its own, and
  // keeps the progress thread from looking. Called without the lock; throws what WorldConfig::idle
  // throws.
  void watch_between_waits();

 private:
  void follow_awaited();
  void look_for_mismatches();
  void look_for_lost();
  Limit limit_of(const ActiveOp& active) const;   // timeout_ms 0: no limit
  void give_up(ActiveOp& active, const Limit& limit);
  void warn(ActiveOp& active, double waited_s);
  // Text of errors and warnings: missing() says where the peers are that the call waits for, and
  // ends with behind(), the ranks that are no further than those.
  std::string missing(const ActiveOp& active) const;
  std::string behind(const ActiveOp& active) const;

  SessionState& state_;
  Failures& failures_;
  ShmGroups& shm_;
  Driver& driver_;
  int put_off_ = 0;        // consecutive looks at which something moved
  double watched_s_ = 0;   // time of the last look of watch_if_due()
  int awaited_ = -1;       // rank that awaits() prefers, found by follow_awaited(); -1: none
};

}  // namespace paceline
