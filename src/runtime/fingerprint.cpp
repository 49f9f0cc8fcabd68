#include "runtime/fingerprint.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "base/str.hpp"
#include "transport/fingerprint_bits.hpp"

namespace paceline {
namespace {

struct What {
  Collective collective;
  bool uneven;
  Type type;
  Op op;
  int root;
  unsigned choice;
  bool shared;
  bool tagged;
};

What unpack(const Fingerprint& f) {
  return {static_cast<Collective>((f.what & 0x7f) % kCollectives), (f.what & kUnevenBit) != 0,
          static_cast<Type>((f.what >> 8 & 0x7f) % kTypes),
          static_cast<Op>((f.what >> 16 & 0xff) % kOps), static_cast<int>(f.what >> 24 & 0xffffff),
          static_cast<unsigned>(f.what >> kChoiceShift & kChoiceBits), f.what >> 63 != 0,
          (f.what & kTaggedBit) != 0};
}

// Only the root knows all counts of a gather or scatter, and in an alltoall every pair has its own.
bool counts_may_differ(Collective c) {
  return c == Collective::gather || c == Collective::scatter || c == Collective::alltoall;
}

template <class Value>
std::string differs(const char* what, const Value& mine, int my_rank, const Value& theirs,
                    int their_rank) {
  const bool first = my_rank < their_rank;
  return str(what, " differs between ranks (rank ", first ? my_rank : their_rank, ": ",
             first ? mine : theirs, ", rank ", first ? their_rank : my_rank, ": ",
             first ? theirs : mine, "); all ranks must pass the same ", what);
}

}  // namespace

Fingerprint fingerprint_of(const Call& call, std::uint64_t choice,
                           std::optional<std::uint64_t> places) {
  Fingerprint f;
  const auto root = static_cast<std::uint64_t>(has_root(call.collective) ? call.root : 0);
  const auto op = static_cast<std::uint64_t>(has_op(call.collective) ? call.op : Op::sum);
  f.what = static_cast<std::uint64_t>(call.collective) |
           static_cast<std::uint64_t>(call.type) << 8 | op << 16 | (root & 0xffffff) << 24 |
           (choice & kChoiceBits) << kChoiceShift;
  if (call.priority != 0)
    f.what ^= (Random::mix(std::uint64_t(std::int64_t{call.priority})) & kChoiceBits)
              << kChoiceShift;
  if (!call.uneven) f.count = call.count;
  else f.what |= kUnevenBit;
  if (call.uneven && !counts_may_differ(call.collective))
    for (std::size_t count : call.counts) f.count = Random::mix(f.count ^ Random::mix(count + 1));
  if (places || call.tag != 0) {
    const std::uint64_t tag = call.tag != 0 ? Random::mix(call.tag) : 0;
    if (places) f.what |= std::uint64_t{1} << 63;
    if (tag != 0) f.what = (f.what | kTaggedBit) ^ (tag >> 24 & kChoiceBits) << kChoiceShift;
    f.count = (f.count & ((std::uint64_t{1} << kCountBits) - 1)) |
              (places.value_or(0) ^ tag) << kCountBits;
  }
  return f;
}

std::uint64_t tag_of(std::string_view name) {
  std::uint64_t tag = Random::mix(name.size() + 1);
  for (const char c : name) tag = Random::mix(tag ^ static_cast<unsigned char>(c)) + 1;
  return tag == 0 ? 1 : tag;
}

bool is_refusal(const Fingerprint& f) {
  static const std::uint64_t count =
      fingerprint_of({.collective = Collective::barrier, .tag = tag_of(kRefused)}, 0).count;
  const What what = unpack(f);
  return what.collective == Collective::barrier && what.tagged && f.count == count;
}

std::uint64_t digest_of(const std::vector<int>& ranks) {
  std::uint64_t digest = 0;
  for (int rank : ranks) digest = Random::mix(digest ^ static_cast<std::uint64_t>(rank + 1));
  return digest;
}

std::string difference(const Fingerprint& mine, int my_rank, const Fingerprint& theirs,
                       int their_rank) {
  if (is_refusal(mine) != is_refusal(theirs)) {
    const int rank = is_refusal(mine) ? my_rank : their_rank;
    return str("rank ", rank, " does not make this call: its arguments were refused there, by the ",
               "error of rank ", rank, "; all ranks must pass arguments that can be served");
  }
  const What a = unpack(mine), b = unpack(theirs);
  if (a.collective != b.collective)
    return differs("collective", name_of(a.collective), my_rank, name_of(b.collective), their_rank);
  if (a.type != b.type)
    return differs("type", name_of(a.type), my_rank, name_of(b.type), their_rank);
  if (a.op != b.op) return differs("operation", name_of(a.op), my_rank, name_of(b.op), their_rank);
  if (a.root != b.root) return differs("root", a.root, my_rank, b.root, their_rank);
  if (a.uneven != b.uneven)
    return str("rank ", a.uneven ? my_rank : their_rank, " passes a count for every rank, rank ",
               a.uneven ? their_rank : my_rank, " one for all; all ranks must pass the same");
  if (count_in(mine) != count_in(theirs) && a.uneven)   // a hash of the counts
    return str("the counts differ between rank ", std::min(my_rank, their_rank), " and rank ",
               std::max(my_rank, their_rank),
               "; all ranks must pass the same counts, in the same order");
  if (count_in(mine) != count_in(theirs))
    return differs("count", count_in(mine), my_rank, count_in(theirs), their_rank);
  if (a.shared != b.shared)
    return str("rank ", a.shared ? my_rank : their_rank, " passes buffers in shared memory, rank ",
               a.shared ? their_rank : my_rank,
               " others; all ranks must pass corresponding parts of the same paceline.empty, or "
               "none");
  if (a.tagged != b.tagged)
    return str("rank ", a.tagged ? my_rank : their_rank, " passes a tag, rank ",
               a.tagged ? their_rank : my_rank, " none; all ranks must pass the same tag");
  if (a.tagged && mine.count != theirs.count)
    return str("the tag", a.shared ? " or the place in shared memory" : "",
               " differs between rank ", std::min(my_rank, their_rank), " and rank ",
               std::max(my_rank, their_rank),
               "; all ranks must make the calls of all tags in the same order");
  if (mine.count != theirs.count)
    return differs("place in shared memory", mine.count >> kCountBits, my_rank,
                   theirs.count >> kCountBits, their_rank);
  return str("the ", a.tagged ? "tag, the " : "", "algorithm or its segments, window, radix or ",
             "blocks, the priority, or the order of the ranks in a subgroup differs between rank ",
             std::min(my_rank, their_rank),
             " and rank ", std::max(my_rank, their_rank), "; all ranks must ask for the same");
}

std::string_view collective_of(const Fingerprint& f) { return name_of(unpack(f).collective); }

std::string describe(const Fingerprint& f) {
  if (is_refusal(f)) return "a call that was refused there";
  const What a = unpack(f);
  const std::string counts = a.uneven ? "uneven counts of" : str(count_in(f));
  return str(name_of(a.collective),
             a.collective == Collective::barrier ? std::string()
                                                 : str(" of ", counts, " ", name_of(a.type)),
             has_op(a.collective) ? str(", ", name_of(a.op)) : "",
             has_root(a.collective) ? str(", root ", a.root) : "");
}

}  // namespace paceline
