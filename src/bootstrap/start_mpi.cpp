#include "bootstrap/start_mpi.hpp"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/error.hpp"
#include "bootstrap/mpi_settings.hpp"
#include "transport/mpi/pmi.hpp"
#include "transport/mpi/start_deadline.hpp"

namespace paceline {
namespace {

// The MPI that this process has started. A process can start an MPI only once.
struct Started {
  std::string card;   // name and ranks; empty: none has been started
  std::shared_ptr<MpiLibrary> library;
  std::unique_ptr<PmiServer> server;
};

Started& started() {
  // Never destroyed, since objects that its store needs may be gone by then.
  static Started* const one = new Started;
  return *one;
}

// Returns text such as "rank 0 1 | rank 2 3", of limited length.
std::string list(const Nodes& nodes) {
  constexpr std::size_t kShown = 200;
  std::string text;
  for (int node = 0; node < nodes.count() && text.size() < kShown; ++node) {
    text += node ? " | rank" : "rank";
    for (int rank : nodes.members(node))
      if (text.size() < kShown) text += str(" ", rank);
  }
  return text.size() < kShown ? text : text + " ...";
}

// Returns the error that explains why a library is needed, and how to get one.
std::string needs_mpi(const Nodes& nodes, const WorldConfig& config, const std::string& trouble) {
  const std::string apart =
      nodes.why_apart.empty() ? std::string("transport=mpi is set") : nodes.why_apart;
  return str("start-up: ", config.ranks, " ranks on ", nodes.count(), " nodes (", list(nodes),
             "): ", apart, ". Between nodes messages travel by an MPI of MPICH's family, and ",
             trouble, trouble.ends_with('.') ? "" : ".", " Either `pip install 'paceline[mpi]'` ",
             "on every node and start as before; or start with `mpiexec -n ", config.ranks,
             " python script.py`.");
}

std::shared_ptr<MpiLibrary> load(const Nodes& nodes, const WorldConfig& config) {
  std::string tried;
  for (const std::string& path : config.mpi_libraries) {
    try {
      const auto library = MpiLibrary::load(path);
      if (library->abi() == "openmpi") {
        tried += str("; ", path.empty() ? std::string("the one in this process") : path,
                     " is Open MPI, which only its own launcher can start");
        continue;
      }
      if (library->is_initialized())
        fail(Fault::refusal, "start-up: MPI is initialised in this process already, so it cannot ",
             "be started for these ", config.ranks, " ranks. Call paceline.init() or ",
             "init_process_group() before `from mpi4py import MPI`; or start with mpiexec.");
      return library;
    } catch (const Error& error) {
      if (error.fault() == Fault::refusal && path.empty()) throw;
      tried += str("; ", error.what());
    }
  }
  fail(Fault::resource, needs_mpi(nodes, config, "none was found" + tried));
}

std::string random_name() {
  std::uint64_t bits[2];
  if (getrandom(bits, sizeof(bits), 0) != sizeof(bits))
    fail(Fault::resource, "start-up: the system has no random numbers.");
  return str("paceline-", bits[0], "-", bits[1]);
}

// True if the ranks have started an MPI for this world; false if none has started one. Throws if
// only some have, or for another world.
bool is_started(Bootstrap& meeting) {
  const std::string& mine = started().card;
  const std::string none = "none";
  const std::vector<std::string> cards =
      meeting.allgather(mine.empty() ? none : str(mine, " rank ", meeting.rank()));
  const bool nowhere = std::all_of(cards.begin(), cards.end(),
                                   [&](const std::string& card) { return card == none; });
  if (nowhere) return false;
  for (std::size_t r = 0; r < cards.size(); ++r)
    if (cards[r] != str(mine, " rank ", r))
      fail(Fault::refusal, "start-up: MPI has been started in some of these ", meeting.ranks(),
           " ranks for another world, of other ranks or in another order, and a process can ",
           "start it once. Join the world of all ranks first, and split() it.");
  return true;
}

}  // namespace

MpiThreads init_mpi(MpiLibrary& library) {
  choose_netmod(library);
  return library.init();
}

MpiJob start_mpi(Bootstrap& meeting, std::shared_ptr<Store> store, const Nodes& nodes,
                 const WorldConfig& config) {
  const auto limit = std::chrono::milliseconds(config.start_timeout_ms);
  if (!is_started(meeting)) {
    std::shared_ptr<MpiLibrary> library;
    collective_try(meeting, [&] { library = load(nodes, config); });
    widen_buffers(*library, meeting);
    if (nodes.is_split) share_no_memory(*library);
    const std::string name = meeting.allgather(random_name()).front();
    auto server = std::make_unique<PmiServer>(
        std::move(store), PmiJob{name, meeting.rank(), nodes.of_rank}, limit);
    server->run([&] { init_mpi(*library); }, meeting.processes());
    started() = {str(name, " of ", meeting.ranks()), std::move(library), std::move(server)};
  }
  std::shared_ptr<MpiWorld> world;
  {
    const StartDeadline deadline(meeting.rank(), kNotMet, limit, meeting.processes());
    world = started().library->open(nullptr);
  }
  if (world->ranks() != meeting.ranks() || world->rank() != meeting.rank())
    fail(Fault::refusal, "start-up: ", started().library->version(), " counts this process as ",
         "rank ", world->rank(), " of ", world->ranks(), ", not as rank ", meeting.rank(), " of ",
         meeting.ranks(), ": it does not take part in the process management interface that it ",
         "was offered. `pip install 'paceline[mpi]'` brings one that does.");
  return {started().library, std::move(world)};
}

void finish_mpi() {
  if (started().card.empty() || started().library->is_finalized()) return;
  started().server->finish([] { started().library->finalize(); });
}

}  // namespace paceline
