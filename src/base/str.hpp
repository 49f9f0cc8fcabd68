// str(a, b, c): the pieces, printed one after the other. GCC 12 has no <format>.
#pragma once

#include <cstddef>
#include <sstream>
#include <string>

namespace paceline {

template <class... Pieces>
std::string str(const Pieces&... pieces) {
  std::ostringstream out;
  (out << ... << pieces);
  return out.str();
}

// "1.5 KiB", "64 MiB": sizes as a person reads them.
std::string human_bytes(double bytes);

// Shortens the text to at most `most` bytes: a longer one ends with "...", and no UTF-8 character
// before that is cut.
std::string shortened(const std::string& text, std::size_t most);

}  // namespace paceline
