// Is this call one that the collective can take, and what is known of it everywhere? Asked before
// anything is sent.
#pragma once

#include "ir/layout.hpp"
#include "runtime/call.hpp"

namespace paceline {

// Throws a usage error or a refusal that says where, what with values, which rule, what to do.
void check_call(const Call& call, int rank, int ranks);

// Where the units lie, and whether the call is in place; throws a usage error for buffers that
// overlap in any other way.
Layout layout_of(const Call& call, Problem& problem);

// What decides the choice must be equal on all ranks: where only the root knows the counts, nothing
// does.
std::size_t bytes_for_choice(const Call& call, const Problem& problem);

}  // namespace paceline
