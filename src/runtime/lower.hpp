// Lowering: from a call and the choice made for it to what the engine runs.
#pragma once

#include <cstddef>

#include "engine/bound.hpp"
#include "runtime/communicator.hpp"
#include "tune/choose.hpp"

namespace paceline {

// `stage_bytes`: room of each rank's stage, null where the ranks have none. Throws a refusal where
// the call needs more room or more signals than stages have; equal on all ranks.
Bound lower(const Choice& choice, const Problem& problem, const Layout& layout, const Call& call,
            const std::size_t* stage_bytes);

}  // namespace paceline
