// SessionState: what the owners that make up a session share: the transport, the communicators and
// the calls that are under way.
//
// Whoever touches groups, active or gone holds the lock. So does whoever calls progress().
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
#include "runtime/arrivals.hpp"
#include "runtime/communicator.hpp"
#include "runtime/diagnostics/forks.hpp"
#include "transport/transport.hpp"

namespace paceline {

class Session;

// Calls of a communicator that were under way together, one after the other: they share its links.
struct Busy {
  std::atomic<double> end_s{0};   // of the last one so far
};

// What a session knows of a communicator.
struct Group {
  std::uint64_t context = 0;
  std::vector<int> ranks;            // position -> rank of the world
  int rank = 0;                      // own position
  std::uint32_t last = 0;            // number of the operation started last; 0: none was
  std::uint64_t rounds = 0;          // times that the numbers have begun anew
  bool counts = true;                // else the next call is to be number 0
  std::vector<Fingerprint> history;  // of the last operations, by number modulo its size
  std::string broken;
  Fault fault = Fault::internal;
  int timeout_ms = 0;                // of its calls; 0: the world's
  bool closed = false;               // no new calls; requests may be under way, or held
  std::string labels;                // of the calls that were under way when it broke
  std::map<int, std::string> words;    // by rank of the world: where it was when it broke
  std::unique_ptr<ShmChannels> shm;   // to its ranks on this node, where those share memory
  bool near = false;                   // those are all its ranks
  std::atomic<std::uint32_t> profile_turn{0}, profile_calls{0};   // in the recorder of that turn
  std::uint32_t profile_id = 0;
  std::shared_ptr<Busy> busy;   // of the calls that are under way

  std::uint32_t next_number() {   // they are in 32 bits; 0 says that none was called
    if (++last == 0 && counts) {
      last = 1;
      ++rounds;
    }
    counts = true;
    return last;
  }
};

// What somebody who waits for one start of a call has said about how long; gone with that wait.
struct Limit {
  std::uint32_t start = 0;
  double begun_s = 0;
  int timeout_ms = 0;
};

// An operation with what it needs while it is under way. Kept and started again by its cache.
struct ActiveOp {
  std::shared_ptr<Session> session;
  std::shared_ptr<Group> group;
  std::shared_ptr<void> keeps;  // whatever must outlive the operation
  std::unique_ptr<Operation> operation;
  ScratchPool::Block scratch;  // while it is under way
  std::vector<PeerBuffers> peers;  // where it touches those of its peers
  std::string label;             // what errors call it, besides its number
  ArrivalBook::Turn turn;        // what is learned from it, where anything is
  int timeout_ms = 0;   // of the call; 0: the group's
  std::vector<const Limit*> limits;   // in the place of that, while their waits last
  double started_s = 0;
  std::shared_ptr<Busy> busy;   // of those that say when ranks come; null: it was alone
  bool warned = false;
  std::atomic<bool> is_told{false};   // whoever made the call, that it has ended
  std::atomic<CallRecord*> profiled{nullptr};   // of a non-blocking call that is recorded
  std::function<void(bool)> on_complete;   // of Request::on_complete(), while it is under way

  // What the next start is asked to do besides moving data.
  void take(const Call& call, std::vector<PeerBuffers> buffers) {
    timeout_ms = call.timeout_ms;
    label = call.label;
    peers = std::move(buffers);
    operation->set_priority(call.priority);
  }
  void tell(std::uint32_t start) {
    if (operation->number() == start) is_told = true;
  }
};

// What the owners ask of the session. With the lock held.
class Driver {
 public:
  virtual bool progress() = 0;        // of everything; whether anything moved
  virtual void watch(double now) = 0;   // over those who wait
  virtual void fail_under_way() = 0;  // in a handler: ends all calls by the exception

 protected:
  ~Driver() = default;
};

struct SessionState {
  SessionState(std::unique_ptr<Transport> transport_of_world, const WorldConfig& world_config);

  static constexpr std::size_t kHistory = 256;   // calls that a late message is compared with
  static constexpr double kWatchS = 0.02;        // between two looks of a rank that waits

  // Whether this process is a child of the rank's. It must not touch a thing here, nor end it: its
  // locks may be held by threads that it does not have, and its peers are its parent's.
  bool is_inherited() const { return forks() != forks_at_start; }
  void check_owner() const {   // throws a usage error
    if (is_inherited()) refuse_child();
  }
  std::string owner() const;   // a sentence about a child

  int rank() const { return transport->rank(); }
  // With the lock held: whether somebody must drive this, now or then.
  bool has_work() const { return !active.empty() || transport->owes(); }
  bool is_under_way(const Group& group) const;   // likewise: any call of it
  bool can_progress();     // without the lock: whether something under way could go on
  int sleep_us() const;    // between two looks
  bool is_gone(int world_rank) const { return !why_gone(world_rank).empty(); }
  const std::string& why_gone(int world_rank) const {
    return gone[static_cast<std::size_t>(world_rank)];
  }

  const std::uint32_t forks_at_start = forks();
  const int process;
  const WorldConfig config;
  const std::unique_ptr<Transport> transport;
  const bool oversubscribed;
  mutable std::mutex mutex;
  std::unordered_map<std::uint64_t, std::shared_ptr<Group>> groups;
  std::vector<std::shared_ptr<ActiveOp>> active;   // the most urgent first, of equals the oldest
  std::vector<std::string> gone;  // why a rank of the world is not there any more; empty: it is
  std::atomic<int> polling{0};    // operations under way that wait for what wakes nobody

 private:
  [[noreturn]] void refuse_child() const;
};

// "rank 1 (rank 5 of the world)".
std::string name_of(const Group& group, int world_rank);

}  // namespace paceline
