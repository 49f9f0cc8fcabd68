#include "engine/straight.hpp"

#include <algorithm>
#include <cstring>

#include "engine/woven.hpp"

namespace paceline {
namespace {

constexpr std::size_t kStrip = 16384;         // bytes that pass through the nearest cache
constexpr std::size_t kWovenStrip = 1024;     // likewise, of each of several streams
constexpr std::size_t kWoven = 64u << 10;     // bytes from which several streams pay
constexpr std::size_t kWovenOfBuffers = 128u << 10;   // likewise, from what peers did not show
constexpr std::size_t kMostWoven = 1u << 20;  // of a call: with more, they do not
constexpr std::size_t kLong = 4u << 20;       // of a message that should go past the caches
constexpr std::size_t kTimed = 8192;          // bytes from which a copy's time says something

}  // namespace

StraightOperation::StraightOperation(std::shared_ptr<const Bound> bound, const Channel& channel)
    : Operation(std::move(bound), channel),
      stages_(*channel_.stages),
      attached_(stages_, bound_->schedule->problem.rank),
      room_bytes_(bound_->scratch_bytes) {
  const Schedule& s = schedule();
  std::vector<std::uint32_t> heard(static_cast<std::size_t>(s.problem.ranks), 0);
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
    const Step& step = s.steps[i];
    const bool follows = !items_.empty() && items_.back().last == i;
    Item item{step.kind, i, i + 1, -1, 0};
    if (step.kind == Kind::signal) {
      if (follows && items_.back().kind == Kind::signal) {
        ++items_.back().last;
        continue;
      }
      item.signals = ++signals_;
    } else if (step.kind == Kind::wait) {
      item.position = step.peer;
      item.signals = ++heard[static_cast<std::size_t>(step.peer)];
    } else if (const int peer = crosses_to(step); peer != kOwn) {
      item.position = peer;
    } else if (follows && !talks(items_.back().kind) &&
               pass_on_together(items_.back().first, i)) {
      ++items_.back().last;
      continue;
    }
    items_.push_back(item);
  }
  for (const BoundStep& step : bound_->steps) most += step.bytes;
  is_long_ = !s.problem.in_place && most >= kLong;
  for (Item& item : items_)
    if (!talks(item.kind) && item.position == kOwn && is_plain(item))
      item.only = &bound_->stretches[bound_->steps[item.first].first];
  weave();
  swaps_ = s.problem.ranks == 2 && room_bytes_ > 0 && !has_root(s.problem.collective);
}

// What is taken from peers into the own buffers, as long as those stay in the cache.
void StraightOperation::weave() {
  std::size_t all = 0;
  for (Item& item : items_) {
    if (!item.only) continue;
    const BoundStep& step = bound_->steps[item.first];
    const Place* const target = bound_->places.data() + item.only->first_place;
    const Place* const end = target + step.places;
    const Place* const theirs =
        std::find_if(target + 1, end, [](const Place& source) { return source.owner != kOwn; });
    if (theirs == end || target->owner != kOwn || target->space == Space::scratch) continue;
    item.woven = step.bytes >= (theirs->space == Space::scratch ? kWoven : kWovenOfBuffers);
    all += step.bytes;
  }
  if (all <= kMostWoven) return;
  for (Item& item : items_) item.woven = false;
}

int StraightOperation::crosses_to(const Step& step) const {
  if (!schedule().attached || talks(step.kind)) return kOwn;
  for (const Segment* s = schedule().begin(step); s != schedule().end(step); ++s)
    if (s->owner != kOwn) return s->owner;
  return kOwn;
}

// Whether the next step only goes on with what the first one has produced: same places, same
// lengths, and it copies from there or divides it.
bool StraightOperation::pass_on_together(std::uint32_t first, std::uint32_t next) const {
  const BoundStep &a = bound_->steps[first], &b = bound_->steps[next];
  if (a.places < 2 || b.places > 2 || a.stretches != b.stretches) return false;
  for (std::uint32_t i = 0; i < a.stretches; ++i) {
    const Stretch &x = bound_->stretches[a.first + i], &y = bound_->stretches[b.first + i];
    const Place& made = bound_->places[x.first_place];
    const Place& taken = bound_->places[y.first_place + b.places - 1];
    if (x.elements != y.elements || made.space != taken.space || made.owner != taken.owner ||
        made.offset != taken.offset)
      return false;
  }
  return true;
}

void StraightOperation::begin() {
  call_ = stages_.enroll();
  entered_ = false;
  next_ = 0;
  waits_for_ = -1;
  begun_ = false;
  stranger_.reset();
  barred_.reset();
}

void StraightOperation::cancel(Transport&) {
  if (schedule().attached && entered_) attached_.withdraw();
}

inline bool StraightOperation::enter() {
  if (!stages_.is_next(call_)) return false;   // an earlier call of this rank is under way
  if (!stages_.can_enter(room_bytes_, swaps_)) {
    waits_for_ = 1 - schedule().problem.rank;
    return false;
  }
  if (const auto peer = stages_.occupied(call_, room_bytes_, stranger_)) {
    waits_for_ = *peer;
    return false;
  }
  if (stranger_) return false;
  waits_for_ = -1;
  stages_.enter(call_, room_bytes_, number_, fingerprint_, swaps_);
  base_[2] = stages_.room(schedule().problem.rank, call_);
  if (schedule().attached) attached_.show(call_, base_[0], base_[1]);
  return entered_ = true;
}

bool StraightOperation::advance(Transport& transport) {
  if (done() || stranger_ || barred_ || (!entered_ && !enter())) return false;
  const std::size_t before = next_;
  for (; next_ < items_.size(); ++next_) {
    const Item& item = items_[next_];
    if (events_ && !begun_) begun_s_ = now_s_();
    begun_ = true;
    if (!do_step(item, transport)) return next_ > before;
    if (events_) note(item);
    begun_ = false;
  }
  if (stages_.leave(call_)) transport.nudge(*channel_.ranks);
  complete();
  return true;
}

inline bool StraightOperation::do_step(const Item& item, Transport& transport) {
  if (item.kind == Kind::wait) return wait(item);
  if (item.kind == Kind::signal) {
    stages_.signal(call_, item.signals);
    transport.nudge(*channel_.ranks);
  } else if (item.position != kOwn) {
    return cross(item);
  } else {
    work(item);
  }
  return true;
}

// Where the peer has gone, this rank waits for it as for one that is late, and is told why it does
// not come.
bool StraightOperation::cross(const Item& item) {
  const BoundStep& step = bound_->steps[item.first];
  waits_for_ = item.position;
  for (std::uint32_t i = 0; i < step.stretches; ++i) {
    const Stretch& stretch = bound_->stretches[step.first + i];
    const Place* const places = bound_->places.data() + stretch.first_place;   // target, source
    const bool writes = places[0].owner != kOwn;
    const Place &there = places[writes ? 0 : 1], &here = places[writes ? 1 : 0];
    const int error = attached_.copy({item.position, there.space == Space::input, writes,
                                      there.offset, at(here),
                                      stretch.elements * size_of(bound_->type)});
    if (error != 0 && error != Attached::kGone) barred_ = Barred{item.position, writes, error};
    if (error != 0) return false;
  }
  waits_for_ = -1;
  return true;
}

// Signals are given at once and yet each to somebody; steps that go together have no times of their
// own.
void StraightOperation::note(const Item& item) {
  if (item.kind != Kind::signal)
    return log(item.first, begun_s_, static_cast<int>(item.last - item.first));
  for (std::uint32_t step = item.first; step < item.last; ++step) log(step, begun_s_);
}

inline bool StraightOperation::wait(const Item& item) {
  waits_for_ = item.position;
  if (!stages_.has_come(item.position, call_, item.signals)) return false;
  waits_for_ = -1;
  if (item.signals == 1) stranger_ = stages_.stranger(item.position, call_);
  return !stranger_;
}

std::byte* StraightOperation::scratch_of(int position) const {
  return stages_.room(position, call_);
}

// Outputs that are no inputs, of long messages: nobody reads them before they have left the cache.
bool StraightOperation::streams(const Place& place) const {
  return place.space == Space::output ? is_long_ : place.space == Space::scratch && is_shown_far_;
}

// With nothing to divide, a sum and its end are one step.
bool StraightOperation::is_one(const Item& item) const {
  const std::uint32_t steps = item.last - item.first;
  return steps == 1 || (steps == 2 && bound_->divisor <= 1 &&
                        bound_->steps[item.first + 1].places == 1);
}

bool StraightOperation::is_plain(const Item& item) const {
  const BoundStep& first = bound_->steps[item.first];
  return first.stretches == 1 && first.places >= 2 && is_one(item) && !is_shown(first) &&
         !streams(bound_->places[bound_->stretches[first.first].first_place]);
}

inline std::byte* StraightOperation::where(const Place& place) const {
  return place.owner != kOwn && place.space == Space::scratch
             ? stages_.room(place.owner, call_) + place.offset
             : at(place);
}

// As combine() does it.
inline void StraightOperation::combine_only(const Item& item) const {
  const Place* places = bound_->places.data() + item.only->first_place;
  const int sources = static_cast<int>(bound_->steps[item.first].places) - 1;
  const void** const from = sources_.data();
  for (int k = 0; k < sources; ++k) from[k] = where(places[k + 1]);
  const std::size_t bytes = bound_->steps[item.first].bytes;
  if (item.woven) return combine_woven(where(places[0]), sources, bytes);
  if (sources == 1) std::memcpy(where(places[0]), from[0], bytes);
  else bound_->reduce(where(places[0]), from, sources, item.only->elements);
}

// Of the sources in sources_, which move on.
void StraightOperation::combine_woven(std::byte* target, int sources, std::size_t bytes) const {
  std::size_t last = 0;
  woven(bytes, kWovenStrip, [&](std::size_t at, std::size_t strip) {
    for (int k = 0; k < sources; ++k) {
      const auto* const from = static_cast<const std::byte*>(sources_[std::size_t(k)]);
      sources_[std::size_t(k)] = from + std::ptrdiff_t(at) - std::ptrdiff_t(last);
    }
    last = at;
    if (sources == 1) std::memcpy(target + at, sources_[0], strip);
    else bound_->reduce(target + at, sources_.data(), sources, strip / size_of(bound_->type));
  });
}

void StraightOperation::work(const Item& item) {
  if (item.only) return combine_only(item);
  const BoundStep& first = bound_->steps[item.first];
  if (first.stretches == 0) return;
  is_shown_far_ = false;
  const bool one = is_one(item);
  const bool aside = streams(bound_->places[bound_->stretches[first.first].first_place]);
  if (one && !aside) return is_shown(first) ? show(first) : combine(first);
  if (one && first.places == 2) copy_past(first);
  else pass_on(item);
  if (is_long_ || is_shown_far_) end_stream();   // before any signal
}

// Whether it copies so much into the stage that it matters how.
bool StraightOperation::is_shown(const BoundStep& step) const {
  const Place& target = bound_->places[bound_->stretches[step.first].first_place];
  return target.space == Space::scratch && step.places == 2 && step.bytes >= kTimed;
}

void StraightOperation::show(const BoundStep& step) {
  if (stages_.is_far()) {
    copy_past(step);
    end_stream();
    return stages_.streamed(step.bytes);
  }
  const double begin_s = channel_.now_s ? channel_.now_s() : 0;
  combine(step);
  if (channel_.now_s) stages_.wrote(step.bytes, channel_.now_s() - begin_s);
}

void StraightOperation::copy_past(const BoundStep& step) const {
  for (std::uint32_t i = 0; i < step.stretches; ++i) {
    const Stretch& stretch = bound_->stretches[step.first + i];
    const Place* places = bound_->places.data() + stretch.first_place;
    stream(at(places[0]), at(places[1]), stretch.elements * size_of(bound_->type));
  }
}

void StraightOperation::pass_on(const Item& item) {
  alignas(64) std::byte aside[kStrip];
  is_shown_far_ = stages_.is_far() && bound_->steps[item.first].bytes >= kTimed;
  const BoundStep& first = bound_->steps[item.first];
  for (std::uint32_t i = 0; i < first.stretches; ++i) {
    const std::size_t bytes = bound_->stretches[first.first + i].elements * size_of(bound_->type);
    for (std::size_t at = 0; at < bytes; at += kStrip) {
      const Strip strip{i, at, std::min(kStrip, bytes - at)};
      std::byte* const made = make(first, strip, aside);
      for (std::uint32_t step = item.first + 1; step < item.last; ++step)
        hand_on(bound_->steps[step], strip, made);
      if (made == aside) stream(target_of(first, strip), made, strip.bytes);
    }
  }
}

const Place* StraightOperation::places_of(const BoundStep& step, const Strip& strip) const {
  return bound_->places.data() + bound_->stretches[step.first + strip.stretch].first_place;
}

std::byte* StraightOperation::target_of(const BoundStep& step, const Strip& strip) const {
  return at(*places_of(step, strip)) + strip.offset;
}

// What is not to stay in the cache is made aside, and stored last.
std::byte* StraightOperation::make(const BoundStep& step, const Strip& strip,
                                   std::byte* aside) const {
  const Place* places = places_of(step, strip);
  std::byte* const made = streams(places[0]) ? aside : target_of(step, strip);
  const void** const sources = sources_.data();
  for (std::uint32_t k = 1; k < step.places; ++k) sources[k - 1] = at(places[k]) + strip.offset;
  if (step.places == 2)
    std::memcpy(made, sources[0], strip.bytes);
  else
    bound_->reduce(made, sources, static_cast<int>(step.places) - 1,
                   strip.bytes / size_of(bound_->type));
  return made;
}

void StraightOperation::hand_on(const BoundStep& step, const Strip& strip, std::byte* made) const {
  if (step.places == 1) {
    if (bound_->divisor > 1)
      divide(made, bound_->type, strip.bytes / size_of(bound_->type), bound_->divisor);
  } else if (streams(*places_of(step, strip))) {
    stream(target_of(step, strip), made, strip.bytes);
  } else {
    std::memcpy(target_of(step, strip), made, strip.bytes);
  }
}

bool StraightOperation::stirs() {
  if (done() || stranger_ || barred_) return false;
  if (!entered_)
    return stages_.is_next(call_) && stages_.can_enter(room_bytes_, swaps_) &&
           !stages_.occupied(call_, room_bytes_, stranger_);
  const Item& item = items_[next_];
  return item.kind == Kind::wait && stages_.has_come(item.position, call_, item.signals);
}

std::vector<int> StraightOperation::waits_for() const {
  std::vector<int> ranks;
  if (waits_for_ >= 0) ranks.push_back(rank_of(waits_for_));
  for (std::size_t i = next_; entered_ && i < items_.size(); ++i) {   // of the same meeting
    const Item& item = items_[i];
    if (item.kind != Kind::wait) break;
    if (i == next_) continue;
    if (!stages_.has_come(item.position, call_, item.signals))
      ranks.push_back(rank_of(item.position));
  }
  return ranks;
}

}  // namespace paceline
