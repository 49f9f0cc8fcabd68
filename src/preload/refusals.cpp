#include "refusals.hpp"

#include <array>
#include <mutex>

#include "alone.hpp"
#include "base/error.hpp"
#include "report.hpp"

namespace paceline::preload {
namespace {

// Hides errors from the program's error handler of MPI_COMM_WORLD, to which Open MPI reports some
// instead of the call's communicator.
class Unheard {
 public:
  Unheard() {
    check(PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &programs_), "Comm_get_errhandler");
    check(PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "Comm_set_errhandler");
  }
  ~Unheard() {
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, programs_);
    PMPI_Errhandler_free(&programs_);
  }
  Unheard(const Unheard&) = delete;

 private:
  MPI_Errhandler programs_ = MPI_ERRHANDLER_NULL;
};

std::mutex& asking() {
  static std::mutex* const one = new std::mutex;
  return *one;
}

// True if the host refuses the collective that `make` makes on a communicator of this rank alone;
// MPI forbids two at the same time.
template <class Make>
bool refuses(Make&& make) {
  const std::lock_guard lock(asking());
  return make(alone()) != MPI_SUCCESS;
}

// True if the host refuses elements of 0 bytes from `in` to `out`. A host that checks addresses
// finds the mistake; one that does not copies nothing.
bool refuses(Collective collective, const void* in, void* out, int count) {
  MPI_Datatype empty = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  check(PMPI_Type_contiguous(0, MPI_INT, &empty), "Type_contiguous");
  check(PMPI_Type_commit(&empty), "Type_commit");
  check(PMPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &op), "Op_create");
  const bool found = refuses([&](MPI_Comm comm) {
    const Unheard unheard;
    switch (collective) {
      case Collective::allreduce: return PMPI_Allreduce(in, out, count, empty, op, comm);
      case Collective::reduce: return PMPI_Reduce(in, out, count, empty, op, 0, comm);
      case Collective::reduce_scatter:
        return PMPI_Reduce_scatter_block(in, out, count, empty, op, comm);
      case Collective::allgather: return PMPI_Allgather(in, count, empty, out, count, empty, comm);
      case Collective::alltoall: return PMPI_Alltoall(in, count, empty, out, count, empty, comm);
      case Collective::gather: return PMPI_Gather(in, count, empty, out, count, empty, 0, comm);
      // The short side comes first (movements.cpp).
      case Collective::scatter: return PMPI_Scatter(out, count, empty, const_cast<void*>(in), count,
                                                    empty, 0, comm);
      default: return PMPI_Bcast(out, count, empty, 0, comm);
    }
  });
  PMPI_Op_free(&op);
  PMPI_Type_free(&empty);
  return found;
}

// Returns the answer of `ask`, called once per collective; separately for a single element, which
// Open MPI lets be aliased.
template <bool (*ask)(Collective, int count)>
bool known(Collective collective, bool is_single) {
  static std::array<std::array<std::once_flag, 2>, kCollectives> asked;
  static std::array<std::array<bool, 2>, kCollectives> answers;
  const auto which = static_cast<std::size_t>(collective);
  std::call_once(asked[which][is_single],
                 [&] { answers[which][is_single] = ask(collective, is_single ? 1 : 2); });
  return answers[which][is_single];
}

bool ask_aliased(Collective collective, int count) {
  int one = 0;
  return refuses(collective, &one, &one, count);
}

bool ask_in_place(Collective collective, int count) {
  const int one = 0;
  return refuses(collective, &one, MPI_IN_PLACE, count);
}

// MPIs that refuse a null address do so in every call. MPI_Bcast moves nothing on one rank.
bool ask_null(Collective, int count) {
  return refuses([&](MPI_Comm comm) {
    const Unheard unheard;
    return PMPI_Bcast(nullptr, count, MPI_INT, 0, comm);
  });
}

}  // namespace

bool are_refused_by_host(Collective collective, const Buffers& b) {
  const bool is_single = b.count == 1;
  if (!b.in || !b.out) return known<ask_null>(Collective::broadcast, is_single);
  if (b.out != MPI_IN_PLACE) return known<ask_aliased>(collective, is_single);
  if (known<ask_in_place>(collective, is_single)) return true;
  fail(Fault::usage, name_of(collective), ": a buffer is MPI_IN_PLACE where this rank must pass "
       "its own.");
}

bool is_refused(const void* buffer, std::int64_t count, MPI_Datatype type) {
  return refuses([&](MPI_Comm comm) {
    return PMPI_Bcast(const_cast<void*>(buffer), count > 0 ? 1 : 0, type, 0, comm);
  });
}

}  // namespace paceline::preload
