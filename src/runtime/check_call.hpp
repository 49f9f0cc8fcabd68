// Checks of a call's arguments and buffers, made before anything is sent.
#pragma once

#include "ir/layout.hpp"
#include "runtime/call.hpp"

namespace paceline {

// Throws a usage error or a refusal that names the collective, the values and the rule.
void check_call(const Call& call, int rank, int ranks);

// Returns the layout of the units, and sets problem.in_place. Throws a usage error for buffers that
// are missing, or overlap in any other way.
Layout layout_of(const Call& call, Problem& problem);

// Returns the size that the choice goes by, which is equal on all ranks: 0 for uneven counts that
// not all ranks know.
std::size_t bytes_for_choice(const Call& call, const Problem& problem);

}  // namespace paceline
