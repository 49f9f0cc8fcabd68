// Algorithm: how a collective is done, as a function from a problem to a schedule. One file each.
#pragma once

#include <optional>
#include <string>

#include "ir/builder.hpp"
#include "ir/cut.hpp"
#include "ir/problem.hpp"

namespace paceline {

// Why an algorithm cannot serve a problem, and which one can in its place (empty: several).
struct Reason {
  std::string why;
  std::string instead;
};

// The knobs that make a difference to an algorithm.
struct Takes {
  bool radix = false;
  bool blocks = false;
};
inline constexpr Takes kTakesRadix{.radix = true};
inline constexpr Takes kTakesBlocks{.blocks = true};

// What a call takes, for a message of n bytes, where every rank sends one message and receives one
// at a time; that is, along the longest chain of steps that wait for each other:
//   rounds * alpha + volume * n * beta + reduced * n * gamma
// Of an algorithm that knows nodes these rounds and this volume are those between them, at the port
// that a node's ranks share, and inside nodes there are more.
struct Cost {
  double rounds = 0;
  double volume = 0;     // of n, that travels on this chain
  double reduced = 0;    // of n, that is combined on it
  double near_rounds = 0;
  double near_volume = 0;
  double messages = 0;   // of all ranks together; 0: every rank sends one in every round

  double sent(int ranks) const { return messages > 0 ? messages : rounds * ranks; }
};

inline constexpr int kMostClaims = 96;   // ranks of a node that claim positions

inline std::optional<Reason> serves_all(const Problem&) { return {}; }
inline int cut_at_once(const Problem&, const Knobs&) { return 1; }

// In which order an algorithm adds all ranks' values, where others add them in the same: among
// these the bits are the same, so that a call may take one or another by who is late. By nodes:
// those of a node from left to right, and the nodes' sums in this order.
enum class SumOrder : std::uint8_t {
  own,      // none that another one has
  by_rank,  // as sum_in_groups() does
  by_ring,  // each block as allreduce/ring, of a message in as many segments
};

struct Algorithm {
  Collective collective;
  const char* name;
  std::optional<Reason> (*rejects)(const Problem&) = serves_all;
  int (*cuts)(const Problem&, const Knobs&);             // blocks per unit of the message
  // So many of these make one block of another algorithm, and begin and end where it does.
  int (*within)(const Problem&, const Knobs&) = cut_at_once;
  void (*build)(const Problem&, const Knobs&, Builder&);
  Cost (*cost)(const Problem&, const Knobs&);
  Takes takes = {};
  // With any access but messages a rank sends nothing but signals, always to the same peers, and
  // takes its steps in the order in which they are written (ir/load_store.hpp).
  Access access = Access::messages;
  bool grouped = false;  // looks at Problem::groups
  bool in_node_order = false;   // looks up its neighbours node by node (ir/bind.hpp)
  // Looks at Problem::nodes, of any sizes: few messages between nodes, or few bytes. Inside them it
  // runs steps of staging buffers, in one graph with the messages, or sends messages there as well
  // (stages_in_nodes()).
  bool by_nodes = false;
  // Adds all ranks' values by one step, in rank order, where Problem::canonical asks for that.
  bool canonical = false;
  // Its ranks are positions: a rank takes the next free one as it enters the call. What a position
  // does may depend on whether it is the root, and not on which other one is, but for whom it
  // signals (docs/design/0044-arrival-in-the-node.md). By nodes: of a node's ranks, whose numbers,
  // one after the other, are its positions.
  bool claimed = false;
  // It is built for ranks, by Problem::order: a rank's schedule follows from which of the ranks of
  // each subtree beside its own (shapes/canonical_tree.hpp) have come before it, and who is last.
  bool by_subtree = false;
  // Position 0 is kept for the root, whenever it comes; by nodes, a node's for its first rank.
  bool root_first = false;
  // And so do its sums: their bits may differ from run to run, where Problem::fast allows that.
  bool follows_arrival = false;
  bool expects_late = false;   // looks at Problem::late
  // Adds in an order that follows Problem::late: only where Problem::fast says that it may.
  bool bits_follow_late = false;
  SumOrder sum_order = SumOrder::own;

  bool uses(Access way) const { return access == way; }
  bool is_load_store() const { return access != Access::messages; }
};

// Why it cannot serve the problem; nothing where it can.
std::optional<Reason> why_not(const Algorithm& algorithm, const Problem& problem);

// Throws a refusal, which says what to ask for instead, where it cannot.
void check_serves(const Algorithm& algorithm, const Problem& problem);

// Throws a refusal if the algorithm rejects the problem. One that expects no late ranks builds the
// same schedule whoever is predicted to be late.
Schedule build(const Algorithm& algorithm, const Problem& problem, const Knobs& knobs = {});

}  // namespace paceline
