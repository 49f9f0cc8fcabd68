// How the options of this process describe a world.
#pragma once

#include "runtime/world.hpp"

namespace paceline {

// Everything that the environment may set; rank, ranks and name are the caller's. Throws a usage
// error that names a variable with a wrong value.
WorldConfig config_from_options();

}  // namespace paceline
