// What every rank says about itself while the ranks find each other: options that must be equal,
// and where it runs.
#pragma once

#include <string>
#include <vector>

#include "runtime/communicator.hpp"

namespace paceline {

std::string start_card(const WorldConfig& config);

// What all ranks have said; `nodes` is the machine of each. Throws a usage error, the same on all
// ranks, where options differ that must not. With the option groups at 0 the localities are the
// system's; else so many neighbours in rank order count as sharing all, on every machine; 1: nobody
// does.
std::vector<Locality> agree_on_start(const std::vector<std::string>& cards,
                                     const std::vector<int>& nodes);

}  // namespace paceline
