// pmi: an MPI's processes brought together without its launcher.
//
// An MPI of MPICH's family learns from its launcher where the others are: it speaks lines of text
// (the process management interface, version 1: put, get, barrier) over a socket whose number
// stands in PMI_FD. Here a thread of the process itself answers, from the store through which our
// ranks have met.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transport/process.hpp"
#include "transport/store.hpp"

namespace paceline {

struct PmiJob {
  std::string name;         // of this job alone: MPICH names memory after it
  int rank = 0;
  std::vector<int> nodes;   // of each rank
};

class PmiServer {
 public:
  // A wait for another rank ends after `timeout`; the MPI then fails, with the reason on stderr.
  // Most MPIs end the process if they cannot start.
  PmiServer(std::shared_ptr<Store> store, PmiJob job, std::chrono::milliseconds timeout);
  ~PmiServer();
  PmiServer(const PmiServer&) = delete;
  PmiServer& operator=(const PmiServer&) = delete;

  // Calls `init`, which finds in its environment how to reach this server. The variables of another
  // launcher are hidden meanwhile. If it does not return in time, or one of `others` has ended, the
  // process says so on stderr and ends.
  void run(const std::function<void()>& init, const Watches& others = {}) const;
  // Calls `finalize`, in which the MPI meets once more; a store that has gone with its owner by
  // then is no error. Then releases the store. The server stays: some MPIs say good-bye only when
  // the process exits.
  void finish(const std::function<void()>& finalize);

  int descriptor() const { return ends_[0]; }   // the MPI's end

 private:
  void serve();
  std::string answer(const std::string& line);
  std::string reply_to_get(const std::string& key);
  void meet();
  std::string key(const std::string& of) const;

  std::shared_ptr<Store> store_;
  PmiJob job_;
  std::chrono::milliseconds timeout_;
  int ends_[2] = {-1, -1};
  int turn_ = 0;   // of the barrier
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

// The nodes of ranks, as MPICH reads them: (first node, nodes, ranks on each) for each range of
// ranks. If the ranks of a node are not consecutive, MPICH is told that every rank has its own
// node: else MPICH 5.0.2 with libfabric hangs in MPI_Init (13 of 50 starts of 3 ranks, also under
// its own launcher). We do not use MPICH between neighbours anyway.
std::string process_mapping(const std::vector<int>& nodes);

}  // namespace paceline
