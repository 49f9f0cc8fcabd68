// Worlds of schedules for Python: proven, shaken, printed, simulated; and the traces that result.
#pragma once

#include <nanobind/nanobind.h>

#include <string_view>
#include <vector>

namespace paceline::binding {

// Throws a usage error unless nodes are numbered by their first ranks, as a communicator has them.
void check_nodes(std::string_view where, const std::vector<int>& nodes, int ranks);

void bind_traces(nanobind::module_& m);
void bind_traffic(nanobind::module_& m);
void bind_worlds(nanobind::module_& m);
void bind_sweeps(nanobind::module_& m);

}  // namespace paceline::binding
