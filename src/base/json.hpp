// Numbers and texts as JSON writes them.
#pragma once

#include <string>
#include <string_view>

namespace paceline::json {

// The shortest text that reads back as the same number in any locale; null for what JSON lacks:
// infinities and NaN.
std::string number(double value);
std::string quoted(std::string_view text);

}  // namespace paceline::json
