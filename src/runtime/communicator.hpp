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
  int nodes() const;           // on which its ranks are
  std::string broken() const;  // empty, or why nothing works any more
  // Whether calls go on while no rank's thread waits for them.
  bool has_progress_thread() const;
  // Breaks the communicator: calls under way and later ones fail on every rank with `why`.
  void abort(const std::string& why);
  bool is_called() const;      // whether a message of a call is here that this rank has yet to make

  // For benchmarks: from now on its calls combine nothing, and their results are wrong. On all
  // ranks, before the first call. Those that send nothing are refused.
  void leave_out_sums();

  Request start(const Call& call);
  void run(const Call& call);   // start and wait in one, and a little faster
  Plan plan(const Call& call);  // persistent: set up once, started many times

  // Collective. Ranks of equal colour form a new communicator, ordered by key, then by rank; a
  // negative colour joins none and gets an invalid Communicator.
  Communicator split(int colour, int key);
  Communicator dup() { return split(0, rank()); }

  // Collective; every rank passes the same number of bytes. Zeroed.
  std::shared_ptr<SharedMemory> allocate(std::size_t bytes);

  // The part of the world with these ranks (of this communicator, in order), made without
  // communication; `tag` must be equal on all members and new for each group. For those who have a
  // store to agree by.
  Communicator subgroup(const std::vector<int>& ranks, std::uint64_t tag);

  // How long calls on it wait that have no time-out of their own; milliseconds, from 1 on. Each
  // rank has its own. Communicators that are made of it later begin with the same; the world's with
  // that of the options.
  int timeout_ms() const;
  void set_timeout(int timeout_ms);

  bool valid() const { return state_ != nullptr; }
  // From start_trace on, every step of every operation of this process is recorded. take_trace ends
  // that and returns this rank's events: seconds of CLOCK_MONOTONIC, ranks of the world.
  void start_trace();
  Trace take_trace();

  // What this process has called last and what it is in, in all its communicators of this world.
  FlightRecord record(const std::string& reason) const;

  // Collective, where its ranks share a node: what the first call would have to find is found now.
  void attach_together(int timeout_ms);

  // What is recorded of the calls of this process, in all its communicators of this world.
  Profile& profile();

  // Returns when every call that this process has started in this world has ended, each within its
  // own time-out; throws the first error. Before leave() nobody's message is cut off so.
  void complete();

  // Leaves the world in peace: peers that still wait for this rank are told so, and nothing works
  // any more. Happens as well when the world's last communicator is destroyed.
  void leave(Leaving why = Leaving::ended);

  // Which algorithm a call would take, and why: "ring, 4 segments: 16 MiB on 4 ranks is long".
  std::string explain(const Call& call) const;
  // The machine that its choices reckon with, and why this one.
  const Assumed& assumed() const;

  explicit Communicator(std::shared_ptr<CommunicatorState> state) : state_(std::move(state)) {}
  Communicator() = default;

 private:
  std::shared_ptr<CommunicatorState> state_;
};

// A call whose schedule, memory and buffers are fixed. One start at a time; wait before the next.
class Plan {
 public:
  Request start();
  struct State;
  explicit Plan(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

}  // namespace paceline
