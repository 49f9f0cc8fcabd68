// The configuration of a world that Python joins.
#pragma once

#include <optional>

#include "runtime/world.hpp"

namespace paceline::binding {

// Returns the options' config; the caller's limits win over theirs, and Ctrl-C ends waits.
WorldConfig config_with(std::optional<int> timeout_ms, std::optional<int> start_timeout_ms);

}  // namespace paceline::binding
