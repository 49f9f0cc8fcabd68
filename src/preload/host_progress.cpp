#include "host_progress.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <mutex>

#include "base/error.hpp"
#include "host_mpi.hpp"
#include "report.hpp"

namespace paceline::preload {
namespace {

// A receive that never completes, on a communicator without sends: testing it makes MPI progress.
struct Silent {
  std::mutex mutex;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request never = MPI_REQUEST_NULL;
  char nothing = 0;            // buffer of `never`
  std::atomic_flag is_tested;  // by some thread

  static Silent& get() {
    static Silent* const one = new Silent;
    return *one;
  }
};

// Open MPI's progress function, which returns a count of events; not so in version 4. Null with
// other MPIs.
using HostProgress = int();
HostProgress* host_progress() {
  HostProgress* function = nullptr;
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
  void* const symbol = dlsym(RTLD_DEFAULT, "opal_progress");
  std::memcpy(&function, &symbol, sizeof function);
#endif
  return function;
}

// Makes progress until 16 looks in a row find nothing. A peer whose one-sided calls this rank
// serves makes the next one sooner than one look at Paceline's own call takes.
bool progress_until_quiet(HostProgress* progress) {
  constexpr int kMostLooks = 256, kInVain = 16;   // a few microseconds
  if (progress() <= 0) return false;
  for (int looks = 1, in_vain = 0; looks < kMostLooks && in_vain < kInVain; ++looks)
    in_vain = progress() > 0 ? 0 : in_vain + 1;
  return true;
}

}  // namespace

void begin_progress() {
  Silent& silent = Silent::get();
  const std::lock_guard lock(silent.mutex);
  if (silent.comm != MPI_COMM_NULL) return;
  check(PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &silent.comm), "Comm_split");
  check(PMPI_Irecv(&silent.nothing, 1, MPI_BYTE, 0, 0, silent.comm, &silent.never), "Irecv");
}

void end_progress() {
  Silent& silent = Silent::get();
  const std::lock_guard lock(silent.mutex);
  if (silent.comm == MPI_COMM_NULL) return;
  PMPI_Cancel(&silent.never);
  PMPI_Wait(&silent.never, MPI_STATUS_IGNORE);
  PMPI_Comm_free(&silent.comm);
}

bool progress_mpi() {
  static HostProgress* const progress = host_progress();
  Silent& silent = Silent::get();
  if (silent.is_tested.test_and_set(std::memory_order_acquire)) return false;
  bool moved = false;
  int done = 0;
  if (progress) moved = progress_until_quiet(progress);
  else PMPI_Test(&silent.never, &done, MPI_STATUS_IGNORE);
  silent.is_tested.clear(std::memory_order_release);
  return moved;
}

}  // namespace paceline::preload
