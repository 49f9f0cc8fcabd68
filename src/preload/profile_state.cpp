#include "profile_state.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <map>

#include "base/error.hpp"
#include "base/options.hpp"
#include "base/str.hpp"
#include "runtime/diagnostics/call_site.hpp"

namespace paceline::preload {
namespace {

// Names of the collectives, in the order of their numbers.
constexpr const char* kNames[] = {
#define PACELINE_ROW(kind, name, nonblocking, fortran, types, values, bytes) #fortran,
#include "mpi_calls.def"
};

struct State {
  std::mutex mutex;
  std::unique_ptr<Recorder> recorder;
  bool has_tried = false;
  std::atomic<bool> is_running{false};
  std::atomic<std::uint64_t> turn{1};   // changes when a communicator goes
  int key = MPI_KEYVAL_INVALID;
  Pending pending;
  Persistent persistent;

  // Never destroyed: MPI may delete attributes while the process exits.
  static State& get() {
    static State* const one = new State;
    return *one;
  }
};

// Latest lookup of this thread.
struct Last {
  MPI_Comm comm{};
  std::uint64_t turn = 0;
  Watched* found = nullptr;
};
thread_local Last last;

int forget(MPI_Comm, int, void* value, void*) {
  ++State::get().turn;
  delete static_cast<Watched*>(value);
  return MPI_SUCCESS;
}

// MPI_Finalize begins with deleting the attributes of MPI_COMM_SELF.
int finish(MPI_Comm, int, void*, void*) noexcept {
  State& state = State::get();
  if (!state.is_running.exchange(false)) return MPI_SUCCESS;
  compare_clocks("end");
  state.recorder->finish();
  return MPI_SUCCESS;
}

bool is_mpi_running() {
  int begun = 0, over = 0;
  PMPI_Initialized(&begun);
  if (begun) PMPI_Finalized(&over);
  return begun && !over;
}

// Appends the ranks in MPI_COMM_WORLD of a group; -1: not in it. Frees the group.
void add_ranks(MPI_Group group, std::vector<int>& ranks) {
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> from(std::size_t(size), 0), to(std::size_t(size), 0);
  for (int r = 0; r < size; ++r) from[std::size_t(r)] = r;
  PMPI_Group_translate_ranks(group, size, from.data(), world, to.data());
  for (const int rank : to) ranks.push_back(rank == MPI_UNDEFINED ? -1 : rank);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
}

// Returns the number of ranks that this one hears by the communicator's topology.
int neighbours_of(MPI_Comm comm, int rank) {
  int kind = MPI_UNDEFINED, in = 0, out = 0, weighted = 0;
  if (PMPI_Topo_test(comm, &kind) != MPI_SUCCESS) return 0;
  if (kind == MPI_CART && PMPI_Cartdim_get(comm, &in) == MPI_SUCCESS) return 2 * in;
  if (kind == MPI_GRAPH && PMPI_Graph_neighbors_count(comm, rank, &in) == MPI_SUCCESS) return in;
  if (kind == MPI_DIST_GRAPH &&
      PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted) == MPI_SUCCESS)
    return in;
  return 0;
}

Watched* look_up(State& state, MPI_Comm comm) {
  const std::uint64_t turn = state.turn.load();
  Watched* known = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, state.key, &known, &found) != MPI_SUCCESS) return nullptr;
  if (!found) {
    auto made = std::make_unique<Watched>();
    int between = 0;
    PMPI_Comm_rank(comm, &made->rank);
    PMPI_Comm_test_inter(comm, &between);
    made->is_between_groups = between != 0;
    std::vector<int> ranks;
    MPI_Group group = MPI_GROUP_NULL;
    PMPI_Comm_group(comm, &group);
    add_ranks(group, ranks);
    if (between) {
      PMPI_Comm_remote_group(comm, &group);
      add_ranks(group, ranks);
      std::sort(ranks.begin(), ranks.end());
    }
    made->ranks = int(ranks.size());
    if (!between) made->neighbours = neighbours_of(comm, made->rank);
    made->id = state.recorder->communicator(ranks);
    PMPI_Comm_set_attr(comm, state.key, made.get());
    known = made.release();
  }
  last = {comm, turn, known};
  return known;
}

}  // namespace

bool open_profile() {
  State& state = State::get();
  const std::lock_guard lock(state.mutex);
  if (state.has_tried || !is_mpi_running()) return state.is_running;
  state.has_tried = true;
  ProfileConfig config;
  PMPI_Comm_rank(MPI_COMM_WORLD, &config.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &config.ranks);
  try {
    config.folder = text_of(Option::profile);
    config.bytes = std::size_t(number_of(Option::profile_bytes));
    config.node = text_of(Option::node);
    config.source = "mpi";
    state.recorder = std::make_unique<Recorder>(config);
    for (std::size_t i = 0; i < std::size(kNames); ++i)
      state.recorder->note(str("{\"collective\":", i, ",\"name\":\"", kNames[i], "\"}"));
  } catch (const Error& error) {
    std::fprintf(stderr, "paceline: rank %d: %s Nothing is recorded there.\n", config.rank,
                 error.what());
    return false;
  }
  int end_key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finish, &end_key, nullptr);
  PMPI_Comm_set_attr(MPI_COMM_SELF, end_key, &state);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &state.key, nullptr);
  state.is_running = true;
  return true;
}

Watched* watched(MPI_Comm comm) {
  State& state = State::get();
  if (last.found && last.comm == comm && last.turn == state.turn.load()) return last.found;
  if (comm == MPI_COMM_NULL) return nullptr;
  if (!state.is_running.load(std::memory_order_acquire) && !open_profile()) return nullptr;
  return look_up(state, comm);
}

Recorder& recorder() { return *State::get().recorder; }
Pending& pending() { return State::get().pending; }
Persistent& persistent() { return State::get().persistent; }

// Looks up a table that only grows; a thread that finds the address needs no lock. Programs have
// some hundreds of call sites; those beyond the table share one number.
std::uint32_t site_of(const void* address) {
  constexpr std::size_t kSites = 4096;
  struct Place {
    std::atomic<const void*> address;
    std::uint32_t number;
  };
  static std::array<Place, kSites> places;
  static std::mutex mutex;
  const std::size_t begin = (reinterpret_cast<std::uintptr_t>(address) * 0x9e3779b97f4a7c15) >> 52;
  for (std::size_t i = 0; i < 16; ++i) {
    Place& place = places[(begin + i) % kSites];
    const void* there = place.address.load(std::memory_order_acquire);
    if (there == address) return place.number;
    if (there) continue;
    const std::lock_guard lock(mutex);
    there = place.address.load();
    if (there && there != address) continue;
    if (!there) {
      place.number = recorder().site(describe_place(static_cast<const char*>(address) - 1));
      place.address.store(address, std::memory_order_release);
    }
    return place.number;
  }
  return recorder().site("elsewhere");
}

void Pending::add(MPI_Request request, CallRecord* record, bool is_persistent) {
  const std::lock_guard lock(mutex_);
  calls_.emplace_back(request, Entry{record, is_persistent});
  count_ = calls_.size();
}

std::optional<Pending::Entry> Pending::take(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(calls_.begin(), calls_.end(),
                                  [&](const auto& call) { return call.first == request; });
  if (found == calls_.end()) return {};
  const Entry entry = found->second;
  calls_.erase(found);
  count_ = calls_.size();
  return entry;
}

void Persistent::add(MPI_Request request, const Operation& operation) {
  const std::lock_guard lock(mutex_);
  operations_.emplace_back(request, operation);
  count_ = operations_.size();
}

bool Persistent::remove(MPI_Request request) {
  const std::lock_guard lock(mutex_);
  const auto erased =
      std::erase_if(operations_, [&](const auto& one) { return one.first == request; });
  count_ = operations_.size();
  return erased != 0;
}

std::optional<CallEntry> Persistent::next_start(MPI_Request request, std::uint32_t site) {
  const std::lock_guard lock(mutex_);
  for (auto& [own, operation] : operations_)
    if (own == request)
      return CallEntry{operation.name, operation.id, operation.starts++, site, operation.bytes,
                       true};
  return {};
}

}  // namespace paceline::preload
