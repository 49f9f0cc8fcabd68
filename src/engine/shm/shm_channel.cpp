#include "engine/shm/shm_channel.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/random.hpp"
#include "ir/load_store.hpp"

namespace paceline {
namespace {

// Bytes from one of the two fixed places to the other. Prefetchers stop at the end of a page.
constexpr std::size_t kPlaceApart = 8192;
constexpr std::size_t kLine = 64;           // bytes

static_assert(kMostSignals < kLeft && 2 * kPlaceApart <= StagingBuffer::kAtFirst);

std::size_t in_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Prefetches a line for a store, and so takes it from the peers that have read it. On x86-64
// compilers turn __builtin_prefetch(line, 1) into a prefetch for loads, which does not.
inline void prefetch_for_store(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const std::byte*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace

ShmChannel::ShmChannel(StagingBuffers& stages, std::uint64_t context, const std::vector<int>& ranks,
                       int rank, const ShmProfile& profile)
    : profile_(profile), stages_(stages), context_(context), ranks_(ranks), rank_(rank),
      peer_staging_(ranks.size()), untimed_left_(profile_.untimed) {}

void ShmChannel::open(std::size_t slot_bytes) {
  if (!own().memory) own() = stages_.open(context_);
  if (needed_bytes(slot_bytes) > own().owner().reserved.load(std::memory_order_relaxed))
    stages_.reserve(context_, needed_bytes(slot_bytes));
}

// Returns true if the position's line has reached `turn`. Reads the line only if the latest value
// seen there is less.
bool ShmChannel::look(int position, std::uint64_t call, std::uint64_t turn) {
  PeerStaging& peer = at(position);
  if (peer.seen >= turn) return true;
  if (!peer.stage.memory && !find(position)) return false;
  const std::uint64_t now = peer.stage.line(call).turn.load(std::memory_order_acquire);
  peer.seen = std::max(peer.seen, now);
  return peer.seen >= turn;
}

// Counts short calls only, so that each place is swapped every second time it is used, however many
// other calls come between.
std::size_t ShmChannel::short_slot_begin() const { return short_calls_ % 2 * kPlaceApart; }

// Returns the offset at which slots of that length wrap around.
std::size_t ShmChannel::rotation_end(std::size_t wanted) const {
  const bool is_modest = is_modest_ && wanted <= profile_.modest_slot;
  const std::size_t least = is_modest ? profile_.short_rotation : profile_.rotation;
  return std::min(bytes(), std::max(least, 2 * kPlaceApart + 2 * in_lines(wanted)));
}

// Returns the bytes of a stage that slots of that length need.
std::size_t ShmChannel::needed_bytes(std::size_t wanted) const {
  if (wanted <= sizeof(FlagLine::slot)) return 0;
  return wanted <= profile_.short_slot ? 2 * kPlaceApart : std::max(rotation_end(wanted), wanted);
}

ShmChannel::Slot ShmChannel::rotated_slot(std::size_t wanted) const {
  const std::size_t first = 2 * kPlaceApart, most = bytes();
  if (wanted <= profile_.short_slot) return {short_slot_begin(), short_slot_begin() + wanted};
  const std::size_t begin = std::max(first, next_rotated_);
  if (begin + wanted <= rotation_end(wanted)) return {begin, begin + wanted};
  return wanted <= most - first ? Slot{first, first + wanted} : Slot{0, wanted};
}

bool ShmChannel::is_in_odd_round(std::size_t slot_bytes) const {
  if (slot_bytes <= profile_.short_slot) return short_calls_ / 2 % 2 == 1;
  const bool begins_anew = next_slot(slot_bytes).begin < next_rotated_;
  return begins_anew != was_odd_round_;
}

std::optional<int> ShmChannel::find_occupied(std::uint64_t before,
                                            std::optional<CallMismatch>& mismatch) {
  const std::uint64_t left = turn_of(before, kLeft);
  for (int position = 0; position < static_cast<int>(peer_staging_.size()); ++position) {
    if (position == rank_ || at(position).seen >= left) continue;
    // A rank in the next call has left this one, even if its flag line did not show that.
    if (!look(position, before, left) && !look(position, before + 1, turn_begun(before + 1))) {
      if (left_quietly_) signal(left_, kLeft);   // the peer may wait for this rank as well
      left_quietly_ = false;
      return position;
    }
    if (!mismatch) mismatch = this->mismatch(position, before);
  }
  return {};
}

std::optional<CallMismatch> ShmChannel::confirmed_mismatch(int position, std::uint64_t call) const {
  const std::optional<CallStamp> theirs = whole_stamp_in(at(position).stage.line(call), call);
  const CallStamp& mine = stamps_[call % 4];
  if (!theirs || *theirs == mine) return {};
  if (theirs->number() == mine.number() && theirs->fingerprint == mine.fingerprint && call > 1)
    if (const auto earlier = mismatch(position, call - 1)) return earlier;   // it began earlier
  return CallMismatch{position, mine, *theirs};
}

void ShmChannel::enter(std::uint64_t call, std::size_t slot_bytes, std::uint32_t number,
                      const Fingerprint& fingerprint, bool swaps) {
  swaps_ = swaps && profile_.swaps;
  const bool is_odd = is_in_odd_round(slot_bytes);
  swapped_ = swaps_ && is_odd;
  slot_ = next_slot(slot_bytes);
  left_quietly_ = false;
  if (slot_bytes > profile_.short_slot) {
    was_odd_round_ = is_odd;
    next_rotated_ = in_lines(slot_.end);
    is_modest_ = is_modest_ && slot_bytes <= profile_.modest_slot;
  } else if (slot_.begin != kInLine) {
    ++short_calls_;
  }
  // Each step is a bijection of the previous digest: ranks that differ once differ until later
  // differences cancel that.
  digest_ ^= fingerprint.what ^ std::rotl(fingerprint.count, 40) ^ std::uint64_t{number} << 24;
  digest_ *= Random::kOdd;
  digest_ ^= digest_ >> 32;
  stamps_[call % 4] = {fingerprint, std::uint64_t{number} << 32 | (digest_ & 0xffffffff)};
  shows_stamp_ = false;
}

// Writes the whole stamp right before the first signal: peers poll this line, and every poll takes
// it out of this processor's cache.
void ShmChannel::show_stamp(std::uint64_t call) {
  shows_stamp_ = true;
  show(own().line(call), call, stamps_[call % 4]);
}

void ShmChannel::signal(std::uint64_t call, std::uint32_t signals) {
  if (!shows_stamp_) show_stamp(call);
  own().line(call).turn.store(turn_of(call, signals), std::memory_order_release);
}

std::optional<CallMismatch> ShmChannel::find_mismatch(std::uint64_t call) {
  for (int position = 0; position < ranks(); ++position)
    if (position != rank_ && look(position, call, turn_of(call, 0)))
      if (auto found = mismatch(position, call)) return found;
  return {};
}

bool ShmChannel::leave(std::uint64_t call) {
  left_ = call;
  left_quietly_ = slot_.begin == kInLine || slot_.end - slot_.begin <= profile_.short_slot;
  if (left_quietly_) prefetch_exclusive(call + 1);
  else signal(call, kLeft);
  return !left_quietly_;
}

void ShmChannel::leave_loudly(std::uint64_t call) {
  left_ = call;
  left_quietly_ = false;
  signal(call, kLeft);
  look_around();   // peers that it did not wait for keep their stages until it has found them
}

// Prefetches the lines that the next call writes first, if it is like this one. Peers read them in
// the call before this one, which most have left.
void ShmChannel::prefetch_exclusive(std::uint64_t call) {
  prefetch_for_store(&own().line(call));
  if (slot_.begin == kInLine || swaps_) return;
  const std::byte* const begin = own().at(short_slot_begin());
  for (std::size_t at = 0; at < slot_.end - slot_.begin; at += kLine)
    prefetch_for_store(begin + at);
}

void ShmChannel::wrote(std::size_t bytes, double seconds) {
  if (untimed_left_ > 0) {
    untimed_left_ -= std::min(untimed_left_, bytes);
    return;
  }
  const bool is_slow = seconds > profile_.slow_line_s * static_cast<double>(bytes / kLine);
  slow_in_a_row_ = is_slow ? slow_in_a_row_ + 1 : 0;
  if (slow_in_a_row_ < profile_.slow_copies) return;
  slow_in_a_row_ = 0;
  nontemporal_left_ = profile_.past_caches;
}

void ShmChannel::wrote_nontemporal(std::size_t bytes) {
  nontemporal_left_ -= std::min(nontemporal_left_, bytes);
  if (nontemporal_left_ == 0) untimed_left_ = profile_.untimed;
}

bool ShmChannel::is_called() {
  const std::uint64_t next = enrolled_ + 1;
  for (int position = 0; position < static_cast<int>(peer_staging_.size()); ++position)
    if (position != rank_ && look(position, next, turn_begun(next))) return true;
  return false;
}

std::optional<int> ShmChannel::unseen() {
  for (int position = 0; position < static_cast<int>(peer_staging_.size()); ++position)
    if (position != rank_ && !find(position)) return position;
  return {};
}

void ShmChannel::look_around() {
  for (int position = 0; position < static_cast<int>(peer_staging_.size()); ++position)
    if (position != rank_) find(position);
  lacking_.reset();   // no call needs these stages
}

bool ShmChannel::find(int position) {
  StagingBuffer& stage = at(position).stage;
  if (stage.memory) return true;
  try {
    const auto found = stages_.find(ranks_[static_cast<std::size_t>(position)], context_);
    lacking_.reset();
    if (!found) return false;
    stage = *found;
    return true;
  } catch (const Error& error) {
    lacking_ = error;
    return false;
  }
}

// A peer reserves room for long slots in its first call that needs them, as this rank does.
bool ShmChannel::reaches(int position, std::size_t slot_bytes) {
  PeerStaging& peer = at(position);
  if (peer.fits >= slot_bytes && peer.stage.memory) return true;
  if (!find(position) ||
      peer.stage.owner().reserved.load(std::memory_order_acquire) < needed_bytes(slot_bytes))
    return false;
  peer.fits = slot_bytes;
  return true;
}

std::vector<int> ShmChannel::pending_attachers() {
  std::vector<int> ranks;
  if (!own().memory) return ranks;
  for (std::size_t position = 0; position < peer_staging_.size(); ++position)
    if (&peer_staging_[position] != &at(rank_) && !stages_.is_found(own(), ranks_[position]))
      ranks.push_back(ranks_[position]);
  return ranks;
}

}  // namespace paceline
