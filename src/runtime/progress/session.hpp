// Session: this process's place in a world. It holds the transport and drives everything that is
// under way.
//
// Whoever calls progress() holds the lock: a caller that waits, or the session's own thread, which
// works while something is under way that nobody waits for, and sleeps otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/operation.hpp"
#include "engine/scratch.hpp"
#include "runtime/arrivals.hpp"
#include "runtime/progress/closed.hpp"
#include "runtime/communicator.hpp"
#include "runtime/diagnostics/forks.hpp"
#include "runtime/profiled.hpp"
#include "runtime/call_cache.hpp"
#include "runtime/diagnostics/record.hpp"
#include "runtime/shared_memory.hpp"
#include "transport/transport.hpp"

namespace paceline {

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

class Session : public Listener, public std::enable_shared_from_this<Session> {
 public:
  static std::shared_ptr<Session> make(std::unique_ptr<Transport> transport,
                                       const WorldConfig& config);
  Session(std::unique_ptr<Transport> transport, const WorldConfig& config);
  ~Session() override;

  // Whether this process is a child of the rank's. It must not touch a thing here, nor end it: its
  // locks may be held by threads that it does not have, and its peers are its parent's.
  bool is_inherited() const { return forks() != forks_; }
  void check_owner() const {   // throws a usage error
    if (is_inherited()) refuse_child();
  }

  // Opens this rank's stage of a group whose ranks share memory, with room for such a call.
  void open_staging(Group& group, std::size_t slot_bytes = 0);   // throws a resource error
  void attach_together(Group& group, int timeout_ms);   // and its peers theirs
  void leave_uncounted(Group& group);   // the next call, which is to be the first: no record has it

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

  int timeout_of(const Group& group) const;   // milliseconds
  void set_timeout(Group& group, int timeout_ms);

  void open(const std::shared_ptr<Group>& group);
  void close(Group& group);
  std::string broken(const Group& group) const;
  void abort(Group& group, const std::string& why);   // on all ranks
  bool is_called(const Group& group);
  // A call has ended with this error: throws it, with what there is to say about a broken group.
  [[noreturn]] void raise_late(Group& group, const Error& error);
  // A call could not be made, or go on, for want of memory: breaks its group, and throws that.
  [[noreturn]] void raise_starved(Group& group);

  void complete();   // returns when all calls that this rank has started have ended; throws why not
  void leave(Leaving reason);  // nothing works after it; peers that wait for this rank are told
  void start_trace();
  Trace take_trace();
  FlightRecord record(const std::string& reason) const;
  int rank() const { return transport_->rank(); }
  int ranks() const { return transport_->ranks(); }
  const WorldConfig& config() const { return config_; }
  SharedBook& shared() { return shared_; }
  Profile& profile() { return profile_; }
  // Of communicators that are made from now on, where they are on several nodes.
  void assume(Assumed assumed) { assumed_ = std::move(assumed); }
  const Assumed& assumed() const { return assumed_; }

  bool arrives(int peer, const Key& key, const Fingerprint& fingerprint) override;
  void misfits(int peer, const Key& key, std::size_t came, std::size_t expected) override;
  void aborted(int peer, std::uint64_t context, const std::string& why) override;
  void lost(int peer, const std::string& why) override;
  int awaits() const override;

 private:
  struct Waiting;
  struct Limited;
  struct Trouble {  // found inside the transport, dealt with outside of it
    std::uint64_t context;
    Fault fault;
    std::string why;
    bool tell_others;
  };

  // With the lock held; whatever is thrown meanwhile ends what is under way.
  bool progress();
  bool drive();
  void fail_under_way();
  // With the lock held: whether somebody must drive this, now or then.
  bool has_work() const { return !active_.empty() || transport_->owes(); }
  void wake_thread();   // with the lock held: nobody waits, and there is work
  void rouse_thread();   // if it sleeps
  void end();           // deletes it, in whichever thread
  void launch(ActiveOp& active, const void* input, void* output, const Fingerprint& fingerprint);
  void open_channel(Group& group, ShmChannel& channel, std::size_t slot_bytes);
  bool run_through(const std::shared_ptr<ActiveOp>& active, const void* input, void* output,
                   const Fingerprint& fingerprint);
  bool ends_at_once(ActiveOp& active);
  void wait_on(ActiveOp& active);
  void track(const std::shared_ptr<ActiveOp>& active);
  void land(ActiveOp& active);
  void share(ActiveOp& active);
  void call_back(std::unique_lock<std::mutex>& lock);   // those whose operations have ended
  void land_stopped();
  static void begin_anew(Group& group) {   // numbers are in 32 bits; 0 says that none was called
    group.last = 1;
    ++group.rounds;
  }
  bool is_under_way(const Group& group) const;
  void release(Group& group);
  void forget_closed();
  void meet(const ActiveOp& active, const CallMismatch& mismatch);
  void meet(const ActiveOp& active, const CopyDenied& barred);
  void meet(const ActiveOp& active, const Error& failure);
  bool can_progress();     // whether something under way could go on
  int sleep_us() const;   // between two looks
  void clear_stages();
  void look_around();
  std::vector<int> pending_attachers();
  void wait_for_attachers(std::unique_lock<std::mutex>& lock, bool may_stop);
  [[noreturn]] void raise(const ActiveOp& active);
  void settle();    // breaks what trouble was found with
  void starve(Group& group);
  void break_group(Group& group, Fault fault, const std::string& why, bool tell_others);
  [[noreturn]] void refuse_child() const;
  std::string whose() const;
  void tell_all(const Group& group, const std::string& what);
  void tell_where(Group& group);
  std::string whereabouts(const Group& group) const;
  std::string told(const Group& group) const;   // why it is broken, to whom asks
  void look_for_lost();
  void look_for_lost_in(const Group& group, double& looked_s);
  void look_for_mismatches();
  void follow_awaited();
  void compare(int peer, const Key& key, const Fingerprint& fingerprint);
  FlightRecord record_of_all(const std::string& reason) const;
  void keep_record(const std::string& reason);   // on disk, if that was asked for
  void amend_record(const Group& group);         // by where this rank was
  static constexpr std::size_t kHistory = 256;   // calls that a late message is compared with
  static constexpr double kWatchS = 0.02;   // between two looks of a rank that waits
  void watch(double now);
  void watch_now_and_then();   // for those who wait by asking
  void watch_between_waits();   // without the lock; throws what the caller's look throws
  Limit limit_of(const ActiveOp& active) const;
  void give_up(ActiveOp& active, const Limit& limit);
  void warn(ActiveOp& active, double waited_s);
  void give_way() const;
  void background();  // the thread
  void attend(std::unique_lock<std::mutex>& lock);
  std::string missing(const ActiveOp& active) const;
  std::string behind(const ActiveOp& active) const;
  static std::string name_of(const Group& group, int world_rank);
  static std::string name_with(const Group& group, int peer, const PeerStatus& doing);

  std::uint32_t forks_ = forks();
  int process_;
  WorldConfig config_;
  Assumed assumed_;
  std::unique_ptr<Transport> transport_;
  bool oversubscribed_;
  ScratchPool scratch_;
  SharedBook shared_;
  Profile profile_;
  mutable std::mutex mutex_;
  std::condition_variable work_, landing_;
  int sleepers_ = 0;
  std::uint64_t landed_ = 0;   // operations, so far
  std::vector<std::pair<std::function<void(bool)>, bool>> callbacks_;   // due, with their argument
  std::unordered_map<std::uint64_t, std::shared_ptr<Group>> groups_;
  std::unordered_map<std::uint64_t, std::string> early_aborts_;  // of groups that are not open yet
  ClosedContexts closed_;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<ShmChannels>>> left_shm_;   // of closed
  ClosedContexts spent_;   // those that were broken, whose stages ranks may still look for
  std::vector<std::shared_ptr<ActiveOp>> active_;
  std::vector<Trouble> trouble_;
  std::vector<std::string> gone_;  // why a rank of the world is not there any more; empty: it is
  std::atomic<int> starting_{0};   // threads that wait for the lock in start()
  std::atomic<int> waiting_{0};
  std::atomic<int> polling_{0};    // operations under way that wait for what wakes nobody
  std::atomic<bool> asleep_{true};  // the thread: it has to be woken
  bool stop_ = false;
  bool has_waited_ = false;   // for those who have yet to find what it shows
  double watched_s_ = 0;   // by watch_now_and_then()
  int awaited_ = -1;       // of several that are waited for, the one whose row leads furthest
  bool tracing_ = false;
  std::optional<FlightRecord> kept_record_;   // once one is on disk
  std::vector<Event> events_;
  std::thread thread_;
};

// The communicator of all ranks of a transport: how join_world ends, and where tests with a
// transport of their own begin.
// `together`: every rank is doing so now; those who share memory find each other's stages before it
// returns, and not in their first call.
Communicator join_transport(std::unique_ptr<Transport> transport, const WorldConfig& config,
                            bool together = false);

}  // namespace paceline
