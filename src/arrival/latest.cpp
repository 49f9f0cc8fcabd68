#include "arrival/latest.hpp"

#include <algorithm>
#include <bit>

namespace paceline {
namespace {

constexpr int kMantissaBits = 9, kMostExponent = 31, kUnitBits = 16;
constexpr std::uint32_t kMostCode = (1u << (kMantissaBits + 5)) - 1;
constexpr std::uint32_t kBeforeAny = 1u << 31, kBeforeAlike = 1u << 30;
constexpr std::uint32_t kFlags = kBeforeAny | kBeforeAlike;
constexpr int kRestShift = 16;
constexpr std::uint32_t kRest = kMostCode << kRestShift;   // if all set: nothing is known
constexpr std::uint32_t kNobody = ~0u;          // as a unit

std::uint32_t flags_of(ArrivalWords::Waits waits) {
  if (waits == ArrivalWords::Waits::before_any) return kFlags;
  return waits == ArrivalWords::Waits::before_alike ? kBeforeAlike : 0;
}

std::uint32_t unit_in(std::uint32_t word) { return word & ((1u << kUnitBits) - 1); }

}  // namespace

std::uint32_t packed(std::int64_t ns) {
  std::uint64_t mantissa = ns < 0 ? 0 : static_cast<std::uint64_t>(ns);
  const int over = std::max(0, static_cast<int>(std::bit_width(mantissa)) - kMantissaBits);
  if (over > kMostExponent) return kMostCode;
  mantissa >>= over;
  return static_cast<std::uint32_t>(over) << kMantissaBits | static_cast<std::uint32_t>(mantissa);
}

std::int64_t unpacked(std::uint32_t code) {
  const std::int64_t mantissa = code & ((1u << kMantissaBits) - 1);
  return mantissa << (code >> kMantissaBits & kMostExponent);
}

ArrivalWords::ArrivalWords(Waits waits) {
  words_.fill(kNobody);
  words_[0] = flags_of(waits) | kRest;
}

ArrivalWords::ArrivalWords(Waits waits, int unit, std::int64_t waited_ns, std::int64_t rest_ns)
    : ArrivalWords(waits) {
  words_[0] = flags_of(waits) | std::min(packed(rest_ns), kMostCode - 1) << kRestShift;
  words_[1] = std::min(packed(waited_ns), kMostCode - 1) << kUnitBits |
              static_cast<std::uint32_t>(unit);
}

// The rank of a unit that waited least was its last one. A unit that is left out has waited
// longer than kUnits others, so it is none of the last ones of all.
void ArrivalWords::merge(const ArrivalWords& other) {
  words_[0] = (words_[0] & other.words_[0] & kFlags) |
              std::max(words_[0] & kRest, other.words_[0] & kRest);
  for (std::size_t i = 1; i < kWords && other.words_[i] != kNobody; ++i) {
    const std::uint32_t word = other.words_[i];
    auto at = std::find_if(words_.begin() + 1, words_.end(),
                           [&](std::uint32_t own) { return unit_in(own) == unit_in(word); });
    const bool is_listed = at != words_.end() && *at != kNobody;
    if (!is_listed) at = words_.end() - 1;
    if (word >= *at) continue;
    *at = word;
    for (; at > words_.begin() + 1 && at[-1] > *at; --at) std::swap(at[-1], *at);
  }
}

ArrivalWords::Waits ArrivalWords::waits() const {
  if (words_[0] & kBeforeAny) return Waits::before_any;
  return words_[0] & kBeforeAlike ? Waits::before_alike : Waits::no;
}

bool ArrivalWords::is_known() const { return (words_[0] & kRest) != kRest; }

Latest ArrivalWords::latest() const {
  Latest out;
  out.rest_ns = unpacked((words_[0] & kRest) >> kRestShift);
  for (std::size_t i = 1; i < kWords && words_[i] != kNobody; ++i)
    out.units.push_back({static_cast<int>(unit_in(words_[i])), unpacked(words_[i] >> kUnitBits)});
  return out;
}

}  // namespace paceline
