// Session: one rank's end of one world. It starts calls and drives all calls under way.
//
// It consists of ActiveOps (starts, advances and retires operations), ProgressThread (drives calls
// while the program computes), Failures (breaks communicators), ShmGroups (opens and frees staging
// buffers) and Watchdog (detects peers that are lost or late), which share a SessionState.
//
// Any thread may call the public functions, without the lock; the Listener's require it. Functions
// that begin with check_owner() throw a usage error in a child of fork().
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
  // Makes a session. The last pointer may be dropped in any thread, including the session's own.
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
  // Sets the machine that later communicators use for choices between nodes.
  void assume(Assumed assumed);
  const Assumed& assumed() const { return assumed_; }

  // Adds a communicator. Throws a usage error if its context is in use, or was recently.
  void open(const std::shared_ptr<Group>& group);
  // Ends new calls on the communicator. The group stays while a request needs it for errors.
  void close(Group& group);
  // Gives the first call number 0, so that flight records count from the next one.
  void leave_uncounted(Group& group);
  // Drives all calls under way. Returns true if a peer has made a call that this rank has yet to
  // make. Throws if the group is broken.
  bool is_called(const Group& group);
  // Calls of the communicator so far: `rounds` in the upper half, `last` in the lower.
  std::uint64_t calls_of(const Group& group) const;
  int timeout_of(const Group& group) const;   // milliseconds
  void set_timeout(Group& group, int timeout_ms);

  // Begins the thread that drives calls, with Progress::when_started.
  void expect_starts() {
    if (state_.config.progress == Progress::when_started) thread_.start();
  }
  // Numbers and starts the operation, and advances it as far as it goes at once. Throws the group's
  // error if it is broken. May call callbacks that are due, as test() and wait() may.
  void start(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
             const Fingerprint& fingerprint);
  // Starts the operation and waits for it, without the progress thread.
  void run(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
           const Fingerprint& fingerprint);
  // Runs a call from the cache. Returns false if the cache has none that is free.
  bool run_again(CallCache& recent, const Asked& asked);
  // Starts a call from the cache; null if the cache has none that is free. `record`: the call's
  // profile record, or null.
  std::shared_ptr<ActiveOp> start_again(CallCache& recent, const Asked& asked,
                                        CallRecord* record);
  void remember(CallCache& recent, const Asked& asked, const std::shared_ptr<Prepared>& prepared,
                const std::shared_ptr<ActiveOp>& active, const Fingerprint& fingerprint);
  // These implement Request (runtime/request.hpp). `start`: number of the call to wait for, since a
  // plan may have started its next call. They throw the call's error if it has failed.
  bool test(ActiveOp& active, std::uint32_t start);
  // Returns true when the call is complete, false after most_ms (0: no limit). The watchdog breaks
  // the group after timeout_ms (0: the call's). Drives all calls, and calls WorldConfig::idle and
  // meanwhile; an exception of idle ends the wait, not the call.
  bool wait(ActiveOp& active, std::uint32_t start, int timeout_ms, int most_ms);
  void on_complete(ActiveOp& active, std::uint32_t start, std::function<void(bool)> callback);
  // Sleeps until this or another call has ended, while the progress thread drives them. Waits as
  // wait() does if there is no such thread.
  bool sleep(ActiveOp& active, std::uint32_t start, int most_ms);
  // Waits for all calls that this rank has started; throws the first error.
  void complete();
  // Stops all calls, waits for peers that still need this rank's shared memory
  // (ShmGroups::wait_for_attachers()), breaks all communicators on this rank and tells the peers
  // that this rank leaves. If an exception ends the wait, it is thrown at the end.
  void leave(Leaving reason);

  void start_trace();
  Trace take_trace();
  FlightRecord record(const std::string& reason) const;

  // The transport calls the functions of the Listener inside progress(), recv() and check_peers(),
  // with the lock held.
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

  void end();   // deletes this session, from any thread

  // The functions of the Driver (session_state.hpp) require the lock.
  bool progress() override;
  void watch(double now) override { watchdog_.watch(now); }
  void fail_under_way() override;

  // Requires the lock; releases it while callbacks run.
  void start(std::unique_lock<std::mutex>& lock, const std::shared_ptr<ActiveOp>& active,
             const void* input, void* output, const Fingerprint& fingerprint);
  void forget_closed();   // drops closed groups that no communicator and no request holds

  void wait_on(ActiveOp& active);   // called without the lock

  // Each member uses those before it, and is destroyed before them.
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
