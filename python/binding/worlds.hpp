// Worlds of schedules for Python: proven, shaken, printed, simulated; and the traces that result.
#pragma once

#include <nanobind/nanobind.h>

namespace paceline::binding {

void bind_traces(nanobind::module_& m);
void bind_traffic(nanobind::module_& m);
void bind_worlds(nanobind::module_& m);
void bind_sweeps(nanobind::module_& m);

}  // namespace paceline::binding
