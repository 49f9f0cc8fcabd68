// Algorithm: a function from a problem to a schedule that solves it, with its cost. One file each.
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

// Time of a call for a message of n bytes, if every rank sends one message and receives one at a
// time, along the longest chain of steps that wait for each other:
//   rounds * alpha + volume * n * beta + reduced * n * gamma + copied * n * copy
// For an algorithm that knows nodes, these rounds and this volume are those between nodes, at the
// port that a node's ranks share; near_rounds and near_volume are those inside nodes.
struct Cost {
  double rounds = 0;
  double volume = 0;     // of n, that travels on this chain
  double reduced = 0;    // of n, that is combined on it
  double copied = 0;     // of n, that is copied on it, in memory that ranks share
  double near_rounds = 0;
  double near_volume = 0;
  double messages = 0;   // of all ranks together; 0: every rank sends one in every round
  bool in_node_order = false;  // neighbours are near, however ranks are numbered (ir/bind.hpp)

  double sent(int ranks) const { return messages > 0 ? messages : rounds * ranks; }
};

inline constexpr int kMostClaims = 96;   // ranks of a node that claim positions

inline std::optional<Reason> serves_all(const Problem&) { return {}; }

// An algorithm's use of the order in which ranks enter a call.
enum class Arrivals : std::uint8_t {
  ignored,
  predicted,  // looks at Problem::late
  // Its ranks are positions: a rank takes the next free one as it enters the call, and sums follow,
  // so that their bits may differ from run to run. A position's steps may depend on whether it is
  // the root; which other one is the root may decide only which peers it signals
  // (docs/design/0044-arrival-in-the-node.md).
  claimed,
};

// Order in which all ranks' values are added. Algorithms of one order other than `own` have the
// same bits: a call may go from one to another when ranks become late.
enum class Bits : std::uint8_t {
  own,      // its own; an algorithm that looks at late ranks adds them last
  by_rank,  // as sum_in_groups() does; at once if Problem::canonical is set and nodes do not
            // matter. By nodes: those of a node from left to right, and then the nodes' sums.
  by_ring,  // each block as allreduce/ring, of a message in as many segments
};

inline int one_block(const Problem&, const Knobs&) { return 1; }
inline int block_per_rank(const Problem& pb, const Knobs&) { return pb.ranks; }

struct Algorithm {
  Collective collective;
  const char* name;
  std::optional<Reason> (*rejects)(const Problem&) = serves_all;
  int (*cuts)(const Problem&, const Knobs&) = one_block;   // blocks per unit of the message
  void (*build)(const Problem&, const Knobs&, Builder&);
  Cost (*cost)(const Problem&, const Knobs&);
  Takes takes = {};
  Access access = Access::messages;
  Arrivals arrivals = Arrivals::ignored;
  Bits bits = Bits::own;

  bool uses(Access way) const { return access == way; }
  bool by_nodes() const { return access == Access::nodes; }
  // A rank sends nothing but signals, always to the same peers, and takes its steps in the order in
  // which they are written (ir/load_store.hpp).
  bool is_load_store() const { return access != Access::messages && !by_nodes(); }
  bool claims() const { return arrivals == Arrivals::claimed; }
  bool expects_late() const { return arrivals == Arrivals::predicted; }
  bool can_be_canonical() const { return bits == Bits::by_rank && !by_nodes(); }
  bool bits_follow_late() const {
    return expects_late() && bits == Bits::own && has_op(collective);
  }
};

// Returns why it cannot serve the problem; nothing if it can.
std::optional<Reason> why_not(const Algorithm& algorithm, const Problem& problem);

// Throws a refusal, which says what to ask for instead, if it cannot.
void check_serves(const Algorithm& algorithm, const Problem& problem);

// Throws a refusal if the algorithm rejects the problem. One that expects no late ranks builds the
// same schedule whichever ranks are predicted to be late.
Schedule build(const Algorithm& algorithm, const Problem& problem, const Knobs& knobs = {});

}  // namespace paceline
