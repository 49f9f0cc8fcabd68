// Calls that only move data, as exchanges. Ranks may use different datatypes: what they have in
// common is the length in bytes, and a rank whose data have holes or gaps packs.
#include "base/error.hpp"
#include "exchange.hpp"
#include "refusals.hpp"

namespace paceline::preload {
namespace {

// MPI_BOTTOM is null and right with a datatype that holds addresses, and so is null where there is
// nothing: another address stands for them.
const void* named(const Exchange& x, const Operand& side) {
  const void* buffer = side.described().buffer;
  return buffer || (side.element() && side.bytes() > 0) ? buffer : &x;
}

bool is_side_refused(const Operand& side) {
  const Described& of = side.described();
  return !side.element() && is_refused(of.buffer, of.count_of(0), of.type);
}

// True if the host would refuse this side, or that `in` lies where `own`, a piece of the other one
// or null, does. Nothing may lie anywhere.
bool are_sides_refused(const Exchange& x, Collective collective, const Operand& in,
                       const Operand& out, const void* own) {
  return is_side_refused(in) || is_side_refused(out) ||
         are_refused(collective,
                     {named(x, in), named(x, out), in.bytes() > 0 ? own : nullptr,
                      in.described().count_of(0)});
}

bool are_alike(const Operand& a, int i, const Operand& b, int k) {
  return a.described().type == b.described().type &&
         a.described().count_of(i) == b.described().count_of(k);
}

// A rank's own piece, as the long buffer and the short one tell it.
void check_own_piece(const Exchange& x, std::size_t sent, std::size_t received) {
  if (sent != received)
    fail(Fault::usage, "rank ", x.state->rank, " sends ", sent, " bytes and receives ", received,
         " of each rank; both must be equal.");
}

bool is_even(const std::vector<std::size_t>& sizes) {
  for (std::size_t size : sizes)
    if (size != sizes[0]) return false;
  return true;
}

bool is_rank(const Exchange& x, int root) { return root >= 0 && root < x.state->ranks; }

// MPI allows MPI_IN_PLACE at the root alone; a host that does not look would read from there.
[[noreturn]] void in_place_away_from_root(const Exchange& x, Collective collective) {
  fail(Fault::usage, name_of(collective), ": rank ", x.state->rank,
       " passes MPI_IN_PLACE; only the root may.");
}

bool allgather(Exchange& x, const Described& from, const Described& into) {
  const bool in_place = from.buffer == MPI_IN_PLACE;
  const int me = x.state->rank;
  if (!into.is_right() || (!in_place && !from.is_right())) return false;
  x.output.describe(into);
  if (!is_ours(x, Collective::allgather, x.output.bytes())) return false;
  if (!in_place) {
    x.input.describe(from);
    check_own_piece(x, x.input.bytes(), x.output.bytes(me));
    const void* own = are_alike(x.input, 0, x.output, me) ? x.output.place_of(me) : nullptr;
    if (are_sides_refused(x, Collective::allgather, x.input, x.output, own))
      return x.pass(FallbackReason::refused);
  } else if (is_side_refused(x.output)) {
    return x.pass(FallbackReason::refused);
  }
  if (!is_even(x.output.sizes())) x.call.counts = x.output.sizes();
  x.call.uneven = !x.call.counts.empty();
  x.call.count = x.output.bytes(me);
  x.call.output = x.output.address();
  x.call.input = in_place ? x.output.address() + x.output.offset(me) : x.input.address();
  x.first_read = me, x.pieces_read = in_place;
  return true;
}

bool gather(Exchange& x, const Described& from, const Described& into, int root) {
  const bool at_root = x.state->rank == root, in_place = at_root && from.buffer == MPI_IN_PLACE;
  const int me = x.state->rank;
  if (!is_rank(x, root) || (at_root && !into.is_right())) return false;
  if (!in_place && !from.is_right()) return false;
  if (at_root) x.output.describe(into);
  if (!in_place) x.input.describe(from);
  const std::size_t piece = in_place ? x.output.bytes(me) : x.input.bytes();
  std::optional<std::size_t> all;
  if (!x.call.uneven) all = piece * std::size_t(x.state->ranks);
  if (!is_ours(x, Collective::gather, all)) return false;
  if (!in_place && from.buffer == MPI_IN_PLACE) in_place_away_from_root(x, Collective::gather);
  const void* own = nullptr;
  if (at_root && !in_place) {
    check_own_piece(x, piece, x.output.bytes(me));
    if (are_alike(x.input, 0, x.output, me)) own = x.output.place_of(me);
  }
  if (are_sides_refused(x, Collective::gather, in_place ? x.output : x.input,
                  at_root ? x.output : x.input, own))
    return x.pass(FallbackReason::refused);
  x.call.root = root;
  x.call.count = piece;
  if (at_root && x.call.uneven) x.call.counts = x.output.sizes();
  if (at_root) x.call.output = x.output.address();
  x.call.input = in_place ? x.output.address() + x.output.offset(me) : x.input.address();
  x.first_read = me, x.pieces_read = in_place;
  return true;
}

bool scatter(Exchange& x, const Described& from, const Described& into, int root) {
  const bool at_root = x.state->rank == root, in_place = at_root && into.buffer == MPI_IN_PLACE;
  const int me = x.state->rank;
  if (!is_rank(x, root) || (at_root && !from.is_right())) return false;
  if (!in_place && !into.is_right()) return false;
  if (at_root) x.input.describe(from);
  if (!in_place) x.output.describe(into);
  const std::size_t piece = in_place ? x.input.bytes(me) : x.output.bytes();
  std::optional<std::size_t> all;
  if (!x.call.uneven) all = piece * std::size_t(x.state->ranks);
  if (!is_ours(x, Collective::scatter, all)) return false;
  if (!in_place && into.buffer == MPI_IN_PLACE) in_place_away_from_root(x, Collective::scatter);
  const void* own = nullptr;
  if (at_root && !in_place) {
    check_own_piece(x, x.input.bytes(me), piece);
    if (are_alike(x.output, 0, x.input, me)) own = x.input.place_of(me);
  }
  if (are_sides_refused(x, Collective::scatter, in_place ? x.input : x.output,
                  at_root ? x.input : x.output, own))
    return x.pass(FallbackReason::refused);
  x.call.root = root;
  x.call.count = piece;
  if (at_root && x.call.uneven) x.call.counts = x.input.sizes();
  if (at_root) x.call.input = x.input.address();
  x.call.output = in_place ? x.input.address() + x.input.offset(me) : x.output.address();
  return true;
}

bool alltoall(Exchange& x, const Described& from, const Described& into) {
  const bool in_place = from.buffer == MPI_IN_PLACE;
  if (!into.is_right() || (!in_place && !from.is_right())) return false;
  x.output.describe(into);
  if (!in_place) x.input.describe(from);
  std::optional<std::size_t> all;
  if (!x.call.uneven) all = x.output.bytes();
  if (!is_ours(x, Collective::alltoall, all)) return false;
  if (!in_place) {
    const int me = x.state->rank;
    check_own_piece(x, x.input.bytes(me), x.output.bytes(me));
    if (are_sides_refused(x, Collective::alltoall, x.input, x.output, into.buffer))
      return x.pass(FallbackReason::refused);
  } else if (is_side_refused(x.output)) {
    return x.pass(FallbackReason::refused);
  }
  x.call.count = x.call.uneven ? 0 : x.output.bytes(0);
  x.call.counts = in_place ? x.output.sizes() : x.input.sizes();
  x.call.counts_received = x.output.sizes();
  x.call.output = x.output.address();
  x.call.input = in_place ? x.output.address() : x.input.address();
  x.pieces_read = in_place ? x.state->ranks : 0;
  return true;
}

}  // namespace

bool prepare_Barrier(Exchange& x) { return is_ours(x, Collective::barrier, 0); }

bool prepare_Bcast(void* buffer, std::int64_t n, MPI_Datatype type, int root, Exchange& x) {
  const Described data = {buffer, type, 1, n};
  if (!data.is_right() || !is_rank(x, root)) return false;
  x.output.describe(data);
  if (!is_ours(x, Collective::broadcast, x.output.bytes())) return false;
  if (are_sides_refused(x, Collective::broadcast, x.output, x.output, nullptr))
    return x.pass(FallbackReason::refused);
  const bool at_root = x.state->rank == root;
  x.call.root = root;
  x.call.count = x.output.bytes();
  x.call.output = x.output.address();
  x.pieces_read = at_root;
  x.is_written = !at_root;
  return true;
}

bool prepare_Allgather(const void* in, std::int64_t n, MPI_Datatype type, void* out, std::int64_t m,
                       MPI_Datatype into, Exchange& x) {
  return allgather(x, {in, type, 1, n}, {out, into, x.state->ranks, m});
}

bool prepare_Allgatherv(const void* in, std::int64_t n, MPI_Datatype type, void* out,
                        Lengths counts, Lengths places, MPI_Datatype into, Exchange& x) {
  if (!counts || !places) return false;
  return allgather(x, {in, type, 1, n},
                   {out, into, x.state->ranks, 0, counts, places});
}

bool prepare_Gather(const void* in, std::int64_t n, MPI_Datatype type, void* out, std::int64_t m,
                    MPI_Datatype into, int root, Exchange& x) {
  return gather(x, {in, type, 1, n}, {out, into, x.state->ranks, m}, root);
}

bool prepare_Gatherv(const void* in, std::int64_t n, MPI_Datatype type, void* out, Lengths counts,
                     Lengths places, MPI_Datatype into, int root, Exchange& x) {
  if (x.state->rank == root && (!counts || !places)) return false;
  x.call.uneven = true;
  return gather(x, {in, type, 1, n},
                {out, into, x.state->ranks, 0, counts, places}, root);
}

bool prepare_Scatter(const void* in, std::int64_t n, MPI_Datatype type, void* out, std::int64_t m,
                     MPI_Datatype into, int root, Exchange& x) {
  return scatter(x, {in, type, x.state->ranks, n}, {out, into, 1, m}, root);
}

bool prepare_Scatterv(const void* in, Lengths counts, Lengths places, MPI_Datatype type, void* out,
                      std::int64_t m, MPI_Datatype into, int root, Exchange& x) {
  if (x.state->rank == root && (!counts || !places)) return false;
  x.call.uneven = true;
  return scatter(x, {in, type, x.state->ranks, 0, counts, places},
                 {out, into, 1, m}, root);
}

bool prepare_Alltoall(const void* in, std::int64_t n, MPI_Datatype type, void* out, std::int64_t m,
                      MPI_Datatype into, Exchange& x) {
  const int ranks = x.state->ranks;
  return alltoall(x, {in, type, ranks, n}, {out, into, ranks, m});
}

bool prepare_Alltoallv(const void* in, Lengths counts, Lengths places, MPI_Datatype type, void* out,
                       Lengths received, Lengths received_places, MPI_Datatype into, Exchange& x) {
  if (!received || !received_places || (in != MPI_IN_PLACE && (!counts || !places))) return false;
  const int ranks = x.state->ranks;
  x.call.uneven = true;
  return alltoall(x, {in, type, ranks, 0, counts, places},
                  {out, into, ranks, 0, received, received_places});
}

}  // namespace paceline::preload
