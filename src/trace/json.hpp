// A trace as JSON, for pictures and reports made elsewhere or later.
#pragma once

#include <string>
#include <string_view>

#include "trace/trace.hpp"

namespace paceline {

std::string_view name_of(Activity activity);   // "send", "reduce", ...

// One object with the names of trace.hpp's fields; `activity` by name. Times keep every bit.
std::string to_json(const Trace& trace);

}  // namespace paceline
