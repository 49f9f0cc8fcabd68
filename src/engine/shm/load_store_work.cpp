// LoadStoreOperation: the memory work of an item: one step, or several fused ones.
//
// A single step uses plain stores, interleaved if it is long and reads from a peer, or non-temporal
// stores (copy_in_nontemporal). A sum and the steps fused with it go through registers
// (reduce_copy), unless a target needs non-temporal stores. Other fused steps go through the
// nearest cache in strips (run_fused).
#include <algorithm>

#include "base/copy_bytes.hpp"
#include "engine/shm/interleaved.hpp"
#include "engine/shm/load_store.hpp"

namespace paceline {
namespace {

constexpr std::size_t kStrip = 16384;   // bytes that fit into the nearest cache

void copy_interleaved(const ShmProfile& profile, std::byte* to, const void* from,
                      std::size_t bytes) {
  interleaved(bytes, profile.strip, [&](std::size_t at, std::size_t strip) {
    copy(to + at, static_cast<const std::byte*>(from) + at, strip);
  });
}

}  // namespace

// True for long outputs, which leave the cache before they are read, and for data shown to far
// peers.
bool LoadStoreOperation::is_nontemporal(const Place& target) const {
  if (target.space == Space::output) return is_long_;
  return target.space == Space::scratch && shows_past_caches_;
}

// True for one step, and for a sum with a division by 1.
bool LoadStoreOperation::is_one_step(const Item& item) const {
  const std::uint32_t steps = item.last - item.first;
  return steps == 1 || (steps == 2 && compiled_->divisor <= 1 &&
                        compiled_->steps[item.first + 1].places == 1);
}

bool LoadStoreOperation::is_plain(const Item& item) const {
  const CompiledStep& first = compiled_->steps[item.first];
  return first.stretches == 1 && first.places >= 2 && is_one_step(item) && !is_shown(first) &&
         !is_nontemporal(compiled_->places[compiled_->stretches[first.first].first_place]);
}

inline std::byte* LoadStoreOperation::where(const Place& place) const {
  return place.owner != kOwn && place.space == Space::scratch
             ? scratch_of(place.owner) + place.offset
             : at(place);
}

// Does the work of combine() for the only stretch of a plain item.
inline void LoadStoreOperation::combine_only(const Item& item) const {
  const Place* places = compiled_->places.data() + item.only->first_place;
  const int sources = static_cast<int>(compiled_->steps[item.first].places) - 1;
  const void** const from = sources_.data();
  for (int k = 0; k < sources; ++k) from[k] = where(places[k + 1]);
  const std::size_t bytes = compiled_->steps[item.first].bytes;
  std::byte* const to = where(places[0]);
  if (sources == 1 && item.interleaved)
    return copy_interleaved(shm_->profile(), to, from[0], bytes);
  if (sources == 1) return copy_bytes(to, from[0], bytes);
  if (!item.interleaved) return compiled_->reduce(to, from, sources, item.only->elements);
  targets_[0] = to;
  interleave(1, sources, bytes, 1);
}

// Reduces the first `sources` of sources_ into the first `targets` of targets_, interleaved.
// Advances both.
void LoadStoreOperation::interleave(int targets, int sources, std::size_t bytes,
                                    int divisor) const {
  const std::size_t element = size_of(compiled_->type);
  std::size_t last = 0;
  interleaved(bytes, shm_->profile().strip, [&](std::size_t at, std::size_t strip) {
    const std::ptrdiff_t by = std::ptrdiff_t(at) - std::ptrdiff_t(last);
    for (auto to = targets_.begin(); to != targets_.begin() + targets; ++to)
      *to = static_cast<std::byte*>(*to) + by;
    for (auto from = sources_.begin(); from != sources_.begin() + sources; ++from)
      *from = static_cast<const std::byte*>(*from) + by;
    last = at;
    compiled_->reduce_copy(targets_.data(), targets, sources_.data(), sources, strip / element,
                        divisor);
  });
}

// True if the item is a sum, with or without division and copies, that needs one pass.
bool LoadStoreOperation::is_reduce_copy(const Item& item) const {
  const CompiledStep& sum = compiled_->steps[item.first];
  if (sum.places < 3) return false;
  for (std::uint32_t i = item.first; i < item.last; ++i) {
    const CompiledStep& step = compiled_->steps[i];
    if (step.places == 1 && i > item.first + 1) return false;   // a copy precedes the division
    if (step.stretches > 0 && is_nontemporal(*places_of(step, {}))) return false;
  }
  return true;
}

void LoadStoreOperation::reduce_copy(const Item& item) {
  const CompiledStep& sum = compiled_->steps[item.first];
  const int sources = static_cast<int>(sum.places) - 1;
  const bool divides = item.first + 1 < item.last && compiled_->steps[item.first + 1].places == 1;
  const int divisor = divides ? compiled_->divisor : 1;
  for (Strip all{}; all.stretch < sum.stretches; ++all.stretch) {
    int targets = 0;
    for (std::uint32_t i = item.first; i < item.last; ++i)
      if (const CompiledStep& step = compiled_->steps[i]; step.places > 1)
        targets_[std::size_t(targets++)] = target_of(step, all);
    const Place* const places = places_of(sum, all);
    for (int k = 0; k < sources; ++k) sources_[std::size_t(k)] = at(places[k + 1]);
    const std::size_t elements = compiled_->stretches[sum.first + all.stretch].elements;
    const std::size_t bytes = elements * size_of(compiled_->type);
    if (bytes >= kInterleave * shm_->profile().strip) interleave(targets, sources, bytes, divisor);
    else
      compiled_->reduce_copy(targets_.data(), targets, sources_.data(), sources, elements, divisor);
  }
}

void LoadStoreOperation::work(const Item& item) {
  if (item.only) return combine_only(item);
  const CompiledStep& first = compiled_->steps[item.first];
  if (first.stretches == 0) return;
  shows_past_caches_ = false;
  const bool one = is_one_step(item);
  const Place& target = compiled_->places[compiled_->stretches[first.first].first_place];
  if (one && !is_nontemporal(target)) return is_shown(first) ? show(first) : combine(first);
  shows_past_caches_ = first.bytes >= shm_->profile().timed_copy && shm_->is_far();
  if (is_reduce_copy(item)) return reduce_copy(item);
  if (one && first.places == 2) copy_in_nontemporal(first);
  else run_fused(item);
  if (is_long_ || shows_past_caches_) nontemporal_fence();   // before any signal
}

// True if the step copies so many bytes into the stage, and so is timed.
bool LoadStoreOperation::is_shown(const CompiledStep& step) const {
  const Place& target = compiled_->places[compiled_->stretches[step.first].first_place];
  return target.space == Space::scratch && step.places == 2 &&
         step.bytes >= shm_->profile().timed_copy;
}

void LoadStoreOperation::show(const CompiledStep& step) {
  if (shm_->is_far()) {
    copy_in_nontemporal(step);
    nontemporal_fence();
    return shm_->wrote_nontemporal(step.bytes);
  }
  const double begin_s = channel_.now_s ? channel_.now_s() : 0;
  const Place* const places = places_of(step, {});
  if (one_shows_ && step.stretches == 1 && step.bytes >= shm_->profile().streams_into_stage)
    copy_interleaved(shm_->profile(), at(places[0]), at(places[1]), step.bytes);
  else combine(step);
  if (channel_.now_s) shm_->wrote(step.bytes, channel_.now_s() - begin_s);
}

void LoadStoreOperation::copy_in_nontemporal(const CompiledStep& step) const {
  for (std::uint32_t i = 0; i < step.stretches; ++i) {
    const Stretch& stretch = compiled_->stretches[step.first + i];
    const Place* places = compiled_->places.data() + stretch.first_place;
    copy_nontemporal(at(places[0]), at(places[1]), stretch.elements * size_of(compiled_->type));
  }
}

void LoadStoreOperation::run_fused(const Item& item) {
  alignas(64) std::byte aside[kStrip];
  const CompiledStep& first = compiled_->steps[item.first];
  for (std::uint32_t i = 0; i < first.stretches; ++i) {
    const std::size_t bytes =
        compiled_->stretches[first.first + i].elements * size_of(compiled_->type);
    for (std::size_t at = 0; at < bytes; at += kStrip) {
      const Strip strip{i, at, std::min(kStrip, bytes - at)};
      std::byte* const made = make(first, strip, aside);
      for (std::uint32_t step = item.first + 1; step < item.last; ++step)
        store_result(compiled_->steps[step], strip, made);
      if (made == aside) copy_nontemporal(target_of(first, strip), made, strip.bytes);
    }
  }
}

const Place* LoadStoreOperation::places_of(const CompiledStep& step, const Strip& strip) const {
  return compiled_->places.data() + compiled_->stretches[step.first + strip.stretch].first_place;
}

std::byte* LoadStoreOperation::target_of(const CompiledStep& step, const Strip& strip) const {
  return at(*places_of(step, strip)) + strip.offset;
}

// Computes a strip of the first step's result in its target, or in `aside` if the target needs
// non-temporal stores: the caller then stores it last. Returns the strip's place.
std::byte* LoadStoreOperation::make(const CompiledStep& step, const Strip& strip,
                                   std::byte* aside) const {
  const Place* places = places_of(step, strip);
  std::byte* const made = is_nontemporal(places[0]) ? aside : target_of(step, strip);
  const void** const sources = sources_.data();
  for (std::uint32_t k = 1; k < step.places; ++k) sources[k - 1] = at(places[k]) + strip.offset;
  if (step.places == 2)
    copy_bytes(made, sources[0], strip.bytes);
  else
    compiled_->reduce(made, sources, static_cast<int>(step.places) - 1,
                   strip.bytes / size_of(compiled_->type));
  return made;
}

void LoadStoreOperation::store_result(const CompiledStep& step, const Strip& strip,
                                      std::byte* made) const {
  if (step.places == 1) {
    if (compiled_->divisor > 1)
      divide(made, compiled_->type, strip.bytes / size_of(compiled_->type), compiled_->divisor);
  } else if (is_nontemporal(*places_of(step, strip))) {
    copy_nontemporal(target_of(step, strip), made, strip.bytes);
  } else {
    copy_bytes(target_of(step, strip), made, strip.bytes);
  }
}

}  // namespace paceline
