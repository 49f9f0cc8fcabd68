#include "alone.hpp"

#include <mutex>

#include "base/error.hpp"
#include "report.hpp"

namespace paceline::preload {
namespace {

struct Alone {
  std::mutex mutex;
  MPI_Comm comm = MPI_COMM_NULL;

  static Alone& get() {
    static Alone* const one = new Alone;
    return *one;
  }
};

}  // namespace

MPI_Comm alone() {
  Alone& own = Alone::get();
  const std::lock_guard lock(own.mutex);
  if (own.comm == MPI_COMM_NULL) {
    check(PMPI_Comm_split(MPI_COMM_SELF, 0, 0, &own.comm), "Comm_split");
    check(PMPI_Comm_set_errhandler(own.comm, MPI_ERRORS_RETURN), "Comm_set_errhandler");
  }
  return own.comm;
}

void end_alone() {
  Alone& own = Alone::get();
  const std::lock_guard lock(own.mutex);
  if (own.comm != MPI_COMM_NULL) PMPI_Comm_free(&own.comm);
}

}  // namespace paceline::preload
