// Reasons that several algorithms have to reject problems.
#pragma once

#include <optional>
#include <string>

#include "base/str.hpp"
#include "ir/algorithm.hpp"

namespace paceline {

// `why` says what happens to the order of operands; `instead` serves any operation.
inline std::optional<Reason> unless_commutative(const Problem& pb, const char* why,
                                                const char* instead) {
  if (pb.commutative) return {};
  return Reason{str("the operation is not commutative and ", why), instead};
}

// A reduce in which the root's operand is the first.
inline std::optional<Reason> unless_root_may_begin(const Problem& pb) {
  if (pb.root == 0) return {};
  return unless_commutative(pb, "operands would start at the root", "linear");
}

}  // namespace paceline
