#include "arrival/arrival_switch.hpp"

#include <algorithm>
#include <bit>

namespace paceline {

bool ArrivalSwitch::next() {
  ++calls_;
  if (state_ == State::trial) return to_take_ > 0 && to_take_-- > 0;
  return state_ == State::arrival && calls_ % kProbeEvery != 0;
}

// Pauses trials for 64 calls, twice as many each time.
void ArrivalSwitch::give_up() {
  state_ = State::usual;
  again_ = learned_ + (kProbeEvery << pauses_);
  pauses_ = std::min(pauses_ + 1, kMostPauses);
}

// A call has a late rank if the last rank comes later than the others by half of the time that the
// call takes from then on. Hysteresis: a trial starts after 4 calls in a row with a late rank (16
// if ranks take turns on a core). Going by arrival stays if it saves a tenth of that time. It ends
// after 4 calls in a row without a late rank (4 of the last 16 if ranks take turns), or if it saves
// nothing.
void ArrivalSwitch::learn(const Seen& seen) {
  constexpr std::uint32_t kRowBits = (1u << kRow) - 1;
  const bool is_late = seen.late_ns > 0 && 2 * seen.late_ns >= seen.rest_ns;
  late_ = late_ << 1 | (is_late ? 1u : 0u);
  ++learned_;
  if (is_late) (seen.by_arrival ? arrival_ : usual_).add(seen.rest_ns);
  switch (state_) {
    case State::usual:
      if (!is_row(seen.takes_turns ? kRowOfTurns : kRow) || learned_ < again_) return;
      state_ = State::trial;
      to_take_ = kTrial;
      tried_ = 0;
      arrival_ = {};
      return;
    case State::trial:
      if (!seen.by_arrival || ++tried_ < kTrial) return;
      if (arrival_.count == 0 || !pays()) return give_up();
      state_ = State::arrival;
      pauses_ = 0;
      return;
    case State::arrival:
      if (seen.takes_turns ? is_rare() : (late_ & kRowBits) == 0) state_ = State::usual;
      else if (arrival_.ns >= usual_.ns) give_up();
      return;
  }
}

ArrivalSwitch::Evidence ArrivalSwitch::evidence() const {
  return {learned_, std::popcount(late_), usual_.ns, arrival_.ns, state_ == State::arrival};
}

}  // namespace paceline
