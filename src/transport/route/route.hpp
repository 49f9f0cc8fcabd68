// route: two transports as one. The near one serves ranks of the own node, the far one all others.
#pragma once

#include <memory>
#include <vector>

#include "transport/transport.hpp"

namespace paceline {

// Both call ranks by the same numbers; `near` serves those in `neighbours`, the own rank among
// them. progress() looks into both; a sleeper looks at far often, since only near can wake it.
std::unique_ptr<Transport> make_route(std::unique_ptr<Transport> near,
                                      const std::vector<int>& neighbours,
                                      std::unique_ptr<Transport> far);

}  // namespace paceline
