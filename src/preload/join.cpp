#include "join.hpp"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/options.hpp"
#include "base/random.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/options_config.hpp"
#include "host_progress.hpp"
#include "presence.hpp"
#include "runtime/diagnostics/call_site.hpp"
#include "report.hpp"
#include "transport/mpi/abi/header.hpp"

namespace paceline::preload {
namespace {

// Number of the call that joins a communicator. Programs make many, use them once or twice and free
// them, and joining takes longer than such calls. MPI_COMM_WORLD stays and joins at its first call.
constexpr int kJoiningCall = 3;

}  // namespace

// The communicator of all processes. Communicators joined later are groups of it.
struct Everybody {
  Communicator communicator;
  bool drives_started = false;
  std::vector<int> position_of;  // by rank in MPI_COMM_WORLD
  std::uint64_t id = 0;          // equal on its ranks, and nowhere else
};

struct Agreement {
  bool all_ready = false, same_options = false;
  bool one_by_one = false;                 // no rank calls MPI in several threads at once
  std::shared_ptr<const Everybody> world;  // the same on all ranks; null: none in common
  std::uint64_t id = 0;                    // of these ranks; no other communicator has it
  std::uint64_t children = 0;              // communicators made from this one
};

namespace {

// A number that differs between processes.
std::uint64_t seed() {
  std::uint64_t bits = 0;
  return getrandom(&bits, sizeof(bits), 0) == sizeof(bits) ? bits : std::uint64_t(getpid());
}

// State of this process besides its communicators.
struct Process {
  std::mutex mutex;
  std::shared_ptr<const Everybody> everybody;  // null: no such communicator yet
  Random numbers{seed()};        // for communicators whose rank 0 is this process
  std::optional<uid_t> user;   // user of this process at its first communicator

  static Process& get() {
    static Process* const one = new Process;
    return *one;
  }

  bool has_world() {
    const std::lock_guard lock(mutex);
    return everybody != nullptr;
  }
};

// A communicator of MPI for Paceline alone. It is split, not duplicated, so that MPI copies none of
// the program's attributes to it.
struct Own {
  MPI_Comm comm = MPI_COMM_NULL;
  explicit Own(MPI_Comm from, int rank = 0) {
    check(PMPI_Comm_split(from, 0, rank, &comm), "Comm_split");
  }
  ~Own() { PMPI_Comm_free(&comm); }
  Own(const Own&) = delete;
};

// Returns the options with this front end's defaults: no time-out, because MPI has none and ranks
// may wait for hours; and progress inside the program's own calls until it starts the first one
// without waiting for it.
WorldConfig config_of_drop_in() {
  WorldConfig config = config_from_options();
  const auto is_default = [](Option option) { return value_of(row_of(option)).is_default; };
  if (is_default(Option::timeout_ms)) config.timeout_ms = 0;
  if (is_default(Option::progress)) config.progress = Progress::when_started;
  config.profile_dir = "";   // the profiler records the program's calls of MPI instead
  config.meanwhile = progress_mpi;
  config.call_site = native_call_site;
  (void)text_of(Option::preload);  // throws if it is wrong
  (void)text_of(Option::preload_summary);
  return config;
}

// Returns the ranks of `comm`, all of which are in MPI_COMM_WORLD, as ranks in that.
std::vector<int> world_ranks(MPI_Comm comm, int ranks) {
  MPI_Group mine = MPI_GROUP_NULL, all = MPI_GROUP_NULL;
  check(PMPI_Comm_group(comm, &mine), "Comm_group");
  check(PMPI_Comm_group(MPI_COMM_WORLD, &all), "Comm_group");
  std::vector<int> from(std::size_t(ranks), 0), to(std::size_t(ranks), 0);
  for (int r = 0; r < ranks; ++r) from[std::size_t(r)] = r;
  check(PMPI_Group_translate_ranks(mine, ranks, from.data(), all, to.data()),
        "Group_translate_ranks");
  PMPI_Group_free(&mine);
  PMPI_Group_free(&all);
  return to;
}

// Every rank sends two flags, a digest of its option preload, and the number of its communicator of
// all processes. A number is the same on all ranks if its least value equals its
// greatest (the negated least of its negative).
Agreement agree(MPI_Comm comm, const CommState& state, bool ready) {
  constexpr int kPositive = 2;   // bits less, for a number that has a negative one
  Process& process = Process::get();
  std::shared_ptr<const Everybody> everybody;
  long digest = 17, id = LONG_MAX;
  if (ready)
    for (char c : text_of(Option::preload)) digest = (digest * 31 + c) % 1000000007;
  {
    const std::lock_guard lock(process.mutex);
    everybody = process.everybody;
    if (state.rank == 0) id = static_cast<long>(process.numbers.next() >> kPositive);
  }
  int level = MPI_THREAD_MULTIPLE;
  check(PMPI_Query_thread(&level), "Query_thread");
  const long mine = everybody ? static_cast<long>(everybody->id) : 0;
  long said[] = {ready, digest, -digest, mine, -mine, id, level < MPI_THREAD_MULTIPLE};
  check(PMPI_Allreduce(MPI_IN_PLACE, said, 7, MPI_LONG, MPI_MIN, comm), "Allreduce");
  if (said[3] != -said[4]) everybody = nullptr;
  return {said[0] == 1, said[1] == -said[2], said[6] == 1, everybody,
          static_cast<std::uint64_t>(said[5])};
}

void say(const CommState& state, const std::string& trouble) {
  std::fprintf(stderr, "paceline: preload: %s Calls on this communicator of %d ranks are the host "
               "MPI's.\n", trouble.c_str(), state.ranks);
}

// Returns the text of the error that `step` throws on this rank; empty if none.
template <class Step>
std::string trouble_of(Step&& step) {
  try {
    step();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

// Joins the ranks of `comm` as a world of their own; invalid on all ranks if one of them failed.
Communicator join_apart(MPI_Comm comm, CommState& state, const WorldConfig& config) {
  Communicator joined;
  const std::string trouble = trouble_of([&] {
    const Own own(comm, state.rank);
    joined = join_mpi(*mpi::make_from_header(), &own.comm, config);
  });
  const bool has_joined = trouble.empty();
  int all_have[] = {has_joined, has_joined && joined.has_progress_thread()};
  check(PMPI_Allreduce(MPI_IN_PLACE, all_have, 2, MPI_INT, MPI_MIN, comm), "Allreduce");
  if (!has_joined) say(state, trouble);
  state.drives_started = all_have[1];
  return all_have[0] ? joined : Communicator();
}

bool has_all_processes(MPI_Comm comm) {
  int how = MPI_UNEQUAL;
  check(PMPI_Comm_compare(comm, MPI_COMM_WORLD, &how), "Comm_compare");
  return how != MPI_UNEQUAL;
}

// Keeps `joined`, which has all processes, for communicators to come. Threads may join several such
// communicators at once, and finish in a different order on each rank. All ranks keep the one with
// the least number.
void remember(MPI_Comm comm, const CommState& joined) {
  Process& process = Process::get();
  const std::vector<int> ranks = world_ranks(comm, joined.ranks);
  auto everybody = std::make_shared<Everybody>();
  everybody->communicator = joined.communicator;
  everybody->drives_started = joined.drives_started;
  everybody->position_of.assign(ranks.size(), 0);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    everybody->position_of[std::size_t(ranks[r])] = static_cast<int>(r);
  everybody->id = joined.agreed->id;
  joined.agreed->world = everybody;
  std::shared_ptr<const Everybody> former;  // destroyed after the lock is released
  const std::lock_guard lock(process.mutex);
  if (process.everybody && process.everybody->id < everybody->id) return;
  former = std::exchange(process.everybody, everybody);
}

Communicator part_of(const Everybody& world, const std::vector<int>& ranks, std::uint64_t id) {
  std::vector<int> positions;
  for (int rank : ranks) positions.push_back(world.position_of[std::size_t(rank)]);
  Communicator whole = world.communicator;
  return whole.subgroup(positions, id);
}

// A new communicator opens the memory of other ranks, which requires the user of the first one.
void check_user() {
  Process& process = Process::get();
  const std::lock_guard lock(process.mutex);
  if (!process.user) process.user = geteuid();
  if (*process.user != geteuid() || prctl(PR_GET_DUMPABLE) == 0)
    fail(Fault::resource, "this rank has changed its user (setuid) or become undumpable "
         "(PR_SET_DUMPABLE): other ranks could not open its memory.");
}

bool is_any_wanted() {
  for (int c = 0; c < kCollectives; ++c)
    if (is_wanted(static_cast<Collective>(c))) return true;
  return false;
}

// True if the program may go on after a rank's death (Open MPI's ULFM, mpiexec --with-ft ulfm). A
// revoke or a death must then end all waits with MPI's own errors, so the host serves all calls.
bool may_recover() {
  static const auto* const enabled =
      static_cast<const bool*>(dlsym(RTLD_DEFAULT, "ompi_ftmpi_enabled"));
  return enabled && *enabled;
}

void say_that_it_recovers() {
  static std::atomic_flag is_said;
  int world_rank = 0;
  check(PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank), "Comm_rank");
  if (world_rank != 0 || is_said.test_and_set()) return;
  std::fprintf(stderr, "paceline: preload: MPI runs with fault tolerance (ULFM), whose revokes and "
               "errors only the host MPI can give; all calls pass through to it.\n");
}

// Agrees with the ranks of `comm` to join it.
void agree_to_join(MPI_Comm comm, CommState& state) {
  const bool has_world = Process::get().has_world();
  const std::string trouble = trouble_of([=] {
    check_user();
    if (has_world) return;   // whose options hold for its groups, too
    begin_progress();
    (void)config_of_drop_in();
  });
  state.agreed = std::make_shared<Agreement>(agree(comm, state, trouble.empty()));
  if (!trouble.empty()) say(state, trouble);
  if (state.agreed->all_ready && !state.agreed->same_options && state.rank == 0)
    say(state, "PACELINE_PRELOAD differs between ranks; all must have the same.");
}

// Returns what the ranks of a new communicator need not ask each other, since they are all in the
// one from which it is made. Null if that one is not in the world. All its ranks call this.
std::shared_ptr<Agreement> inherited(const CommState* from) {
  if (!from || !from->agreed || !from->agreed->world) return nullptr;
  Agreement& parent = *from->agreed;
  const std::uint64_t id = Random::mix(parent.id ^ Random::mix(++parent.children));
  return std::make_shared<Agreement>(
      Agreement{true, true, parent.one_by_one, parent.world, id});
}

}  // namespace

void attach(MPI_Comm from, MPI_Comm made) noexcept try {
  auto agreed = inherited(from == MPI_COMM_NULL ? nullptr : find_state(from));
  CommState* const state = made == MPI_COMM_NULL ? nullptr : find_state(made);
  if (!state || state->joins_in == 0) return;
  if (agreed) {
    state->agreed = std::move(agreed);
    return;
  }
  agree_to_join(made, *state);
  if (!waits_to_join(*state) || !has_all_processes(made)) return;
  join(made, *state, false);
  state->joins_in = 0;
  // Another thread could ask for it meanwhile, and find it here on some ranks only.
  CommState* const all = state->agreed->one_by_one ? find_state(MPI_COMM_WORLD) : nullptr;
  if (all && all->joins_in > 0) all->agreed = inherited(state);
} catch (...) {
  report("joining a new communicator", made);
}

bool waits_to_join(const CommState& state) {
  const Agreement* const agreed = state.agreed.get();
  return !agreed || (agreed->all_ready && agreed->same_options && is_any_wanted() &&
                     !agreed->world);
}

void describe(MPI_Comm comm, CommState& state) {
  int between = 0;
  check(PMPI_Comm_test_inter(comm, &between), "Comm_test_inter");
  check(PMPI_Comm_rank(comm, &state.rank), "Comm_rank");
  check(PMPI_Comm_size(comm, &state.ranks), "Comm_size");
  state.why = between ? FallbackReason::between_groups : FallbackReason::one_rank;
  if (between || state.ranks == 1) return;
  if (!are_all_present()) {
    state.why = FallbackReason::not_joined;
    return;
  }
  if (may_recover()) {
    state.why = FallbackReason::recovers;
    return say_that_it_recovers();
  }
  state.joins_in = comm == MPI_COMM_WORLD ? 1 : kJoiningCall;
}

void join(MPI_Comm comm, CommState& state, bool may_wait) {
  if (may_wait) agree_to_join(comm, state);   // anew: a rank may have changed its user
  const Agreement& agreed = *state.agreed;
  state.why = FallbackReason::not_joined;
  if (!agreed.all_ready || !agreed.same_options) return;
  state.why = FallbackReason::option;
  if (!is_any_wanted()) return;
  state.why = FallbackReason::not_joined;
  const Everybody* const world = agreed.world.get();
  state.communicator = world ? part_of(*world, world_ranks(comm, state.ranks), agreed.id)
                             : join_apart(comm, state, config_of_drop_in());
  if (!state.communicator.valid()) return;
  if (world) state.drives_started = world->drives_started;
  else if (has_all_processes(comm)) remember(comm, state);
}

void leave_worlds() {
  Process& process = Process::get();
  const std::lock_guard lock(process.mutex);
  process.everybody = nullptr;
  end_progress();
}

bool is_wanted(Collective collective) {
  static const std::array<bool, kCollectives> wanted = [] {
    std::array<bool, kCollectives> all{};
    for (int c = 0; c < kCollectives; ++c)
      all[std::size_t(c)] = is_named(Option::preload, name_of(static_cast<Collective>(c)));
    return all;
  }();
  return wanted[static_cast<std::size_t>(collective)];
}

}  // namespace paceline::preload
