// SessionState: the data that the parts of a session share: the transport, the communicators and
// the calls under way.
//
// "The lock", in all files of this folder, is SessionState::mutex. It guards groups, active and
// gone, and every call into the transport except rest(), wake() and constants such as rank().
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "arrival/entries.hpp"
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

// Calls of a communicator that overlap in time and so share its links. An overlap begins with a
// call that starts alone, and ends when none is under way. Only calls with notes count
// (arrival/notes.hpp).
struct Overlap {
  std::atomic<double> end_s{0};   // end of the call that has ended last, so far
};

// A communicator, as its session knows it. Members that change after Session::open() need the lock,
// except the counters of the profile.
struct Group {
  std::uint64_t context = 0;
  std::vector<int> ranks;            // position -> rank of the world
  int rank = 0;                      // this rank's position
  std::uint32_t last = 0;            // number of the operation started last; 0: none
  std::uint64_t rounds = 0;          // times that the 32 bits of `last` have wrapped around
  bool counts = true;                // false: the next call gets number 0 (leave_uncounted())
  std::vector<Fingerprint> history;  // of the last operations, by number modulo its size
  std::string broken;                // why the group is broken; empty: it works. Set once
  Fault fault = Fault::internal;     // the fault that broke it
  int timeout_ms = 0;                // of its calls; 0: the world's
  bool closed = false;               // no new calls; requests may be under way, or held
  std::string labels;                // of the calls that were under way when it broke
  std::map<int, std::string> call_sites;   // of each rank of the world when the group broke
  bool asks_call_sites = false;      // a thread tells this rank's, and waits for the peers'
  std::unique_ptr<ShmChannels> shm;   // to its ranks on this node; null: they share no memory
  bool one_node = false;              // `shm` reaches all its ranks
  std::array<EntryBook, 2> entry_books;   // of calls that may go by arrival, by channel of `shm`
  std::atomic<std::uint32_t> profile_turn{0}, profile_calls{0};   // in the recorder of that turn
  std::uint32_t profile_id = 0;
  std::shared_ptr<Overlap> overlap;   // the latest one

  std::uint32_t next_number() {   // number of the next call; 1 follows 2^32 - 1: 0 means "none"
    if (++last == 0 && counts) {
      last = 1;
      ++rounds;
    }
    counts = true;
    return last;
  }
};

// Time-out of one wait for one start of a call. It lives on the stack of the waiting thread.
struct Limit {
  std::uint32_t start = 0;   // number of the call
  double begun_s = 0;        // start of the wait (now_s())
  int timeout_ms = 0;        // 0: the call's
};

// An operation and all that it needs while it is under way. The caches of its communicator keep it
// and start it again. It keeps its session alive until the call has left `active` and the last
// request is gone.
struct ActiveOp {
  std::shared_ptr<Session> session;
  std::shared_ptr<Group> group;
  std::unique_ptr<Operation> operation;
  ScratchPool::Block scratch;  // while it is under way
  std::vector<PeerBuffers> peers;  // buffers of its peers, if it uses shared memory
  std::string label;             // name in errors, besides the call's number
  ArrivalTurn turn;        // its part in learning arrivals, if it has one
  int timeout_ms = 0;   // of the call; 0: the group's
  std::vector<const Limit*> limits;   // of waits under way; they replace `timeout_ms`
  double started_s = 0;               // time at which it was put into SessionState::active
  std::shared_ptr<Overlap> overlap;   // of a call with notes; null: it was never in `active`
  bool warned = false;                // the watchdog has warned that it waits long
  // A wait, a test or a callback has told the program that the call has ended.
  std::atomic<bool> is_observed{false};
  std::atomic<CallRecord*> profiled{nullptr};   // of a non-blocking call that is recorded
  std::function<void(bool)> on_complete;   // of Request::on_complete(), while it is under way

  // Takes over the call's options for the next start. No other thread may use the operation yet.
  void take(const Call& call, std::vector<PeerBuffers> buffers) {
    timeout_ms = call.timeout_ms;
    peers = std::move(buffers);
    operation->set_priority(call.priority);
    take(call);
  }
  void take(const Call& call) {   // for a repeated call: takes its label only
    if (label != call.label) label = call.label;
  }
  void mark_observed(std::uint32_t start) {   // does nothing after a later start
    if (operation->number() == start) is_observed = true;
  }
};

// The session, as its parts call it. All functions require the lock.
class Driver {
 public:
  // Drives the transport and all calls under way. Returns true if anything moved. An exception
  // breaks all communicators with calls under way; it is thrown only if there are none.
  virtual bool progress() = 0;
  virtual void watch(double now) = 0;   // Watchdog::watch(); `now`: now_s()
  // Called in a handler: the exception breaks all communicators with calls under way.
  virtual void fail_under_way() = 0;

 protected:
  ~Driver() = default;
};

struct SessionState {
  SessionState(std::unique_ptr<Transport> transport_of_world, const WorldConfig& world_config);

  // Calls of a communicator whose fingerprints (16 bytes) are kept to check late messages.
  static constexpr std::size_t kHistory = 256;
  static constexpr double kWatchS = 0.02;   // between two runs of the watchdog while a rank waits

  // True if this process is a forked child of the rank. It must neither use nor destroy anything
  // here: threads that it lacks may hold locks, and the peers belong to its parent.
  bool is_inherited() const { return forks() != forks_at_start; }
  void check_owner() const {   // throws a usage error
    if (is_inherited()) refuse_child();
  }
  std::string owner() const;   // text for errors: this process is a fork of rank ...

  int rank() const { return transport->rank(); }
  // True if progress() must be called now and then. Requires the lock.
  bool has_work() const { return !active.empty() || transport->owes(); }
  bool is_under_way(const Group& group) const;   // true if any of its calls is; requires the lock
  // True if an operation can advance, or another thread holds the lock. For Transport::rest().
  bool can_progress();
  int sleep_us() const;    // longest sleep of a waiting rank between two looks, in microseconds
  bool is_gone(int world_rank) const { return !why_gone(world_rank).empty(); }
  const std::string& why_gone(int world_rank) const {
    return gone[static_cast<std::size_t>(world_rank)];
  }

  const std::uint32_t forks_at_start = forks();
  const int process;   // process id of the rank, also in a forked child
  const WorldConfig config;
  const std::unique_ptr<Transport> transport;
  const bool oversubscribed;
  mutable std::mutex mutex;
  std::unordered_map<std::uint64_t, std::shared_ptr<Group>> groups;
  std::vector<std::shared_ptr<ActiveOp>> active;   // most urgent first; among equals oldest first
  std::vector<std::string> gone;  // why each rank of the world is gone; empty: it is there
  std::atomic<int> polling{0};    // operations in `active` with Operation::is_polling()

 private:
  [[noreturn]] void refuse_child() const;
};

// Returns a rank's name for errors: "rank 1 (rank 5 of the world)", or "rank 1" if both are equal.
std::string name_of(const Group& group, int world_rank);

}  // namespace paceline
