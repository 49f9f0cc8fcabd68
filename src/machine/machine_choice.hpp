// Machine choice: finds the figures for choices between nodes if PACELINE_MACHINE is `auto`.
//
// The first start measures (probe.hpp) and writes the figures to the user's machine file. At a
// later start rank 0 reads the file and sends them to all ranks, in an exchange that start-up makes
// anyway. Then the ranks compare a short sample with the one in the file. If the two disagree, the
// start measures again and reports it on stderr.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine/machine_file.hpp"
#include "runtime/communicator.hpp"
#include "runtime/world.hpp"

namespace paceline {

// Figures that the ranks agreed on at start-up; equal on all ranks.
struct KnownMachine {
  std::string layout, hardware;           // fingerprint of this start
  std::string path, trouble;              // of rank 0's file
  std::optional<MeasuredMachine> found;   // figures for this fingerprint
  bool sampled = false;                   // an earlier world of rank 0's process sampled them
  bool other = false;                     // the file has figures for other fingerprints
};

// Returns this rank's note for that exchange; empty unless the machine is `auto`. `config` has the
// nodes; `mpi`: the MPI's description of itself.
std::string machine_note(const WorldConfig& config, const std::string& mpi);

// Returns the figures in the notes of all ranks, which are in rank order; null if the notes are
// empty.
std::shared_ptr<const KnownMachine> agree_on_machine(const std::vector<std::string>& notes,
                                                     const WorldConfig& config);

// True if the world has several nodes and takes measured figures. Equal on all ranks.
bool asks_links(const WorldConfig& config);

// Returns the machine of such a world. Collective over its ranks; equal on all of them.
Assumed machine_between_nodes(Communicator all, const WorldConfig& config);

}  // namespace paceline
