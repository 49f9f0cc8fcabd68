// Reductions of MPI as exchanges. Paceline serves one by what MPI wants equal on all ranks: the
// length, the datatype and the operation.
#include <algorithm>

#include "base/error.hpp"
#include "exchange.hpp"
#include "folds.hpp"
#include "refusals.hpp"

namespace paceline::preload {
namespace {

// Begins the reduction of `elements` elements in all; false: it is the host's.
bool is_reduction(Exchange& x, Collective collective, std::size_t elements, MPI_Datatype type,
                  MPI_Op mpi_op) {
  const Element* element = find_element(type);
  const Op* op = find_op(mpi_op);
  const bool is_cores = op && element && element->kind != Class::plain &&
                        is_defined(*op, element->kind);
  const bool is_folded = !is_cores && x.may_fold && is_fold(mpi_op, type);
  // An element of another datatype counts as a byte: it is not empty.
  if (!is_ours(x, collective, elements * (element ? element->bytes : 1))) return false;
  if (!is_cores && !is_folded) return x.pass(op ? FallbackReason::type : FallbackReason::op);
  if (is_folded) {
    x.op = mpi_op;
    return true;
  }
  x.call.type = element->type;
  x.call.op = *op;
  return true;
}

bool are_refused_here(const Exchange& x, const Buffers& buffers, MPI_Datatype type) {
  if (are_refused(x.call.collective, buffers)) return true;
  return x.op != MPI_OP_NULL && !find_element(type) &&
         is_refused(buffers.out, buffers.count, type);
}

bool is_in_place(const void* in, const void* out) { return in == MPI_IN_PLACE || in == out; }

// Sets the buffers of a call whose input and output are alike.
void take(Exchange& x, const void* in, const Described& out) {
  const bool in_place = is_in_place(in, out.buffer);
  x.output.describe(out);
  x.call.output = x.output.address();
  x.pieces_read = in_place;
  if (!in_place) x.input.describe_like(x.output, in);
  x.call.input = in_place ? x.call.output : x.input.address();
}

// MPI wants the result of a reduce_scatter in place at the front, where rank 0's piece of the input
// is: so it is written apart.
void take_pieces(Exchange& x, Described all, const Described& own) {
  x.output.describe(own);
  if (is_in_place(all.buffer, own.buffer)) {
    x.output.keep_apart();
    all.buffer = own.buffer;
  }
  x.input.describe(all);
  x.call.input = x.input.address();
  x.call.output = x.output.address();
}

// MPI_Reduce allows MPI_IN_PLACE only at the root. On other ranks Open MPI refuses it; MPICH would
// read from that address.
bool in_place_away_from_root(Exchange& x) {
  if (kFamily.starts_with("Open MPI")) return x.pass(FallbackReason::refused);
  fail(Fault::usage, "reduce: rank ", x.state->rank,
       " passes MPI_IN_PLACE; only the root may, others must pass their input.");
}

}  // namespace

bool prepare_Allreduce(const void* in, void* out, std::int64_t n, MPI_Datatype type, MPI_Op op,
                       Exchange& x) {
  if (n < 0 || !is_reduction(x, Collective::allreduce, std::size_t(n), type, op)) return false;
  if (are_refused_here(x, {in, out, out, n}, type)) return x.pass(FallbackReason::refused);
  x.call.count = std::size_t(n);
  take(x, in, {out, type, 1, n});
  return true;
}

bool prepare_Reduce(const void* in, void* out, std::int64_t n, MPI_Datatype type, MPI_Op op,
                    int root, Exchange& x) {
  if (n < 0 || root < 0 || root >= x.state->ranks) return false;
  if (!is_reduction(x, Collective::reduce, std::size_t(n), type, op)) return false;
  x.call.root = root;
  x.call.count = std::size_t(n);
  const bool at_root = x.state->rank == root;  // elsewhere `out` may be anything
  if (!at_root && in == MPI_IN_PLACE) return in_place_away_from_root(x);
  if (are_refused_here(x, {in, at_root ? out : in, at_root ? out : nullptr, n}, type))
    return x.pass(FallbackReason::refused);
  if (at_root) {
    take(x, in, {out, type, 1, n});
  } else {
    x.input.describe({in, type, 1, n});
    x.call.input = x.input.address();
  }
  return true;
}

bool prepare_Reduce_scatter_block(const void* in, void* out, std::int64_t n, MPI_Datatype type,
                                  MPI_Op op, Exchange& x) {
  const std::size_t all = std::size_t(std::max<std::int64_t>(n, 0)) * std::size_t(x.state->ranks);
  if (n < 0 || !is_reduction(x, Collective::reduce_scatter, all, type, op)) return false;
  if (are_refused_here(x, {in, out, out, n}, type)) return x.pass(FallbackReason::refused);
  x.call.count = std::size_t(n);
  take_pieces(x, {in, type, x.state->ranks, n}, {out, type, 1, n});
  return true;
}

bool prepare_Reduce_scatter(const void* in, void* out, Lengths counts, MPI_Datatype type, MPI_Op op,
                            Exchange& x) {
  const int ranks = x.state->ranks;
  std::size_t all = 0;
  bool is_even = true;
  for (int r = 0; counts && r < ranks; ++r) {
    if (counts[r] < 0) return false;
    all += std::size_t(counts[r]);
    is_even = is_even && counts[r] == counts[0];
  }
  if (!counts || !is_reduction(x, Collective::reduce_scatter, all, type, op)) return false;
  const std::int64_t n = counts[x.state->rank];
  if (are_refused_here(x, {in, out || n > 0 ? out : in, out, n}, type))
    return x.pass(FallbackReason::refused);
  x.call.count = std::size_t(n);
  x.call.uneven = !is_even;
  for (int r = 0; !is_even && r < ranks; ++r) x.call.counts.push_back(std::size_t(counts[r]));
  take_pieces(x, {in, type, ranks, 0, counts}, {out, type, 1, n});
  return true;
}

}  // namespace paceline::preload
