// Session: this process's place in a world. It starts calls and drives everything that is under
// way.
//
// Its owners look after the rest: ProgressThread (what goes on beside a program that computes),
// Failures (what cannot go on), ShmGroups (what peers find in shared memory), Watchdog (who is
// waited for too long). They share a SessionState.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/scratch.hpp"
#include "runtime/call_cache.hpp"
#include "runtime/communicator.hpp"
#include "runtime/diagnostics/record.hpp"
#include "runtime/profiled.hpp"
#include "runtime/progress/failures.hpp"
#include "runtime/progress/progress_thread.hpp"
#include "runtime/progress/session_state.hpp"
#include "runtime/progress/shm_groups.hpp"
#include "runtime/progress/watchdog.hpp"
#include "runtime/shared_memory.hpp"
#include "transport/transport.hpp"

namespace paceline {

class Session : public Listener, private Driver, public std::enable_shared_from_this<Session> {
 public:
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
  // Of communicators that are made from now on, where they are on several nodes; has been measured.
  void assume(Assumed assumed);
  const Assumed& assumed() const { return assumed_; }

  void open(const std::shared_ptr<Group>& group);
  void close(Group& group);
  void leave_uncounted(Group& group);   // the next call, which is to be the first: no record has it
  bool is_called(const Group& group);
  int timeout_of(const Group& group) const;   // milliseconds
  void set_timeout(Group& group, int timeout_ms);

  // Numbers the operation, starts it and does what can be done at once. Throws if the group is
  // broken.
  void start(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
             const Fingerprint& fingerprint);
  // The same, and waits for it; the session's thread is not bothered.
  void run(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
           const Fingerprint& fingerprint);
  // Runs a call that sends nothing as it was run before; whether there was such a call.
  bool run_again(CallCache& recent, const Asked& asked);
  void remember(CallCache& recent, const Asked& asked, const std::shared_ptr<ActiveOp>& active,
                const Fingerprint& fingerprint);
  // `start`: the number of the call that is meant. A plan may have made its next one meanwhile.
  bool test(ActiveOp& active, std::uint32_t start);
  bool wait(ActiveOp& active, std::uint32_t start, int timeout_ms,
            int most_ms);  // at most most_ms (0: no limit); whether it is complete
  void on_complete(ActiveOp& active, std::uint32_t start, std::function<void(bool)> callback);
  // Until it or another one has ended.
  bool sleep(ActiveOp& active, std::uint32_t start, int most_ms);
  void complete();   // returns when all calls that this rank has started have ended; throws why not
  void leave(Leaving reason);  // nothing works after it; peers that wait for this rank are told

  void start_trace();
  Trace take_trace();
  FlightRecord record(const std::string& reason) const;

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

  // With the lock held; whatever is thrown meanwhile ends what is under way.
  bool progress() override;
  void watch(double now) override { watchdog_.watch(now); }
  void fail_under_way() override;
  bool drive();

  // With the lock held.
  void launch(ActiveOp& active, const void* input, void* output, const Fingerprint& fingerprint);
  bool run_through(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                   const Fingerprint& fingerprint);
  bool ends_at_once(ActiveOp& active);
  void track(const std::shared_ptr<ActiveOp>& active);
  void share(ActiveOp& active);
  void retire(ActiveOp& active);
  void retire_stopped();
  void release(Group& group);
  void forget_closed();

  void wait_on(ActiveOp& active);   // without the lock

  ScratchPool scratch_;
  SessionState state_;
  ProgressThread thread_{state_, *this};
  Failures failures_{state_, thread_, *this};
  ShmGroups shm_{state_, failures_, *this};
  Watchdog watchdog_{state_, failures_, shm_, *this};
  Assumed assumed_;
  SharedBook shared_;
  Profile profile_;
  bool tracing_ = false;
  std::vector<Event> events_;
};

// The communicator of all ranks of a transport: how join_world ends, and where tests with a
// transport of their own begin.
// `together`: every rank is doing so now; those who share memory find each other's staging buffers
// before it returns, and not in their first call.
Communicator join_transport(std::unique_ptr<Transport> transport, const WorldConfig& config,
                            bool together = false);

}  // namespace paceline
