// route: two transports as one. Ranks of the own node by the near one, all others by the far one.
#pragma once

#include <memory>
#include <vector>

#include "transport/transport.hpp"

namespace paceline {

// Both call ranks by the same numbers; `near` serves those in `neighbours`, the own rank among
// them. Both are looked into at every progress(); a sleeper looks at far often, since only near can
// wake it.
std::unique_ptr<Transport> make_route(std::unique_ptr<Transport> near,
                                      const std::vector<int>& neighbours,
                                      std::unique_ptr<Transport> far);

}  // namespace paceline
