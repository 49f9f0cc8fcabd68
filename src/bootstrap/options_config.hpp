// Options config: the WorldConfig that the options of this process describe.
#pragma once

#include "runtime/world.hpp"

namespace paceline {

// Returns the settings that the environment may hold; the caller sets rank, ranks and name. Throws
// a usage error that names a variable with a wrong value.
WorldConfig config_from_options();

}  // namespace paceline
