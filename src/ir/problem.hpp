// Problem: everything an algorithm may look at when it builds its schedule.
//
// It has no count and no type: schedules are written over block indices, so that one serves every
// message of the same shape. Counts become offsets when a call starts (ir/layout.hpp).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace paceline {

enum class Collective : std::uint8_t {
  allreduce, broadcast, reduce, reduce_scatter, allgather, alltoall, gather, scatter, barrier
};
inline constexpr int kCollectives = 9;

std::string_view name_of(Collective collective);
Collective collective_from(std::string_view name);   // throws a usage error that lists the names

// Facts on which the bits of a floating-point sum may depend. fast: on which ranks are predicted
// late, and on the order of arrival. stable: on neither. canonical: on the ranks' values alone.
enum class Numbers : std::uint8_t { fast, stable, canonical };

std::string_view name_of(Numbers numbers);

// The way in which an algorithm gets at its peers' data.
enum class Access : std::uint8_t {
  messages,      // they send it
  // They send it between nodes (Problem::nodes), of any sizes: few messages, or few bytes. Inside a
  // node it runs steps of staging buffers, in one graph with the messages, or sends messages there
  // as well (stages_in_nodes()).
  nodes,
  staging,       // it reads their scratch: ranks of one node
  symmetric,     // it reads and writes their buffers, too, which lie in symmetric memory
  single_copy,   // it has the system copy between its buffers and theirs; needs no scratch
};

std::string_view name_of(Access access);

struct Problem {
  Collective collective = Collective::allreduce;
  int ranks = 1;
  int rank = 0;
  int root = 0;              // broadcast, reduce, gather, scatter
  bool in_place = false;     // see aliases() in ir/contract.hpp
  bool commutative = true;   // may operands change places?
  // Every sum is to be that of all ranks' values, in rank order, by one step: after() says so.
  bool canonical = false;
  bool uneven = false;       // units differ in length; gather, scatter: as only the root knows
  bool one_node = false;     // every rank reaches all ranks' scratch in memory: they share a node
  bool symmetric = false;    // of one node, and every rank reaches all inputs and outputs as well
  // Ranks of one node, and the system copies between a rank's buffers and its peers': a rank can
  // neither load from theirs nor store there.
  bool single_copy = false;

  // Node of each rank, from 0 on in the order of their first ranks; nodes may differ in size.
  // Empty: not known, or all ranks share one node, or each has its own.
  std::vector<int> nodes = {};
  bool node_staging = false;   // ranks of one node reach each other's staging buffers (`nodes`)
  // The ranks that are predicted to enter last, the latest one last; on all ranks the same. Empty:
  // none are. Only an algorithm that expects them (Algorithm::expects_late) sees any.
  std::vector<int> late = {};
  // Bits may follow `late` and the order of arrival: numbers=fast, or sums are exact in any order.
  bool fast = false;

  bool reaches(Access access) const;   // true if its ranks get at their peers' data like that
  bool operator==(const Problem&) const = default;
};

// True if an algorithm that goes by nodes uses their staging buffers, which are laid out alike on
// all ranks of a node; else it sends messages there.
bool stages_in_nodes(const Problem& problem);

// Throws a usage error unless `late` lists ranks, each at most once.
void check_late(const Problem& problem);

// The message of a collective consists of units: one vector (allreduce, broadcast, reduce,
// barrier), or one piece per rank (the others). An algorithm cuts every unit into blocks of nearly
// equal size.
int units_of(const Problem& problem);
bool has_root(Collective collective);
bool is_personal(Collective collective);   // each unit has one receiver: gather, scatter, alltoall
bool has_op(Collective collective);

}  // namespace paceline
