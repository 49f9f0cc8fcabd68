#include "runtime/call_cache.hpp"

#include <algorithm>
#include <numeric>

#include "base/random.hpp"
#include "runtime/schedule_cache.hpp"

namespace paceline {
namespace {

bool is_plain(const Call& c) {
  return c.algorithm.empty() && c.cut == Cut{} && c.timeout_ms == 0 && c.tag == 0 &&
         c.priority == 0;
}

// Sizes of the call's buffers, and the offset of the shorter one in the longer one if in place.
struct Extents {
  std::uintptr_t input, output;   // bytes
  std::uintptr_t in_input, in_output;   // offsets
};

// The same for units of differing length.
Extents uneven_extents_of(const Call& call, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const std::uintptr_t size = size_of(call.type), unit = call.count * size;
  const auto bytes = [size](const std::vector<std::size_t>& counts, std::size_t first) {
    const auto end = counts.begin() + static_cast<std::ptrdiff_t>(std::min(first, counts.size()));
    return size * std::accumulate(counts.begin(), end, std::size_t{0});
  };
  const auto& received = call.counts_received.empty() ? call.counts : call.counts_received;
  const std::uintptr_t all = bytes(call.counts, call.counts.size()), before = bytes(call.counts, r);
  const std::uintptr_t own = bytes(call.counts, r + 1) - before;
  switch (call.collective) {
    case Collective::reduce_scatter: return {all, own, before, 0};
    case Collective::allgather: return {own, all, 0, before};
    case Collective::gather: return {unit, all, 0, before};
    case Collective::scatter: return {all, unit, before, 0};
    case Collective::alltoall: return {all, bytes(received, received.size()), 0, 0};
    default: break;   // have units of one length
  }
  return {0, 0, 0, 0};
}

Extents extents_of(const Call& call, int rank, int ranks) {
  if (call.uneven) return uneven_extents_of(call, rank);
  const std::uintptr_t unit = call.count * size_of(call.type);
  const auto p = static_cast<std::uintptr_t>(ranks), r = static_cast<std::uintptr_t>(rank);
  switch (call.collective) {
    case Collective::allreduce: return {unit, unit, 0, 0};
    case Collective::reduce: return {unit, rank == call.root ? unit : 0, 0, 0};
    case Collective::broadcast: return {0, unit, 0, 0};
    case Collective::reduce_scatter: return {unit * p, unit, unit * r, 0};
    case Collective::allgather: return {unit, unit * p, 0, unit * r};
    case Collective::alltoall: return {unit * p, unit * p, 0, 0};
    case Collective::gather: return {unit, rank == call.root ? unit * p : 0, 0, unit * r};
    case Collective::scatter: return {rank == call.root ? unit * p : 0, unit, unit * r, 0};
    case Collective::barrier: break;
  }
  return {0, 0, 0, 0};
}

bool is_same(const Call& a, const Call& b) {
  return a.collective == b.collective && a.count == b.count && a.type == b.type && a.op == b.op &&
         a.root == b.root && a.uneven == b.uneven && a.counts == b.counts &&
         a.counts_received == b.counts_received && a.is_one_of_many == b.is_one_of_many;
}

bool has_same_buffers(const Call& a, const Call& b) {
  return a.input == b.input && a.output == b.output;
}

bool is_asked(const CallCache::Entry& entry, const Asked& asked, bool in_place) {
  return entry.prepared && entry.in_place == in_place && entry.shares == asked.shares &&
         is_same(entry.call, asked.call) && entry.late == asked.late &&
         (asked.shares == 0 || has_same_buffers(entry.call, asked.call));
}

}  // namespace

std::optional<bool> plain_in_place(const Call& call, int rank, int ranks) {
  if (!is_plain(call)) return {};
  const Extents extents = extents_of(call, rank, ranks);
  const auto in = reinterpret_cast<std::uintptr_t>(call.input),
             out = reinterpret_cast<std::uintptr_t>(call.output);
  if ((extents.input > 0 && in == 0) || (extents.output > 0 && out == 0)) return {};
  if (extents.input == 0 || extents.output == 0) return false;
  if (in + extents.in_input == out + extents.in_output) return true;
  if (in < out + extents.output && out < in + extents.input) return {};   // they overlap
  return false;
}

CallCache::Ways& CallCache::ways_of(const Asked& asked, bool in_place) {
  const Call& call = asked.call;
  std::uint64_t mixed = std::uint64_t{call.count} << 16 ^
                        static_cast<std::uint64_t>(call.collective) << 9 ^
                        static_cast<std::uint64_t>(call.type) << 1 ^ (in_place ? 1 : 0);
  if (asked.shares > 0)   // other buffers, another entry
    mixed ^= reinterpret_cast<std::uintptr_t>(call.input) +
             3 * reinterpret_cast<std::uintptr_t>(call.output);
  return entries_[Random::mix(mixed) % kPlaces];
}

// A call with the same buffers as the last one is in place if that one was.
const CallCache::Entry* CallCache::find(const Asked& asked) {
  const Call& call = asked.call;
  if (last_ && last_->shares == asked.shares && is_same(last_->call, call) &&
      has_same_buffers(last_->call, call) && is_plain(call) && last_->late == asked.late)
    return last_;
  const auto in_place = plain_in_place(call, rank_, ranks_);
  if (!in_place) return nullptr;
  for (Entry& entry : ways_of(asked, *in_place)) {
    if (!is_asked(entry, asked, *in_place)) continue;
    entry.call.input = call.input;
    entry.call.output = call.output;
    return last_ = &entry;
  }
  return nullptr;
}

void CallCache::keep(const Asked& asked, const std::shared_ptr<Prepared>& prepared,
                     std::shared_ptr<ActiveOp> active, const Fingerprint& fingerprint) {
  const auto in_place = plain_in_place(asked.call, rank_, ranks_);
  if (!in_place) return;
  Ways& ways = ways_of(asked, *in_place);
  const auto known = std::find_if(ways.begin(), ways.end(), [&](const Entry& entry) {
    return is_asked(entry, asked, *in_place) && entry.prepared == prepared;
  });
  if (known != ways.end()) {
    if (known->operations.size() < kMostOperations) known->operations.push_back(std::move(active));
    return;
  }
  ways[1] = std::move(ways[0]);
  ways[0] = {asked.call, *in_place, asked.shares, asked.late, fingerprint, prepared};
  ways[0].operations.push_back(std::move(active));
  last_ = &ways[0];
}

// A free operation has two owners: `prepared` and this entry.
const std::shared_ptr<ActiveOp>* CallCache::Entry::free_operation() const {
  for (const auto& active : operations)
    if (active.use_count() == 2 && !active->operation->under_way()) return &active;
  return nullptr;
}

}  // namespace paceline
