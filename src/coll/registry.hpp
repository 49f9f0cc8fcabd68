// All algorithms: tests, simulator, bench, CLI and docs read this list.
#pragma once

#include <span>
#include <string_view>

#include "ir/algorithm.hpp"

namespace paceline {

std::span<const Algorithm* const> registry();

// Throws a usage error that lists the algorithms of the collective.
const Algorithm& find_algorithm(Collective collective, std::string_view name);

}  // namespace paceline
