// A hash of text (FNV-1a, 64 bits), the same on every machine, and 16 digits for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

inline std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

inline std::string hex(std::uint64_t number) {
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; number >>= 4) digits[i] = "0123456789abcdef"[number & 15];
  return digits;
}

}  // namespace paceline
