// What the scenarios for ranks under mpiexec share: the library, worlds of it, and expectations.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/join.hpp"
#include "expect_fault.hpp"
#include "world/cases.hpp"

namespace paceline::test {

struct Ranks {
  std::shared_ptr<MpiLibrary> mpi;
  int rank = 0, ranks = 1;
  bool threads = false;  // several may call

  WorldConfig config() const {
    WorldConfig c;
    c.timeout_ms = 20000;
    c.shm_bytes = 4u << 20;
    c.progress = Progress::caller;
    return c;
  }
  // Everything through MPI, in small pieces.
  WorldConfig in_pieces() const {
    WorldConfig c = config();
    c.only_mpi = true;
    c.mpi = {.eager_bytes = 256, .chunk_bytes = 192};
    return c;
  }
  Communicator join(const WorldConfig& c, const void* communicator = nullptr) const {
    return join_mpi(*mpi, communicator, c);
  }
};

// Returns what went wrong on this rank; empty: nothing.
using Scenario = std::string (*)(const Ranks&);
const std::map<std::string, Scenario>& scenarios();

template <class T>
std::string run_once(Communicator& world, const Case& c) {
  Buffers<T> buffers(c, world.rank());
  world.run(buffers.call());
  return buffers.check();
}

}  // namespace paceline::test
