#include "ir/contract.hpp"

#include <algorithm>
#include <bit>

namespace paceline {
namespace {

// The unit that a block belongs to, and which part of the unit it is.
struct Part {
  int unit;
  int part;
};

Part part_of(const Schedule& s, int block) {
  const int per_segment = s.units * s.cuts;
  const int inside = block % per_segment;
  return {inside / s.cuts, block / per_segment * s.cuts + inside % s.cuts};
}

// One step over all ranks' values, from left to right: the only canonical sum.
std::string canonical_sum(int ranks) {
  std::string sum = "0";
  for (int r = 1; r < ranks; ++r) sum.append(" ").append(std::to_string(r));
  return ranks > 1 ? '(' + sum + ')' : sum;
}

// Names a part of the unit that rank `a` has for rank `b`; b is 0 if there are no such pairs.
std::int64_t id_of(const Schedule& s, int a, int b, int part) {
  return (std::int64_t{a} * s.problem.ranks + b) * s.cuts * s.pipeline + part;
}

}  // namespace

RankSet RankSet::all(int ranks) {
  RankSet set(ranks);
  for (int r = 0; r < ranks; ++r) set.add(r);
  return set;
}

RankSet RankSet::one(int ranks, int rank) {
  RankSet set(ranks);
  set.add(rank);
  return set;
}

bool RankSet::meets(const RankSet& other) const {
  for (std::size_t i = 0; i < words(); ++i)
    if (word(i) & other.word(i)) return true;
  return false;
}

int RankSet::lowest() const {
  for (std::size_t i = 0; i < words(); ++i)
    if (word(i)) return static_cast<int>(i * 64) + std::countr_zero(word(i));
  return -1;
}

int RankSet::highest() const {
  for (std::size_t i = words(); i-- > 0;)
    if (word(i)) return static_cast<int>(i * 64 + 63) - std::countl_zero(word(i));
  return -1;
}

std::string RankSet::key() const {
  std::string out;
  for (std::size_t i = 0; i < words(); ++i)
    out.append(reinterpret_cast<const char*>(&word(i)), sizeof(std::uint64_t));
  return out;
}

RankSet& RankSet::operator|=(const RankSet& other) {
  for (std::size_t i = 0; i < words(); ++i) word(i) |= other.word(i);
  return *this;
}

Space home(const Problem& p, Space space) {
  const bool one_buffer = p.in_place || p.collective == Collective::broadcast;
  if (!one_buffer || space == Space::scratch) return space;
  const bool towards_input =
      p.collective == Collective::reduce_scatter || p.collective == Collective::scatter;
  return towards_input ? Space::input : Space::output;
}

std::optional<Value> before(const Schedule& s, Space space, int block) {
  const Problem& p = s.problem;
  if (space != home(p, Space::input)) return {};
  const auto [unit, part] = part_of(s, block);
  const RankSet me = RankSet::one(p.ranks, p.rank);
  switch (p.collective) {
    case Collective::barrier: return {};
    case Collective::broadcast:
    case Collective::scatter:
      if (p.rank != p.root) return {};
      return Value{id_of(s, unit, 0, part), me};
    case Collective::allgather:
    case Collective::gather:
      if (unit != p.rank) return {};
      return Value{id_of(s, unit, 0, part), me};
    case Collective::alltoall: return Value{id_of(s, p.rank, unit, part), me};
    default:
      return Value{id_of(s, unit, 0, part), me, false,
                   p.canonical ? std::to_string(p.rank) : ""};
  }
}

std::optional<Value> after(const Schedule& s, Space space, int block) {
  const Problem& p = s.problem;
  if (space != home(p, Space::output)) return {};
  const auto [unit, part] = part_of(s, block);
  const std::int64_t id = id_of(s, unit, 0, part);
  const auto sum = [&] {
    return Value{id, RankSet::all(p.ranks), true, p.canonical ? canonical_sum(p.ranks) : ""};
  };
  switch (p.collective) {
    case Collective::barrier: return {};
    case Collective::allreduce: return sum();
    case Collective::reduce:
      if (p.rank != p.root) return {};
      return sum();
    case Collective::reduce_scatter:
      if (unit != p.rank) return {};
      return sum();
    case Collective::broadcast: return Value{id, RankSet::one(p.ranks, p.root)};
    case Collective::scatter:
      if (unit != p.rank) return {};
      return Value{id, RankSet::one(p.ranks, p.root)};
    case Collective::gather:
      if (p.rank != p.root) return {};
      [[fallthrough]];
    case Collective::allgather: return Value{id, RankSet::one(p.ranks, unit)};
    case Collective::alltoall:
      return Value{id_of(s, unit, p.rank, part), RankSet::one(p.ranks, unit)};
  }
  return {};
}

std::int64_t size_name(const Schedule& s, const Segment& segment, int block) {
  const auto [unit, part] = part_of(s, block);
  if (s.problem.collective != Collective::alltoall) return id_of(s, unit, 0, part);
  if (!s.problem.uneven) return id_of(s, 0, 0, part);
  const int owner = segment.owner == kOwn ? s.problem.rank : segment.owner;
  // In place, what two ranks have for each other must be equally long.
  if (s.problem.in_place)
    return id_of(s, std::min(owner, unit), std::max(owner, unit), part);
  return segment.like == Space::input ? id_of(s, owner, unit, part)
                                      : id_of(s, unit, owner, part);
}

}  // namespace paceline
