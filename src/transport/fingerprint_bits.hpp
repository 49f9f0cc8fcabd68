// Layout of a Fingerprint: runtime/fingerprint.cpp packs it; lower layers that must know more than
// whether two are equal read it here.
//
// Bits of Fingerprint::what, from the lowest: collective 7, whether counts are uneven 1, type 7,
// whether there is a tag 1, op 8, root 24, choice 15, and whether buffers of peers are touched. If
// they are, or there is a tag, the count has 40 bits, and the 24 above them mix places and tag; the
// choice then has the other bits of the tag mixed in. It always has those of the priority.
#pragma once

#include <bit>
#include <cstdint>

#include "base/random.hpp"
#include "transport/transport.hpp"

namespace paceline {

inline constexpr int kCountBits = 40, kChoiceShift = 48;
inline constexpr std::uint64_t kUnevenBit = 0x80, kTaggedBit = 0x8000, kChoiceBits = 0x7fff;

inline bool is_tagged(const Fingerprint& f) { return (f.what & kTaggedBit) != 0; }

// The count alone.
inline std::uint64_t count_in(const Fingerprint& f) {
  const bool is_short = f.what >> 63 != 0 || is_tagged(f);
  return is_short ? f.count & ((std::uint64_t{1} << kCountBits) - 1) : f.count;
}

// Equal for calls of the same collective, type, operation, root and count, whatever their
// algorithm. For calls with the same tag, counts of equal bit width are equal.
inline std::uint64_t class_of(const Fingerprint& f) {
  const std::uint64_t what = f.what & ~(kChoiceBits << kChoiceShift);
  if (!is_tagged(f)) return Random::mix(what ^ Random::mix(f.count));
  const std::uint64_t tag = f.count >> kCountBits << kCountBits;
  return Random::mix(what ^ Random::mix(tag | std::uint64_t(std::bit_width(count_in(f)))));
}

}  // namespace paceline
