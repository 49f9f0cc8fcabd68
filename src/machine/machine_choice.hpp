// Which figures choices between nodes reckon with, where PACELINE_MACHINE is `auto`.
//
// A first start measures (probe.hpp) and keeps what it found in the user's machine file. A later
// one takes it from there: rank 0 reads the file and tells all others in an exchange that start-up
// makes anyway, so all ranks know the same. Then a short sample is compared with the one of that
// day; where they disagree the start measures again, and says so.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine/machine_file.hpp"
#include "runtime/communicator.hpp"
#include "runtime/world.hpp"

namespace paceline {

// Equal on all ranks.
struct KnownMachine {
  std::string layout, hardware;           // the fingerprint of this start
  std::string path, trouble;              // of rank 0's file
  std::optional<MeasuredMachine> found;   // for this fingerprint
  bool sampled = false;                   // by an earlier world of rank 0's process
  bool other = false;                     // the file has figures, and none for this fingerprint
};

// What this rank says in that exchange. `config` knows the nodes; `mpi`: what the MPI says about
// itself. Empty unless the machine is `auto`.
std::string machine_note(const WorldConfig& config, const std::string& mpi);

// What all ranks have said, in order; null where nobody has said anything.
std::shared_ptr<const KnownMachine> agree_on_machine(const std::vector<std::string>& notes,
                                                     const WorldConfig& config);

// Whether a world has several nodes, and takes measured figures. Equal on all ranks.
bool asks_links(const WorldConfig& config);

// Collective over the ranks of such a world; equal on all ranks.
Assumed machine_between_nodes(Communicator all, const WorldConfig& config);

}  // namespace paceline
