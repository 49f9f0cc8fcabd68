// Algorithm: how a collective is done, as a function from a problem to a schedule. One file each.
#pragma once

#include <optional>
#include <string>

#include "ir/builder.hpp"
#include "ir/problem.hpp"

namespace paceline {

// Why an algorithm cannot serve a problem, and which one can (empty: none).
struct Reason {
  std::string why;
  std::string instead;
};

// What is left open by an algorithm; 0: its own choice.
struct Knobs {
  int radix = 0;    // of its tree or hypercube: radix - 1 messages at a time
  int blocks = 0;   // that it cuts the message into
  bool operator==(const Knobs&) const = default;
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

struct Algorithm {
  Collective collective;
  const char* name;
  std::optional<Reason> (*rejects)(const Problem&);
  int (*cuts)(const Problem&, const Knobs&);             // blocks per unit of the message
  void (*build)(const Problem&, const Knobs&, Builder&);
  Cost (*cost)(const Problem&, const Knobs&);
  Takes takes = {};
  // What it touches of its peers' memory. Such an algorithm sends nothing but signals, runs in its
  // author's order (ir/straight.hpp), and whoever signals always signals the same peers.
  bool staged = false;   // reads their scratch
  bool shared = false;   // reads and writes their buffers
  bool grouped = false;  // looks at Problem::groups
  // Has the system copy between its own buffers and theirs; needs no scratch.
  bool attached = false;
  // Adds all ranks' values by one step, in rank order, where Problem::canonical asks for that.
  bool canonical = false;

  bool is_straight() const { return staged || shared || attached; }
};

// Why it cannot serve the problem; nothing where it can.
std::optional<Reason> why_not(const Algorithm& algorithm, const Problem& problem);

// Throws a refusal if the algorithm rejects the problem.
Schedule build(const Algorithm& algorithm, const Problem& problem, const Knobs& knobs = {});

inline std::optional<Reason> serves_all(const Problem&) { return {}; }

}  // namespace paceline
