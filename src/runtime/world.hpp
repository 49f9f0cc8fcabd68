// WorldConfig: how the ranks that start together are set up.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "ir/algorithm.hpp"
#include "transport/mpi/config.hpp"
#include "transport/store.hpp"

namespace paceline {

struct KnownMachine;   // machine/machine_choice.hpp

enum class Progress { caller, thread };

struct WorldConfig {
  int rank = 0;
  int ranks = 1;
  std::string name = "world";     // distinguishes worlds that share a store
  int timeout_ms = 1800000;       // of a call
  int warn_ms = 30000;                 // names the missing ranks on stderr after so long; 0: never
  int start_timeout_ms = 300000;  // of start-up
  int stopped_ms = 5000;          // a stopped rank of the node is waited for; 0: for ever
  Progress progress = Progress::thread;
  // For calls that do not ask for themselves; by collective, empty and 0: chosen. Equal on all
  // ranks.
  std::array<std::string, kCollectives> algorithms = {};
  int segments = 0;
  int window = 0;
  std::string shm_dir = "/dev/shm";
  std::size_t shm_bytes = 32u << 20;  // of all slots between all ranks of the node together
  std::size_t stage_bytes = 8u << 20;  // of a communicator's stages on a node together
  bool huge_pages = false;            // for what allocate() gives; equal on all ranks of a node
  std::string single_copy = "auto";   // the system copies between ranks' memory if it can; or off
  // Ranks with different names count as being on different nodes, also where they share memory.
  std::string node = "";
  bool only_mpi = false;   // between neighbours too
  // The node of every rank, as found at start-up and equal on all ranks; empty: they share one.
  std::vector<int> nodes = {};
  // On several nodes: bytes of each staging buffer inside nodes, the least of all nodes with
  // several ranks; 0: one of them has none. Equal on all ranks.
  std::size_t node_staging = 0;
  Numbers numbers = Numbers::stable;   // of sums of floating types; equal on all ranks
  // What choices between nodes reckon with (runtime/assumed.hpp). Equal on all ranks.
  std::string machine = "usual";
  // For `auto`: the folder of measured figures (machine/machine_file.hpp), and what the
  // start has found there and agreed on.
  std::string machine_dir = {};
  std::shared_ptr<const KnownMachine> known = {};
  // Which ranks are taken for late (runtime/arrivals.hpp): off, nodes, auto, or static:3,5. Equal
  // on all ranks.
  std::string arrival = "off";
  // Milliseconds that a leaving rank waits for ranks in a call that have yet to attach its memory.
  int attachers_ms = 10000;
  MpiConfig mpi = {};
  bool only_shm = false;   // an error where some ranks share no memory
  // Of the calls of each communicator; equal on all ranks. For tests: numbers have 32 bits.
  std::uint32_t first_number = 1;
  // Libraries to start where ranks of several nodes have no MPI yet, the best first: paths, or
  // names that the loader knows.
  std::vector<std::string> mpi_libraries = {};
  // The folder of flight records, which are written when a communicator breaks, and on this signal
  // (0: none); empty: none are written.
  std::string record_dir = "";
  int record_signal = 0;
  // The folder in which this rank's calls are recorded (profile/recorder.hpp); empty: they are not.
  std::string profile_dir = "";
  std::size_t profile_bytes = 16u << 20;
  // Called by a caller that waits, every now and then and without a lock: Python looks for Ctrl-C
  // there. What it throws ends the wait; the operation goes on.
  void (*idle)() = nullptr;
  // Called by a thread that raises an error of a broken communicator, without a lock: where in the
  // program it is, such as "train.py:41 in step"; empty: not known. Null: errors do not say it.
  std::string (*call_site)() = nullptr;
  // Called by a caller that waits, without a lock, at some of its looks and before each of its
  // sleeps, which are then short: what else must go on in this process meanwhile. It says whether
  // anything of that has moved, as far as it can tell: then the caller spins anew. It does not
  // throw.
  bool (*meanwhile)() = nullptr;
};

}  // namespace paceline
