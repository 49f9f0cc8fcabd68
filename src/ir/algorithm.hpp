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

struct Knobs {
  int radix = 2;
  bool operator==(const Knobs&) const = default;
};

// What a call costs on the busiest rank, for a message of n bytes:
//   rounds * alpha + volume * n * beta + reduced * n * gamma
struct Cost {
  double rounds = 0;
  double volume = 0;     // of n, sent by one rank or received by one rank, whichever is more
  double reduced = 0;    // of n, combined by one rank
};

struct Algorithm {
  Collective collective;
  const char* name;
  std::optional<Reason> (*rejects)(const Problem&);
  int (*cuts)(const Problem&, const Knobs&);             // blocks per unit of the message
  void (*build)(const Problem&, const Knobs&, Builder&);
  Cost (*cost)(const Problem&, const Knobs&);
};

// Throws a refusal if the algorithm rejects the problem.
Schedule build(const Algorithm& algorithm, const Problem& problem, const Knobs& knobs = {});

inline std::optional<Reason> serves_all(const Problem&) { return {}; }

}  // namespace paceline
