// A small seeded generator (splitmix64): the same numbers on every machine.
#pragma once

#include <cstdint>

namespace paceline {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  static constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15u;   // 2^64 divided by the golden ratio

  std::uint64_t next() { return mix(state_ += kOdd); }
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }

  // Spreads a number over 64 bits; also a hash of two numbers, as mix(a ^ mix(b)).
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace paceline
