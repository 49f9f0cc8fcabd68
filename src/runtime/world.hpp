// WorldConfig: the settings of a world, as one of its ranks has them.
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

// The thread that drives calls while the program computes: none, one from the beginning, or one
// from the first call on that is started and not waited for at once.
enum class Progress { caller, thread, when_started };

struct WorldConfig {
  int rank = 0;
  int ranks = 1;
  std::string name = "world";     // distinguishes worlds that share a store
  int timeout_ms = 1800000;       // of a call
  int warn_ms = 30000;            // wait after which stderr names the missing ranks; 0: never
  int start_timeout_ms = 300000;  // of start-up
  int stopped_ms = 5000;          // time to wait for a stopped rank of the node; 0: for ever
  Progress progress = Progress::thread;
  // Defaults for calls without overrides of their own, by collective; empty and 0: chosen. Equal on
  // all ranks.
  std::array<std::string, kCollectives> algorithms = {};
  Cut cut = {};   // segments and window
  std::string shm_dir = "/dev/shm";
  std::size_t shm_bytes = 32u << 20;   // total of all slots between the ranks of a node
  std::size_t stage_bytes = 8u << 20;  // total of a communicator's staging buffers on a node
  bool huge_pages = false;            // for memory of allocate(); equal on all ranks of a node
  std::string single_copy = "auto";   // auto: the system copies between ranks if it can; or off
  // Name of the node. Ranks with different names count as on different nodes, even if they share
  // memory.
  std::string node = "";
  bool only_mpi = false;   // ranks of a node use MPI as well
  // Node of every rank, found at start-up; empty: all share one. Equal on all ranks.
  std::vector<int> nodes = {};
  // With several nodes: bytes of each staging buffer, the least over nodes with several ranks; 0:
  // one of these nodes has none. Equal on all ranks.
  std::size_t node_staging = 0;
  Numbers numbers = Numbers::stable;   // for sums of floating types; equal on all ranks
  // Machine that choices between nodes assume (runtime/assumed.hpp). Equal on all ranks.
  std::string machine = "usual";
  // For machine `auto`: the folder of measured figures (machine/machine_file.hpp), and the figures
  // that the ranks agreed on at start-up.
  std::string machine_dir = {};
  std::shared_ptr<const KnownMachine> known = {};
  // Prediction of late ranks (runtime/arrivals.hpp): off, nodes, auto, or static:3,5. Equal on all
  // ranks.
  std::string arrival = "off";
  // Milliseconds that a leaving rank waits for ranks in a call that have yet to attach its memory.
  int attachers_ms = 10000;
  MpiConfig mpi = {};
  bool only_shm = false;   // start-up fails if some ranks share no memory
  // Number of each communicator's first call; equal on all ranks. Tests set it, since numbers wrap
  // around at 32 bits.
  std::uint32_t first_number = 1;
  // MPI libraries to start if ranks of several nodes have no MPI yet, the best first: paths, or
  // names that the loader knows.
  std::vector<std::string> mpi_libraries = {};
  // Folder of flight records (empty: none are written), and the signal that writes one (0: none). A
  // break of a communicator writes one as well.
  std::string record_dir = "";
  int record_signal = 0;
  // Folder in which this rank's calls are recorded (profile/recorder.hpp); empty: none are.
  std::string profile_dir = "";
  std::size_t profile_bytes = 16u << 20;
  // A waiting thread calls this now and then, without a lock; Python checks for Ctrl-C here. An
  // exception ends the wait; the operation goes on.
  void (*idle)() = nullptr;
  // A thread that raises an error of a broken communicator calls this without a lock. Returns the
  // thread's place in the program, such as "train.py:41 in step"; empty: unknown. Null: errors name
  // no place.
  std::string (*call_site)() = nullptr;
  // A waiting thread calls this without a lock, at some of its looks and before each of its sleeps,
  // which are then short. It drives other work of this process. Returns true if it made progress;
  // the thread then resumes spinning. It must not throw.
  bool (*meanwhile)() = nullptr;
};

}  // namespace paceline
