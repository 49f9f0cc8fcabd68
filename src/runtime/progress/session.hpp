// Session: one world, as one of its ranks has it. It starts calls and drives everything that is
// under way.
//
// Its parts look after the rest: ProgressThread (what goes on beside a program that computes),
// Failures (what cannot go on), ShmGroups (what peers find in shared memory), Watchdog (who is
// waited for too long). They share a SessionState.
//
// Public functions are called without the lock, by any thread, except for those of the Listener.
// Those that begin with check_owner() throw a usage error in a child of fork().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/scratch.hpp"
#include "runtime/assumed.hpp"
#include "runtime/call_cache.hpp"
#include "runtime/diagnostics/profile.hpp"
#include "runtime/diagnostics/record.hpp"
#include "runtime/progress/active_ops.hpp"
#include "runtime/progress/failures.hpp"
#include "runtime/progress/progress_thread.hpp"
#include "runtime/progress/session_state.hpp"
#include "runtime/progress/shm_groups.hpp"
#include "runtime/progress/watchdog.hpp"
#include "runtime/shared_book.hpp"
#include "runtime/world.hpp"
#include "transport/transport.hpp"

namespace paceline {

class Session : public Listener, private Driver, public std::enable_shared_from_this<Session> {
 public:
  // How a session is made: what the pointer destroys may be destroyed in any thread, also its own.
  static std::shared_ptr<Session> make(std::unique_ptr<Transport> transport,
                                       const WorldConfig& config);
  Session(std::unique_ptr<Transport> transport, const WorldConfig& config);
  ~Session() override;

  void check_owner() const { state_.check_owner(); }   // throws a usage error
  int rank() const { return state_.rank(); }
  int ranks() const { return state_.transport->ranks(); }
  const WorldConfig& config() const { return state_.config; }
  Failures& failures() { return failures_; }
  ShmGroups& shm() { return shm_; }
  SharedBook& shared() { return shared_; }
  Profile& profile() { return profile_; }
  // The machine that choices between nodes reckon with, in communicators that are made from now on.
  void assume(Assumed assumed);
  const Assumed& assumed() const { return assumed_; }

  // A communicator begins. Throws a usage error if its context is in use, or was of late.
  void open(const std::shared_ptr<Group>& group);
  // No new calls. Its requests may still be under way, or held: their errors need the group.
  void close(Group& group);
  // Before the first call: that one gets number 0, and the next is the first for flight records.
  void leave_uncounted(Group& group);
  // Drives what is under way; whether a peer has made a call that this rank has yet to make. Throws
  // if the group is broken.
  bool is_called(const Group& group);
  // So far, of the communicator: `rounds` in the upper half, `last` in the lower.
  std::uint64_t calls_of(const Group& group) const;
  int timeout_of(const Group& group) const;   // milliseconds
  void set_timeout(Group& group, int timeout_ms);

  // Numbers the operation, starts it and does what can be done at once. Throws the group's error if
  // it is broken. May call callbacks that are due, as test() and wait() may.
  void start(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
             const Fingerprint& fingerprint);
  // The same, and waits for it, without the progress thread.
  void run(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
           const Fingerprint& fingerprint);
  // Runs a call that was made before; false if there was none, or all of its operations are busy.
  bool run_again(CallCache& recent, const Asked& asked);
  // Starts a call that was made before; null if there was none. `record`: of its profile, or null.
  std::shared_ptr<ActiveOp> start_again(CallCache& recent, const Asked& asked,
                                        CallRecord* record);
  void remember(CallCache& recent, const Asked& asked, const std::shared_ptr<Prepared>& prepared,
                const std::shared_ptr<ActiveOp>& active, const Fingerprint& fingerprint);
  // As those of Request (runtime/request.hpp). `start`: the number of the call that is meant; a
  // plan may have made its next one meanwhile. They throw the error of the call if it has failed.
  bool test(ActiveOp& active, std::uint32_t start);
  // Whether it is complete; false once most_ms are over (0: no limit). After timeout_ms (0: the
  // call's) the watchdog breaks the group. Drives everything meanwhile, and calls WorldConfig::idle
  // and meanwhile; what idle throws ends the wait and not the call.
  bool wait(ActiveOp& active, std::uint32_t start, int timeout_ms, int most_ms);
  void on_complete(ActiveOp& active, std::uint32_t start, std::function<void(bool)> callback);
  // wait() for a program that computes beside: sleeps, until this or another call has ended.
  bool sleep(ActiveOp& active, std::uint32_t start, int most_ms);
  // Returns when all calls that this rank has started have ended; throws the first error.
  void complete();
  // Stops all calls, waits for peers that still need this rank's shared memory
  // (ShmGroups::wait_for_attachers()), breaks all communicators on this rank and tells the peers
  // that nothing comes any more. Throws what has ended that wait, after the rest.
  void leave(Leaving reason);

  void start_trace();
  Trace take_trace();
  FlightRecord record(const std::string& reason) const;

  // As a Listener, with the lock held: the transport calls them inside progress(), recv() and
  // check_peers().
  bool arrives(int peer, const Key& key, const Fingerprint& fingerprint) override {
    return failures_.arrives(peer, key, fingerprint);
  }
  void misfits(int peer, const Key& key, std::size_t came, std::size_t expected) override {
    failures_.misfits(peer, key, came, expected);
  }
  void aborted(int peer, std::uint64_t context, const std::string& why) override {
    failures_.aborted(peer, context, why);
  }
  void lost(int peer, const std::string& why) override {
    state_.gone[static_cast<std::size_t>(peer)] = why;
  }
  int awaits() const override { return watchdog_.awaits(); }

 private:
  struct Limited;

  void end();           // deletes it, in whichever thread

  // As a Driver (session_state.hpp), with the lock held.
  bool progress() override;
  void watch(double now) override { watchdog_.watch(now); }
  void fail_under_way() override;

  // With the lock held; leaves without it.
  void start(std::unique_lock<std::mutex>& lock, const std::shared_ptr<ActiveOp>& active,
             const void* input, void* output, const Fingerprint& fingerprint);
  void forget_closed();   // closed groups that no communicator and no request holds

  void wait_on(ActiveOp& active);   // without the lock

  // In an order that matters: what is declared first is destroyed last, and used by what follows.
  ScratchPool scratch_;
  SessionState state_;
  ProgressThread thread_{state_, *this};
  Failures failures_{state_, thread_, *this};
  ShmGroups shm_{state_, failures_, *this};
  ActiveOps ops_{state_, scratch_, thread_, failures_, shm_, *this};
  Watchdog watchdog_{state_, failures_, shm_, *this};
  Assumed assumed_;
  SharedBook shared_;
  Profile profile_;
};

}  // namespace paceline
