// ActiveOps: starts the operations of a session's calls, advances those that are under way, and
// retires those that have ended.
//
// An operation is launched (numbered and started), tracked (put on SessionState::active) unless it
// ends at once, and retired when it has ended. All functions require the lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/scratch.hpp"
#include "runtime/progress/failures.hpp"
#include "runtime/progress/progress_thread.hpp"
#include "runtime/progress/session_state.hpp"
#include "runtime/progress/shm_groups.hpp"
#include "trace/trace.hpp"
#include "transport/transport.hpp"

namespace paceline {

class ActiveOps {
 public:
  ActiveOps(SessionState& state, ScratchPool& scratch, ProgressThread& thread, Failures& failures,
            ShmGroups& shm, Driver& driver)
      : state_(state), scratch_(scratch), thread_(thread), failures_(failures), shm_(shm),
        driver_(driver) {}

  // Starts a call and advances it as far as it goes at once. Returns true if the call is still
  // under way. Throws the group's error if it is broken.
  bool start(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
             const Fingerprint& fingerprint);
  // run_through() starts a load/store call and polls it until it ends; a call that waits long is
  // tracked instead. can_run_through(): true for a load/store call while no call is under way.
  bool can_run_through(const ActiveOp& active) const;
  void run_through(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                   const Fingerprint& fingerprint);
  // Drives the transport and all operations under way. Returns true if anything moved.
  bool drive();
  void retire_stopped();
  // Releases the staging buffers of a closed group whose last call has ended. The next drive()
  // makes the transport forget messages for calls that this rank never made.
  void release(Group& group);

  // Makes operations started from now on record their steps, until take_events().
  void start_trace();
  std::vector<Event> take_events();

 private:
  void launch(ActiveOp& active, const void* input, void* output, const Fingerprint& fingerprint);
  bool ends_at_once(ActiveOp& active);
  bool advance_unlisted(Operation& operation);
  void track(const std::shared_ptr<ActiveOp>& active);
  void join_overlap(ActiveOp& active);
  void retire(ActiveOp& active);

  SessionState& state_;
  ScratchPool& scratch_;
  ProgressThread& thread_;
  Failures& failures_;
  ShmGroups& shm_;
  Driver& driver_;
  bool is_tracing_ = false;
  std::vector<std::uint64_t> released_;   // contexts that the transport has yet to forget
  std::vector<Event> events_;             // events of the trace
};

}  // namespace paceline
