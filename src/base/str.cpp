#include "base/str.hpp"

#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>

namespace paceline {

std::string human_bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  // A value that rounds to 1024.0 takes the next unit: "1 MiB", never "1024 KiB".
  std::size_t unit = 0;
  for (; std::abs(bytes) >= 1023.95 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  // Not printf: its decimal point depends on the locale. The largest double has 309 digits.
  char text[320];
  const auto end = std::to_chars(text, std::end(text), bytes, std::chars_format::fixed, 1).ptr;
  std::string number(text, end);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return number + " " + kUnits[unit];
}

std::string shortened(const std::string& text, std::size_t most) {
  static constexpr std::string_view kMore = "...";
  if (text.size() <= most) return text;
  std::size_t kept = most > kMore.size() ? most - kMore.size() : 0;
  const auto continues = [&](std::size_t at) { return (text[at] & 0xC0) == 0x80; };
  while (kept > 0 && continues(kept)) --kept;
  return text.substr(0, kept) + std::string(kMore.substr(0, most - kept));
}

}  // namespace paceline
