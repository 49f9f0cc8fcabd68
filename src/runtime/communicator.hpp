// Communicator: a group of ranks that call collectives together, in the same order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "device/driver.hpp"
#include "ir/algorithm.hpp"
#include "runtime/bootstrap/assumed.hpp"
#include "runtime/diagnostics/record.hpp"
#include "runtime/request.hpp"
#include "trace/trace.hpp"
#include "transport/leaving.hpp"
#include "transport/mpi/config.hpp"
#include "transport/store.hpp"

namespace paceline {

class DeviceEnd;   // engine/device_end.hpp

// Where the buffers of a call are, if not on the host: what is on the stream before the call comes
// before it.
struct OnDevice {
  std::shared_ptr<DeviceEnd> end;   // null: the host
  device::Stream stream = {};
};

// One call. Buffers may be null where the rank has none (the output of a reduce away from the
// root). `input == output` (allreduce, reduce, alltoall), or input or output being the rank's own
// unit inside the longer buffer (allgather, gather, reduce_scatter, scatter) means in place; any
// other overlap is an error.
inline constexpr int kLeastUrgent = -(1 << 20), kMostUrgent = 1 << 20;

struct Call {
  Collective collective = Collective::barrier;
  Type type = Type::u8;
  Op op = Op::sum;
  int root = 0;
  const void* input = nullptr;  // broadcast: unused
  void* output = nullptr;
  std::size_t count = 0;  // elements of a unit: the vector, or the piece of one rank
  // Units of differing size: elements per rank. alltoall: what is sent to, and received from each
  // rank; gather, scatter: meaningful at the root, with `count` the own unit everywhere;
  // reduce_scatter, allgather: equal on all ranks. Empty: all units have `count` elements. Both are
  // set for alltoall only. `uneven` says on every rank that this is such a call, also on those that
  // do not know the counts.
  bool uneven = false;
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> counts_received = {};
  std::string algorithm = {};  // empty: chosen
  Cut cut = {};           // 0: chosen; for knobs the algorithm must be named
  int timeout_ms = 0;     // 0: the communicator's
  // Of what is exchanged, such as the key of a gradient; equal on all ranks, 0: none. Calls with
  // different tags are not taken for each other: ranks that differ get a mismatch error.
  std::uint64_t tag = 0;
  std::string label = {};   // what errors call the tag
  // Of calls under way at a time the most urgent goes first wherever they compete: for a link to a
  // peer, at the borders of messages and their chunks, and for the thread that sums. Higher is more
  // urgent. Equal on all ranks; in [kLeastUrgent, kMostUrgent].
  int priority = 0;
  // A start may have to wait for the end of an earlier call like it, where the program has always
  // waited for that one first (runtime/arrivals.hpp). false: no start ever waits, as MPI has it.
  bool may_wait = true;
  OnDevice device = {};
};

class Plan;
class Profile;        // runtime/profiled.hpp
struct KnownMachine;   // runtime/bootstrap/machine_choice.hpp

// Memory of the same size on every rank of a communicator. Where they share a node each rank
// reaches all of it, and calls on it take the algorithms called `symmetric`; elsewhere it is memory
// like any other. What a rank holds lives as long as it holds it.
class SharedMemory {
 public:
  virtual ~SharedMemory() = default;
  virtual std::byte* data() const = 0;
  virtual std::size_t bytes() const = 0;
  virtual bool is_shared() const = 0;
  // Why it is not, on the one rank that is to say so; empty on the others, where it is shared, and
  // where that could not be hoped for: between nodes.
  virtual std::string trouble() const = 0;
};

class Communicator {
 public:
  int rank() const;
  int size() const;
  int nodes() const;           // on which its ranks are
  std::string broken() const;  // empty, or why nothing works any more
  // Whether calls go on while no rank's thread waits for them.
  bool has_progress_thread() const;
  // Breaks the communicator: calls under way and later ones fail on every rank with `why`.
  void abort(const std::string& why);
  bool is_called() const;      // whether a message of a call is here that this rank has yet to make

  // For benchmarks: from now on its calls combine nothing, and their results are wrong. On all
  // ranks, before the first call. Those that send nothing are refused.
  void leave_out_sums();

  Request start(const Call& call);
  void run(const Call& call);   // start and wait in one, and a little faster
  Plan plan(const Call& call);  // persistent: set up once, started many times

  // Collective. Ranks of equal colour form a new communicator, ordered by key, then by rank; a
  // negative colour joins none and gets an invalid Communicator.
  Communicator split(int colour, int key);
  Communicator dup() { return split(0, rank()); }

  // Collective; every rank passes the same number of bytes. Zeroed.
  std::shared_ptr<SharedMemory> allocate(std::size_t bytes);

  // The part of the world with these ranks (of this communicator, in order), made without
  // communication; `tag` must be equal on all members and new for each group. For those who have a
  // store to agree by.
  Communicator subgroup(const std::vector<int>& ranks, std::uint64_t tag);

  // How long calls on it wait that have no time-out of their own; milliseconds, from 1 on. Each
  // rank has its own. Communicators that are made of it later begin with the same; the world's with
  // that of the options.
  int timeout_ms() const;
  void set_timeout(int timeout_ms);

  bool valid() const { return state_ != nullptr; }
  // From start_trace on, every step of every operation of this process is recorded. take_trace ends
  // that and returns this rank's events: seconds of CLOCK_MONOTONIC, ranks of the world.
  void start_trace();
  Trace take_trace();

  // What this process has called last and what it is in, in all its communicators of this world.
  FlightRecord record(const std::string& reason) const;

  // Collective, where its ranks share a node: what the first call would have to find is found now.
  void attach_together(int timeout_ms);

  // What is recorded of the calls of this process, in all its communicators of this world.
  Profile& profile();

  // Returns when every call that this process has started in this world has ended, each within its
  // own time-out; throws the first error. Before leave() nobody's message is cut off so.
  void complete();

  // Leaves the world in peace: peers that still wait for this rank are told so, and nothing works
  // any more. Happens as well when the world's last communicator is destroyed.
  void leave(Leaving why = Leaving::ended);

  // Which algorithm a call would take, and why: "ring, 4 segments: 16 MiB on 4 ranks is long".
  std::string explain(const Call& call) const;
  // The machine that its choices reckon with, and why this one.
  const Assumed& assumed() const;

  struct State;
  explicit Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
  Communicator() = default;

 private:
  std::shared_ptr<State> state_;
};

// A call whose schedule, memory and buffers are fixed. One start at a time; wait before the next.
class Plan {
 public:
  Request start();
  struct State;
  explicit Plan(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

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
  std::string single_copy = "auto";   // whether the system copies between ranks' memory; or off
  // Ranks with different names count as being on different nodes, also where they share memory.
  std::string node = "";
  bool only_mpi = false;   // between neighbours too
  // The node of every rank, as found at start-up and equal on all ranks; empty: they share one.
  std::vector<int> nodes = {};
  // Where ranks are on several nodes: bytes of each staging buffer inside nodes, the least of all
  // nodes with several ranks; 0: one of them has none. Equal on all ranks.
  std::size_t node_staging = 0;
  Numbers numbers = Numbers::stable;   // of sums of floating types; equal on all ranks
  // What choices between nodes reckon with (runtime/bootstrap/assumed.hpp). Equal on all ranks.
  std::string machine = "usual";
  // Where figures that were measured are kept (runtime/bootstrap/machine_file.hpp), and what the
  // start has found there and agreed on; for `auto`.
  std::string machine_dir = {};
  std::shared_ptr<const KnownMachine> known = {};
  // Who is taken for late (runtime/arrivals.hpp): off, auto, or static:3,5. Equal on all ranks.
  std::string arrival = "off";
  // How long a rank that leaves waits for one that waits in a call, and has yet to find its memory.
  int attachers_ms = 10000;
  MpiConfig mpi = {};
  bool only_shm = false;   // an error where some ranks share no memory
  // Of the calls of each communicator; equal on all ranks. For tests: numbers have 32 bits.
  std::uint32_t first_number = 1;
  // Libraries to start where ranks of several nodes have no MPI yet, the best first: paths, or
  // names that the loader knows.
  std::vector<std::string> mpi_libraries = {};
  // Where flight records go when a communicator breaks, and on this signal (0: none); empty:
  // nowhere.
  std::string record_dir = "";
  int record_signal = 0;
  // Where this rank's calls are recorded (profile/recorder.hpp); empty: nowhere.
  std::string profile_dir = "";
  std::size_t profile_bytes = 16u << 20;
  // Called by a caller that waits, every now and then and without a lock: Python looks for Ctrl-C
  // there. What it throws ends the wait; the operation goes on.
  void (*idle)() = nullptr;
  // Called by a thread that raises an error of a broken communicator, without a lock: where in the
  // program it is, such as "train.py:41 in step"; empty: not known. Null: nobody is told.
  std::string (*call_site)() = nullptr;
  // Called by a caller that waits, without a lock, at some of its looks and before each of its
  // sleeps, which are then short: what else must go on in this process meanwhile. It says whether
  // anything of that has moved, as far as it can tell: then the caller spins anew. It does not
  // throw.
  bool (*meanwhile)() = nullptr;
};

// Joins the world of those who meet in a store: returns when every rank has. The communicator of
// all ranks keeps the world alive. Ranks of one node talk through shared memory; those of several
// through an MPI that is started here, which keeps the store until finish_mpi().
Communicator join_world(std::shared_ptr<Store> store, WorldConfig config);
// The same for those who may try it again: each try of a process at a world, which `place` and the
// name in `config` tell from others, has a meeting of its own, and one that a rank has given up is
// passed over within the time-out. So ranks meet in the first try that they all come to in time.
Communicator join_again(std::shared_ptr<Store> store, WorldConfig config, const std::string& place);
// Finalises the MPI that join_world has started, if it has. The last thing before the process ends,
// after leaving all worlds; collective over the processes of the first world that needed it. Not to
// be called where one of them may be missing: MPI would wait for it.
void finish_mpi();

}  // namespace paceline
