// Communicator: a group of ranks that call collectives together, in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/assumed.hpp"
#include "runtime/call.hpp"
#include "runtime/diagnostics/record.hpp"
#include "runtime/request.hpp"
#include "trace/trace.hpp"
#include "transport/leaving.hpp"

namespace paceline {

class Plan;
struct CommunicatorState;   // runtime/communicator_state.hpp
class Profile;        // runtime/diagnostics/profile.hpp
class SharedMemory;   // runtime/shared_memory.hpp

class Communicator {
 public:
  int rank() const;
  int size() const;
  int nodes() const;           // number of nodes that its ranks are on
  std::string broken() const;  // why it is broken; empty: it works
  // True if a thread drives calls while the program computes.
  bool has_progress_thread() const;
  // Breaks the communicator: calls under way and later ones fail on every rank with `why`.
  void abort(const std::string& why);
  bool is_called() const;      // true if a peer has made a call that this rank has yet to make

  // For benchmarks: makes calls combine nothing, so that their results are wrong. All ranks call
  // this before the first call. Calls that send nothing are refused.
  void leave_out_sums();

  Request start(const Call& call);
  void run(const Call& call);   // starts and waits; a little faster than start() and wait()
  Plan plan(const Call& call);  // persistent: set up once, started many times

  // Collective. Ranks of equal colour form a new communicator, ordered by key, then by rank. A
  // rank with a negative colour joins none and gets an invalid Communicator.
  Communicator split(int colour, int key);
  Communicator dup() { return split(0, rank()); }

  // Allocates zeroed memory. Collective; every rank passes the same number of bytes.
  std::shared_ptr<SharedMemory> allocate(std::size_t bytes);

  // Makes a communicator of these ranks of this one, in this order, without communication. `tag`
  // must be equal on all members and new for each group, so the caller needs a way to agree on it.
  Communicator subgroup(const std::vector<int>& ranks, std::uint64_t tag);

  // Time-out in milliseconds, at least 1, of calls without their own. Each rank sets its own.
  // Communicators made from this one later inherit it; the world's comes from the options.
  int timeout_ms() const;
  void set_timeout(int timeout_ms);

  bool valid() const { return state_ != nullptr; }
  // start_trace() makes all operations of this process record their steps. take_trace() ends that
  // and returns this rank's events, in seconds of CLOCK_MONOTONIC and ranks of the world.
  void start_trace();
  Trace take_trace();

  // Returns the last calls of this process, and those under way, in all its communicators of this
  // world.
  FlightRecord record(const std::string& reason) const;

  // Finds the peers' staging buffers now instead of in the first call. Collective; does nothing if
  // the ranks do not share a node.
  void attach_together(int timeout_ms);

  // The recorder of this process's calls, in all its communicators of this world.
  Profile& profile();

  // Waits for all calls that this process has started in this world, each within its own time-out;
  // throws the first error. Called before leave(), so that leave() cuts off no message.
  void complete();

  // Leaves the world: tells the peers that still wait for this rank, and ends all communicators.
  // The destructor of the world's last communicator leaves too.
  void leave(Leaving why = Leaving::ended);

  // Explains a call's choice: "ring, 4 segments: 16 MiB on 4 ranks is long".
  std::string explain(const Call& call) const;
  // The machine that its choices assume, and why.
  const Assumed& assumed() const;

  explicit Communicator(std::shared_ptr<CommunicatorState> state) : state_(std::move(state)) {}
  Communicator() = default;

 private:
  std::shared_ptr<CommunicatorState> state_;
};

// A call whose schedule, memory and buffers are fixed. Each start must end before the next one.
class Plan {
 public:
  Request start();
  struct State;
  explicit Plan(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

}  // namespace paceline
