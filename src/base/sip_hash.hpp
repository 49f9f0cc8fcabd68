// SipHash-2-4 (Aumasson, Bernstein 2012): a 64-bit hash that is unpredictable without the key.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

namespace paceline {

using SipKey = std::array<std::uint64_t, 2>;

inline std::uint64_t sip_hash(const SipKey& key, std::string_view text) {
  std::uint64_t v0 = key[0] ^ 0x736f6d6570736575u, v1 = key[1] ^ 0x646f72616e646f6du,
                v2 = key[0] ^ 0x6c7967656e657261u, v3 = key[1] ^ 0x7465646279746573u;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(text[i])} << i % 8 * 8;
    if (i % 8 < 7) continue;
    take(word);
    word = 0;
  }
  take(word | std::uint64_t{text.size()} << 56);
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace paceline
