#include "comm_state.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <vector>

#include "alone.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "join.hpp"
#include "report.hpp"
#include "summary.hpp"

namespace paceline::preload {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<CommState>> states;
  void (*before_end)() = nullptr;
  int state_key = MPI_KEYVAL_INVALID;
  std::atomic<bool> is_running{false};   // from the first state to MPI_Finalize
  std::atomic<std::uint64_t> turn{1};    // changes when a state goes

  // Never destroyed: MPI may delete attributes while the process exits.
  static Registry& get() {
    static Registry* const one = new Registry;
    return *one;
  }
};

// Latest lookup of this thread.
struct Last {
  MPI_Comm comm{};
  std::uint64_t turn = 0;  // the registry's at the lookup; valid while it is the same
  CommState* state = nullptr;
};
thread_local Last last;

// MPI deletes the attribute with its communicator, sometimes long after MPI_Finalize has begun;
// finish() has emptied the state by then.
int delete_state(MPI_Comm, int, void* value, void*) {
  Registry& registry = Registry::get();
  const auto state = static_cast<CommState*>(value)->shared_from_this();
  const std::lock_guard lock(registry.mutex);
  ++registry.turn;
  state->is_gone = true;
  std::erase(registry.states, state);
  return MPI_SUCCESS;
}

// MPI_Finalize first deletes the attributes of MPI_COMM_SELF, whatever the program's language. All
// worlds are thus left before MPI ends.
int finish(MPI_Comm, int, void*, void*) noexcept {
  Registry& registry = Registry::get();
  if (registry.before_end) registry.before_end();
  registry.is_running = false;
  std::vector<Communicator> left;
  std::vector<std::shared_ptr<Agreement>> agreed;
  {
    const std::lock_guard lock(registry.mutex);
    ++registry.turn;
    for (const auto& state : registry.states) {
      left.push_back(std::move(state->communicator));
      state->communicator = {};
      agreed.push_back(std::move(state->agreed));
      state->why = FallbackReason::not_joined;
    }
  }
  left.clear();  // worlds of their own, in the order in which they were joined
  agreed.clear();
  leave_worlds();
  end_alone();
  print_summary();
  return MPI_SUCCESS;
}

bool is_mpi_running() {
  int begun = 0, over = 0;
  PMPI_Initialized(&begun);
  if (begun) PMPI_Finalized(&over);
  return begun && !over;
}

// True if states exist: from the first call that finds MPI running until MPI_Finalize. If several
// threads come at once, one begins and the others wait for it.
bool begin(Registry& registry) {
  const std::lock_guard lock(registry.mutex);
  if (registry.is_running) return true;
  if (registry.state_key != MPI_KEYVAL_INVALID || !is_mpi_running()) return false;
  int end_key = MPI_KEYVAL_INVALID;
  check(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finish, &end_key, nullptr),
        "Comm_create_keyval");
  check(PMPI_Comm_set_attr(MPI_COMM_SELF, end_key, &registry), "Comm_set_attr");
  check(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_state, &registry.state_key, nullptr),
        "Comm_create_keyval");
  registry.is_running = true;
  return true;
}

CommState* make(Registry& registry, MPI_Comm comm) {
  const auto state = std::make_shared<CommState>();
  describe(comm, *state);
  check(PMPI_Comm_set_attr(comm, registry.state_key, state.get()), "Comm_set_attr");
  const std::lock_guard lock(registry.mutex);
  registry.states.push_back(state);
  return state.get();
}

CommState* look_up(MPI_Comm comm) {
  Registry& registry = Registry::get();
  if (comm == MPI_COMM_NULL) return nullptr;
  if (!registry.is_running.load(std::memory_order_acquire) && !begin(registry)) return nullptr;
  const std::uint64_t turn = registry.turn.load();
  CommState* state = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, registry.state_key, &state, &found) != MPI_SUCCESS) return nullptr;
  if (!found) state = make(registry, comm);
  last = {comm, turn, state};
  return state;
}

// Counts a call on the way to joining, and joins. Takes no lock: joining is collective, and another
// thread may be joining another communicator, whose ranks must not wait for this one.
void join_in_time(MPI_Comm comm, CommState& state, bool may_wait) {
  state.why = FallbackReason::early;
  if (state.joins_in > 1) {
    --state.joins_in;
    return;
  }
  if (!may_wait && waits_to_join(state)) return;
  join(comm, state, may_wait);   // if it throws the next call tries again
  state.joins_in = 0;
}

}  // namespace

void begin_states(void (*before_end)()) {
  Registry::get().before_end = before_end;
  begin(Registry::get());
}

CommState* find_state(MPI_Comm comm) {
  const Last& known = last;   // one look for the thread's own: each is a call
  const bool is_last =
      known.state && known.comm == comm && known.turn == Registry::get().turn.load();
  return is_last ? known.state : look_up(comm);
}

CommState* state_of(MPI_Comm comm) {
  CommState* const state = find_state(comm);
  if (state && state->joins_in > 0) join_in_time(comm, *state, true);
  return state;
}

CommState* state_for_start(MPI_Comm comm) {
  CommState* const state = find_state(comm);
  if (state && state->joins_in > 0) join_in_time(comm, *state, false);
  return state;
}

}  // namespace paceline::preload
