// Worlds and communicators: joining, splitting and leaving.
#include <atomic>
#include <memory>
#include <string>

#include "base/options.hpp"
#include "base/options_launcher.hpp"
#include "bootstrap/join.hpp"
#include "bootstrap/open_world.hpp"
#include "bootstrap/options_config.hpp"
#include "edge.hpp"
#include "runtime/diagnostics/call_site.hpp"
#include "transport/sealed_store.hpp"

using namespace paceline;
using namespace paceline::capi;

namespace {

WorldConfig config_of_c() {
  WorldConfig config = config_from_options();
  config.call_site = native_call_site;
  return config;
}

Communicator join_alone() { return join_world(std::make_shared<MemoryStore>(), config_of_c()); }

Communicator join_folder(const std::string& folder, const WorldConfig& config) {
  return join_again(std::make_shared<SealedStore>(std::make_shared<FileStore>(folder),
                                                  text_of(Option::secret)), config, folder);
}

// The program that brings an MPI begins and ends it, and chooses its thread level.
Communicator join_mpi_of_process(const void* communicator, const char* where) {
  const auto library = MpiLibrary::load("");
  if (!library->is_initialized() || library->is_finalized())
    fail(Fault::usage, where, ": the MPI in this process is ",
         library->is_finalized() ? "finalised" : "not initialised",
         "; join between MPI_Init and MPI_Finalize, or alone: paceline_init_store(NULL, 0, 1, "
         "...).");
  return join_mpi(*library, communicator, config_of_c());
}

// A process has one launcher's store, and a second world must not find the keys of the first in it:
// worlds are numbered, alike on all ranks.
Communicator join_launched(const std::string& folder, const char* where) {
  static std::atomic<int> joined{0};
  WorldConfig config = config_of_c();
  config.rank = static_cast<int>(number_of(Option::rank));
  config.ranks = static_cast<int>(number_of(Option::ranks));
  config.name = str("c", joined + 1);
  if (folder.empty())
    fail(Fault::usage, where, ": ", variable_of(row_of(Option::ranks)), " is ", config.ranks,
         ", but ", variable_of(row_of(Option::store)),
         " is not set; ranks need a store to find each other. Use `paceline run`.");
  Communicator world = join_folder(folder, config);
  ++joined;
  return world;
}

template <class Join>
paceline_status join(paceline_comm** comm, const char* where, Join&& join) {
  return guarded([&] {
    auto& made = place(comm, where, "comm");
    Communicator communicator = join();
    if (communicator.valid()) made = new paceline_comm{std::move(communicator)};
  });
}

}  // namespace

paceline_status paceline_init(paceline_comm** comm) {
  constexpr auto where = "paceline_init";
  return join(comm, where, [&] {
    const std::string folder = text_of(Option::store);
    if (!folder.empty() || number_of(Option::ranks) > 1) return join_launched(folder, where);
    if (MpiLibrary::is_in_process()) return join_mpi_of_process(nullptr, where);
    // A world of one rank instead of several would silently give wrong results.
    if (const std::string launcher = mpi_launcher(); !launcher.empty())
      fail(Fault::refusal, where, ": an MPI launcher started several processes (", launcher,
           "), but there is no MPI in this one. Link it with MPI and call MPI_Init before, or "
           "start it with `paceline run`.");
    return join_alone();
  });
}

paceline_status paceline_init_store(const char* folder, int rank, int ranks, paceline_comm** comm) {
  constexpr auto where = "paceline_init_store";
  return join(comm, where, [&] {
    WorldConfig config = config_of_c();
    config.rank = rank;
    config.ranks = ranks;
    if (folder && *folder) return join_folder(folder, config);
    if (ranks != 1)
      fail(Fault::usage, where, ": ", ranks,
           " ranks need a folder to find each other; pass one that is empty.");
    return join_alone();
  });
}

paceline_status paceline_init_mpi(const void* communicator, paceline_comm** comm) {
  constexpr auto where = "paceline_init_mpi";
  return join(comm, where, [&] { return join_mpi_of_process(communicator, where); });
}

paceline_status paceline_finalize(paceline_comm** comm) {
  constexpr auto where = "paceline_finalize";
  return guarded([&] {
    if (held(comm, where)) leave_world(alive(*comm, where).communicator);
    free_handle(comm, where);
  });
}

paceline_status paceline_record(const paceline_comm* comm, const char* folder) {
  constexpr auto where = "paceline_record";
  return guarded([&] {
    const FlightRecord record = alive(comm, where).communicator.record("asked for by the program");
    if (!folder || !*folder) fail(Fault::usage, where, ": folder is empty; pass the name of one.");
    if (!write_record(record, folder))
      fail(Fault::resource, where, ": '", folder,
           "' cannot be written to; pass a folder that this process may make files in.");
  });
}

paceline_status paceline_free(paceline_comm** comm) {
  return guarded([&] { free_handle(comm, "paceline_free"); });
}

int paceline_rank(const paceline_comm* comm) {
  int rank = -1;
  guarded([&] { rank = alive(comm, "paceline_rank").communicator.rank(); });
  return rank;
}

int paceline_size(const paceline_comm* comm) {
  int size = -1;
  guarded([&] { size = alive(comm, "paceline_size").communicator.size(); });
  return size;
}

paceline_status paceline_split(paceline_comm* comm, int colour, int key, paceline_comm** part) {
  return join(part, "paceline_split",
              [&] { return alive(comm, "paceline_split").communicator.split(colour, key); });
}

paceline_status paceline_set_timeout(paceline_comm* comm, int timeout_ms) {
  return guarded(
      [&] { alive(comm, "paceline_set_timeout").communicator.set_timeout(timeout_ms); });
}

paceline_status paceline_dup(paceline_comm* comm, paceline_comm** copy) {
  return join(copy, "paceline_dup", [&] { return alive(comm, "paceline_dup").communicator.dup(); });
}
