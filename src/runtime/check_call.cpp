#include "runtime/check_call.hpp"

#include <cstdint>
#include <limits>

#include "base/error.hpp"
#include "ir/contract.hpp"

namespace paceline {
namespace {

constexpr std::size_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max();

void check_counts(const Call& call, const std::vector<std::size_t>& counts, int ranks,
                  const char* what) {
  if (counts.size() != static_cast<std::size_t>(ranks))
    fail(Fault::usage, name_of(call.collective), ": ", counts.size(), " ", what, " for ", ranks,
         " ranks; there must be one per rank.");
  std::size_t left = kMostBytes / size_of(call.type);
  for (std::size_t count : counts) {
    if (count > left)
      fail(Fault::usage, name_of(call.collective), ": the ", what,
           " add up to more than memory can hold.");
    left -= count;
  }
}

struct Extent {
  const std::byte* begin;
  std::size_t bytes;
};

Extent extent(const void* buffer, const std::vector<Piece>& units, std::size_t element) {
  std::size_t end = 0;
  for (const Piece& unit : units) end = std::max(end, unit.offset + unit.count);
  return {static_cast<const std::byte*>(buffer), end * element};
}

bool overlap(const Extent& a, const Extent& b) {
  const auto x = reinterpret_cast<std::uintptr_t>(a.begin),
             y = reinterpret_cast<std::uintptr_t>(b.begin);
  return a.bytes > 0 && b.bytes > 0 && x < y + b.bytes && y < x + a.bytes;
}

// True if the rank passes an input buffer.
bool has_input(const Problem& p) {
  if (p.collective == Collective::barrier || p.collective == Collective::broadcast) return false;
  return p.collective != Collective::scatter || p.rank == p.root;
}

bool has_output(const Problem& p) {
  if (p.collective == Collective::barrier) return false;
  return (p.collective != Collective::reduce && p.collective != Collective::gather) ||
         p.rank == p.root;
}

// True if the short buffer is the rank's own unit in the long one, or both are the same.
bool is_in_place(const Call& call, const Problem& p, const Layout& layout) {
  const std::size_t element = size_of(call.type), me = static_cast<std::size_t>(p.rank);
  const auto* in = static_cast<const std::byte*>(call.input);
  const auto* out = static_cast<const std::byte*>(call.output);
  if (!in || !out || !has_input(p) || !has_output(p)) return false;
  switch (p.collective) {
    case Collective::allgather:
    case Collective::gather:
      return in == out + layout.output[me].offset * element;
    case Collective::reduce_scatter:
    case Collective::scatter:
      return out == in + layout.input[me].offset * element;
    default:
      return in == out;
  }
}

}  // namespace

void check_call(const Call& call, int rank, int ranks) {
  const auto where = name_of(call.collective);
  if (has_root(call.collective) && (call.root < 0 || call.root >= ranks))
    fail(Fault::usage, where, ": root ", call.root, " is not a rank; it must be from 0 to ",
         ranks - 1, ".");
  if (has_op(call.collective) && !is_defined(call.op, call.type))
    fail(Fault::refusal, where, ": operation ", name_of(call.op), " is not defined for ",
         name_of(call.type),
         "; bitwise operations take integers or bool, average any type but bool.");
  if (call.priority < kLeastUrgent || call.priority > kMostUrgent)
    fail(Fault::usage, where, ": priority is ", call.priority, "; it must be from ", kLeastUrgent,
         " to ", kMostUrgent, ", and equal on all ranks.");
  const bool one_unit = units_of({.collective = call.collective, .ranks = 2}) == 1;
  const std::size_t units = one_unit ? 1 : static_cast<std::size_t>(ranks);
  if (call.count > kMostBytes / size_of(call.type) / units)
    fail(Fault::usage, where, ": a count of ", call.count, " ", name_of(call.type),
         " is more than memory can hold. Was it negative?");
  if (!call.uneven) return;
  const bool rooted =
      call.collective == Collective::gather || call.collective == Collective::scatter;
  if (one_unit) fail(Fault::usage, where, ": takes one count, not one per rank.");
  if (!rooted || rank == call.root) check_counts(call, call.counts, ranks, "counts");
  if (call.collective == Collective::alltoall)
    check_counts(call, call.counts_received, ranks, "received counts");
}

Layout layout_of(const Call& call, Problem& p) {
  const auto with = [&](const Problem& problem) {
    if (!call.uneven) return even_layout(problem, call.count);
    std::vector<std::size_t> counts = call.counts;
    if (counts.empty()) {  // gather and scatter away from the root: only the own unit is known
      counts.assign(static_cast<std::size_t>(problem.ranks), 0);
      counts[static_cast<std::size_t>(problem.rank)] = call.count;
    }
    return uneven_layout(problem, counts,
                         call.counts_received.empty() ? counts : call.counts_received);
  };
  const std::size_t element = size_of(call.type);
  const Layout apart = with(p);
  p.in_place = is_in_place(call, p, apart);
  const Extent in = extent(call.input, apart.input, element),
               out = extent(call.output, apart.output, element);
  if ((has_input(p) && in.bytes > 0 && !in.begin) || (has_output(p) && out.bytes > 0 && !out.begin))
    fail(Fault::usage, name_of(call.collective), ": a buffer is missing on rank ", p.rank, ".");
  if (p.in_place) return with(p);
  if (has_input(p) && has_output(p) && overlap(in, out))
    fail(Fault::usage, name_of(call.collective), ": input and output overlap (",
         static_cast<const void*>(in.begin), " and ", static_cast<const void*>(out.begin),
         ") and are not the same; pass separate buffers, or one in place.");
  return apart;
}

std::size_t bytes_for_choice(const Call& call, const Problem& problem) {
  std::size_t elements = call.count * static_cast<std::size_t>(units_of(problem));
  if (call.uneven) {
    elements = 0;
    if (call.collective == Collective::reduce_scatter || call.collective == Collective::allgather)
      for (std::size_t count : call.counts) elements += count;
  }
  return elements * size_of(call.type);
}

}  // namespace paceline
