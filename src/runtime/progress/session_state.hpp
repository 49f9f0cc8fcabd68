// SessionState: what the parts of a session share: the transport, the communicators and the calls
// that are under way.
//
// "The lock", here and in the other files of this folder, is SessionState::mutex. Whoever touches
// groups, active or gone holds it; so does whoever calls into the transport, except for rest(),
// wake() and what never changes, such as rank().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/operation.hpp"
#include "engine/scratch.hpp"
#include "profile/recorder.hpp"
#include "runtime/arrival_turn.hpp"
#include "runtime/call.hpp"
#include "runtime/diagnostics/forks.hpp"
#include "runtime/world.hpp"
#include "transport/transport.hpp"

namespace paceline {

class Session;

// Calls of a communicator that overlap in time, so that they share its links: from one that begins
// alone to when none is under way any more. Only calls with notes (engine/notes.hpp) count.
struct Overlap {
  std::atomic<double> end_s{0};   // of the call that has ended last, so far
};

// What a session knows of a communicator. What changes after Session::open() needs the lock, but
// for the counters of the profile.
struct Group {
  std::uint64_t context = 0;
  std::vector<int> ranks;            // position -> rank of the world
  int rank = 0;                      // own position
  std::uint32_t last = 0;            // number of the operation started last; 0: none was
  std::uint64_t rounds = 0;          // times that the 32 bits of `last` have begun anew
  bool counts = true;                // false: the next call gets number 0 (leave_uncounted())
  std::vector<Fingerprint> history;  // of the last operations, by number modulo its size
  std::string broken;                // why it is; empty: it is not. Set once
  Fault fault = Fault::internal;     // of that
  int timeout_ms = 0;                // of its calls; 0: the world's
  bool closed = false;               // no new calls; requests may be under way, or held
  std::string labels;                // of the calls that were under way when it broke
  std::map<int, std::string> call_sites;   // by rank of the world: where it was when it broke
  std::unique_ptr<ShmChannels> shm;   // to its ranks on this node; null: they share no memory
  bool one_node = false;              // `shm` reaches all its ranks
  std::atomic<std::uint32_t> profile_turn{0}, profile_calls{0};   // in the recorder of that turn
  std::uint32_t profile_id = 0;
  std::shared_ptr<Overlap> overlap;   // the last one

  std::uint32_t next_number() {   // of a call; after 2^32 - 1 comes 1, since 0 means "none"
    if (++last == 0 && counts) {
      last = 1;
      ++rounds;
    }
    counts = true;
    return last;
  }
};

// The time-out of one wait for one start of a call. It is on the stack of the thread that waits.
struct Limit {
  std::uint32_t start = 0;   // number of the call
  double begun_s = 0;        // when the wait has begun (now_s())
  int timeout_ms = 0;        // 0: none of its own
};

// An operation with what it needs while it is under way. The caches of its communicator keep it and
// start it again. It holds its session: that does not end before the last call has left `active`
// and the last request is gone.
struct ActiveOp {
  std::shared_ptr<Session> session;
  std::shared_ptr<Group> group;
  std::unique_ptr<Operation> operation;
  ScratchPool::Block scratch;  // while it is under way
  std::vector<PeerBuffers> peers;  // where it touches those of its peers
  std::string label;             // what errors call it, besides its number
  ArrivalTurn turn;        // what is learned from it, where anything is
  int timeout_ms = 0;   // of the call; 0: the group's
  std::vector<const Limit*> limits;   // of waits that are under way; they replace `timeout_ms`
  double started_s = 0;               // when it was put into SessionState::active
  std::shared_ptr<Overlap> overlap;   // of a call with notes; null: it never got into `active`
  bool warned = false;                // the watchdog has said that it waits for long
  // A wait, a test or a callback has told the program that the call has ended.
  std::atomic<bool> is_observed{false};
  std::atomic<CallRecord*> profiled{nullptr};   // of a non-blocking call that is recorded
  std::function<void(bool)> on_complete;   // of Request::on_complete(), while it is under way

  // What the next start is asked to do besides moving data. Before it, while nobody else has it.
  void take(const Call& call, std::vector<PeerBuffers> buffers) {
    timeout_ms = call.timeout_ms;
    peers = std::move(buffers);
    operation->set_priority(call.priority);
    take(call);
  }
  void take(const Call& call) {   // the same again, but for its name
    if (label != call.label) label = call.label;
  }
  void mark_observed(std::uint32_t start) {   // unless a later start has taken its place
    if (operation->number() == start) is_observed = true;
  }
};

// What the parts of a session ask of it. With the lock held.
class Driver {
 public:
  // Drives the transport and all that is under way; whether anything moved. An exception breaks all
  // communicators with calls under way; only where there are none it gets out.
  virtual bool progress() = 0;
  virtual void watch(double now) = 0;   // Watchdog::watch(); `now` as of now_s()
  // In a handler: breaks all communicators with calls under way, for the exception that is handled.
  virtual void fail_under_way() = 0;

 protected:
  ~Driver() = default;
};

struct SessionState {
  SessionState(std::unique_ptr<Transport> transport_of_world, const WorldConfig& world_config);

  // Calls of a communicator whose fingerprints (16 bytes) late messages are compared with.
  static constexpr std::size_t kHistory = 256;
  static constexpr double kWatchS = 0.02;   // between two runs of the watchdog while a rank waits

  // Whether this process is a child that the rank has forked. It must not use anything here, nor
  // destroy it: locks may be held by threads that it does not have, and the peers are its parent's.
  bool is_inherited() const { return forks() != forks_at_start; }
  void check_owner() const {   // throws a usage error
    if (is_inherited()) refuse_child();
  }
  std::string owner() const;   // for errors: that this process is a fork, and of which rank

  int rank() const { return transport->rank(); }
  // With the lock held: whether progress() must be called now and then.
  bool has_work() const { return !active.empty() || transport->owes(); }
  bool is_under_way(const Group& group) const;   // likewise: any call of it
  // Without the lock; true as well where another thread holds it. For Transport::rest().
  bool can_progress();
  int sleep_us() const;    // the longest sleep between two looks of who waits; microseconds
  bool is_gone(int world_rank) const { return !why_gone(world_rank).empty(); }
  const std::string& why_gone(int world_rank) const {
    return gone[static_cast<std::size_t>(world_rank)];
  }

  const std::uint32_t forks_at_start = forks();
  const int process;   // its id, of the rank and not of a child
  const WorldConfig config;
  const std::unique_ptr<Transport> transport;
  const bool oversubscribed;
  mutable std::mutex mutex;
  std::unordered_map<std::uint64_t, std::shared_ptr<Group>> groups;
  std::vector<std::shared_ptr<ActiveOp>> active;   // the most urgent first, of equals the oldest
  std::vector<std::string> gone;  // why a rank of the world is not there any more; empty: it is
  std::atomic<int> polling{0};    // operations in `active` that are Operation::is_polling()

 private:
  [[noreturn]] void refuse_child() const;
};

// For errors, the position first: "rank 1 (rank 5 of the world)", or "rank 1" where both are equal.
std::string name_of(const Group& group, int world_rank);

}  // namespace paceline
