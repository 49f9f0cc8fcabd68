#include "bootstrap/join.hpp"

#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>

#include "base/error.hpp"
#include "bootstrap/open_world.hpp"
#include "bootstrap/start_card.hpp"
#include "bootstrap/start_mpi.hpp"
#include "machine/machine_choice.hpp"
#include "runtime/progress/clock.hpp"
#include "transport/mpi/start_deadline.hpp"
#include "transport/route/route.hpp"
#include "transport/shm/nodes.hpp"
#include "transport/shm/shm.hpp"
#include "transport/staging.hpp"

namespace paceline {
namespace {

ShmConfig shm_config(const WorldConfig& config, const std::vector<int>& names = {}) {
  return {config.shm_dir, config.shm_bytes, config.stage_bytes, names, config.single_copy,
          config.stopped_ms};
}

// Connects the ranks of this rank's node through shared memory. `neighbours`: their numbers in the
// whole meeting. `notes`: this rank's on entry, those of all ranks on return.
std::unique_ptr<Transport> make_near(Bootstrap& meeting, const std::vector<int>& neighbours,
                                     const WorldConfig& config, std::vector<std::string>& notes) {
  PartBootstrap part(meeting, neighbours);
  std::unique_ptr<Transport> near;
  notes = collective_try(meeting, [&] { near = make_shm(part, shm_config(config, neighbours)); },
                   notes.front());
  return near;
}

// Returns the least bytes of a staging buffer over the nodes with several ranks; 0: none may be
// used. All nodes decide alike.
std::size_t agree_on_staging(MpiWorld& world, Transport& near, std::size_t neighbours) {
  const StagingBuffers* const stages = near.stages();
  const std::size_t own = neighbours == 1 ? ~std::size_t{0} : stages ? stages->bytes() : 0;
  std::size_t least = own;
  for (const std::string& bytes : world.allgather(str(own)))
    least = std::min<std::size_t>(least, std::stoull(bytes));
  return least == ~std::size_t{0} ? 0 : least;
}

// Waits for all ranks in a barrier through memory, and drives MPI meanwhile. After its last message
// a rank does not call MPI any more, and an MPI may still hold that message: MPICH 5.0.2 over
// libfabric does if it counts other nodes than we do. Its receiver would wait for ever.
void meet_in_memory(Communicator& world, MpiWorld& mpi, int limit_ms) {
  constexpr std::uint64_t kMeeting = 0x6d656574;
  std::vector<int> all(std::size_t(world.size()));
  std::iota(all.begin(), all.end(), 0);
  Call barrier;
  barrier.algorithm = "dissemination";   // uses no staging buffers: they are the world's
  barrier.timeout_ms = limit_ms;
  Communicator apart = world.subgroup(all, kMeeting);   // leaves the world's call numbers alone
  Request met = apart.start(barrier);
  while (!met.wait_for(1)) mpi.wake_peers();
}

// Joins ranks of a node through shared memory, and all others through MPI.
Communicator join_nodes(MpiLibrary& library, MpiWorld& world, const Nodes& nodes,
                        WorldConfig config) {
  const bool far = config.only_mpi || nodes.count() > 1;
  // A progress thread could call MPI while the program does.
  if (far && library.init() != MpiThreads::multiple) config.progress = Progress::caller;
  config.nodes = nodes.of_rank;
  if (config.only_mpi) {
    config.nodes.resize(std::size_t(config.ranks));   // as if every rank had a node of its own
    std::iota(config.nodes.begin(), config.nodes.end(), 0);
    if (const std::string note = machine_note(config, library.about()); !note.empty())
      config.known = agree_on_machine(world.allgather(note), config);
    return join_transport(world.transport(config.mpi), config);
  }
  const std::vector<int> neighbours = nodes.members(nodes.of_rank[std::size_t(config.rank)]);
  std::vector<std::string> notes{far ? machine_note(config, library.about()) : ""};
  std::unique_ptr<Transport> near = make_near(world, neighbours, config, notes);
  if (!far) {
    Communicator joined = join_transport(std::move(near), config);
    meet_in_memory(joined, world, config.start_timeout_ms);
    joined.attach_together(config.start_timeout_ms);
    world.free();  // an MPI has only some thousands of communicators
    return joined;
  }
  config.known = agree_on_machine(notes, config);
  config.node_staging = agree_on_staging(world, *near, neighbours.size());
  std::unique_ptr<Transport> distant = world.transport(config.mpi);
  return join_transport(make_route(std::move(near), neighbours, std::move(distant)), config);
}

// Fails if shared memory is required and the ranks are on several nodes. Warns of ranks of one
// machine that share no memory, since their messages are many times slower.
void check_apart(const Nodes& nodes, const WorldConfig& config) {
  if (config.only_shm && nodes.count() > 1)
    fail(Fault::resource, "start-up: ", nodes.why_apart, ", and transport=shm forbids all else. ",
         "Use transport=auto (PACELINE_TRANSPORT).");
  if (!nodes.why_split.empty() && !config.only_mpi)
    std::fprintf(stderr, "paceline: %s. They are on one machine, but count as ranks of several "
                         "nodes, which takes longer. To share memory, run them in one container "
                         "and as one user.\n", nodes.why_split.c_str());
}

void check_rank(const WorldConfig& config) {
  if (config.ranks < 1 || config.rank < 0 || config.rank >= config.ranks)
    fail(Fault::usage, "start-up: rank ", config.rank, " of ", config.ranks,
         "; ranks go from 0 to the number of ranks - 1.");
}

Communicator join_meeting(StoreBootstrap& meeting, std::shared_ptr<Store> store,
                          WorldConfig config) {
  const std::vector<std::string> cards = exchange_cards(meeting, config);
  const Nodes nodes = find_nodes(meeting, config.shm_dir, config.node);
  check_apart(nodes, config);
  check_cards_of_nodes(cards, nodes.of_rank);
  if (config.ranks == 1 || (nodes.count() == 1 && !config.only_mpi))
    return join_transport(make_shm(meeting, shm_config(config)), config, true);
  const MpiJob job = start_mpi(meeting, std::move(store), nodes, config);
  const StartDeadline deadline(config.rank, kNotMet,
                               std::chrono::milliseconds(config.start_timeout_ms),
                               meeting.processes());
  return join_nodes(*job.library, *job.world, nodes, config);
}

// Number of failed tries to join, by world and rank.
class Tries {
 public:
  int begin(const std::string& world) {
    const std::lock_guard lock(mutex_);
    return tries_[world]++;
  }
  void forget(const std::string& world) {
    const std::lock_guard lock(mutex_);
    tries_.erase(world);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> tries_;
};

Tries& all_tries() {
  static Tries tries;
  return tries;
}

}  // namespace

// A rank that fails tells the others after it has released all that it holds, since telling may
// take a descriptor.
Communicator join_world(std::shared_ptr<Store> store, WorldConfig config) {
  check_rank(config);
  StoreBootstrap meeting(*store, config.name, config.rank, config.ranks,
                       std::chrono::milliseconds(config.start_timeout_ms), config.idle);
  try {
    return join_meeting(meeting, store, std::move(config));
  } catch (const Error& error) {
    meeting.end(error.fault(), error.what());
    throw;
  }
}

Communicator join_again(std::shared_ptr<Store> store, WorldConfig config,
                        const std::string& place) {
  check_rank(config);
  const double end_s = now_s() + 1e-3 * config.start_timeout_ms;
  const std::string name = config.name, world = str(place, " ", name, " ", config.rank);
  for (std::string given_up;;) {
    if (const int tries = all_tries().begin(world); tries > 0)
      config.name = str(name, ".", tries);
    try {
      Communicator joined = join_world(store, config);
      all_tries().forget(world);
      return joined;
    } catch (const GivenUp& error) {
      config.start_timeout_ms = static_cast<int>(1e3 * (end_s - now_s()));
      if (config.start_timeout_ms <= 0) throw;
      given_up = str(" Before that: ", error.what());
    } catch (const Error& error) {
      if (given_up.empty()) throw;
      throw Error(error.fault(), error.what() + given_up);
    }
  }
}

Communicator join_mpi(MpiLibrary& library, const void* communicator, WorldConfig config) {
  init_mpi(library);
  // The deadline is needed since MPI waits without a limit.
  const StartDeadline deadline(library.rank(), kNotMet, std::chrono::milliseconds(
      config.start_timeout_ms));
  const std::shared_ptr<MpiWorld> world = library.open(communicator);
  config.rank = world->rank();
  config.ranks = world->ranks();
  const std::vector<std::string> cards = exchange_cards(*world, config);
  Nodes nodes;
  if (!config.only_mpi) {
    nodes = find_nodes(*world, config.shm_dir, config.node);
    check_apart(nodes, config);
    check_cards_of_nodes(cards, nodes.of_rank);
  }
  return join_nodes(library, *world, nodes, config);
}

}  // namespace paceline
