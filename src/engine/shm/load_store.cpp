#include "engine/shm/load_store.hpp"

#include <algorithm>
#include <cstring>

#include "base/copy_bytes.hpp"
#include "engine/shm/positions.hpp"

namespace paceline {

LoadStoreOperation::LoadStoreOperation(std::shared_ptr<const CompiledSchedule> bound,
                                       const Channel& channel, Positions* positions)
    : Operation(std::move(bound), channel),
      shm_(&channel_.shm->first()),
      positions_(positions),
      attached_(*shm_, compiled_->schedule->problem.rank),
      slot_bytes_(compiled_->scratch_bytes) {
  const Schedule& s = schedule();
  const ShmProfile& profile = shm_->profile();
  std::vector<std::uint32_t> heard(static_cast<std::size_t>(s.problem.ranks), 0);
  std::size_t most = 0;
  auto next_uneven = compiled_->uneven_copies.begin();
  for (std::uint32_t i = 0; i < s.steps.size(); ++i) {
    const Step& step = s.steps[i];
    const bool follows = !items_.empty() && items_.back().last == i;
    Item item{step.kind, i, i + 1, -1, 0};
    if (!talks(step.kind))
      item.bytes =
          static_cast<std::uint32_t>(std::min<std::size_t>(compiled_->steps[i].bytes, ~0u));
    if (step.kind == Kind::signal) {
      if (follows && items_.back().kind == Kind::signal) {
        ++items_.back().last;
        continue;
      }
      item.signals = ++signals_;
    } else if (step.kind == Kind::wait) {
      item.position = step.peer;
      item.signals = ++heard[static_cast<std::size_t>(step.peer)];
    } else if (const int peer = single_copy_peer(step); peer != kOwn) {
      item.position = peer;
    } else if (next_uneven != compiled_->uneven_copies.end() && next_uneven->step == i) {
      item.uneven = &*next_uneven++;
    } else if (follows && !talks(items_.back().kind) &&
               fuse_together(items_.back().first, i)) {
      ++items_.back().last;
      continue;
    }
    items_.push_back(item);
  }
  for (const CompiledStep& step : compiled_->steps) most += step.bytes;
  sends_as_well_ = std::ranges::any_of(compiled_->uneven_copies, &UnevenCopy::is_message);
  is_brief_ = most <= profile.brief && !sends_as_well_;
  const bool are_two = s.problem.ranks == 2;
  is_long_ = !s.problem.in_place &&
             most >= (are_two ? profile.long_output_of_two : profile.long_output);
  for (Item& item : items_)
    if (!talks(item.kind) && item.position == kOwn && is_plain(item))
      item.only = &compiled_->stretches[compiled_->steps[item.first].first];
  one_shows_ = s.problem.ranks == 2 && !positions_ && has_root(s.problem.collective);
  find_interleaved();
  std::uint32_t together = 1;
  for (const Item& item : items_) together = std::max(together, item.last - item.first);
  targets_.resize(together);
  if (s.single_copy) sent_ = std::vector<Transfer>(static_cast<std::size_t>(s.problem.ranks));
  if (sends_as_well_) sent_ = std::vector<Transfer>(compiled_->uneven_copies.size());
  swaps_ = s.problem.ranks == 2 && slot_bytes_ > 0 && !positions_ &&
           !has_root(s.problem.collective);
}

// Marks long reads from peers into this rank's buffers, unless all of them exceed the cache.
void LoadStoreOperation::find_interleaved() {
  const ShmProfile& profile = shm_->profile();
  const std::size_t from_stage =
      one_shows_ ? profile.streams_from_one_stage : profile.streams_from_stage;
  std::size_t all = 0;
  for (Item& item : items_) {
    if (!item.only) continue;
    const CompiledStep& step = compiled_->steps[item.first];
    const Place* const target = compiled_->places.data() + item.only->first_place;
    const Place* const end = target + step.places;
    const Place* const theirs =
        std::find_if(target + 1, end, [](const Place& source) { return source.owner != kOwn; });
    if (theirs == end || target->owner != kOwn || target->space == Space::scratch) continue;
    item.interleaved = step.bytes >= (theirs->space == Space::scratch
                                          ? from_stage : profile.streams_from_buffer);
    all += step.bytes;
  }
  if (all <= profile.most_in_streams) return;
  for (Item& item : items_) item.interleaved = false;
}

int LoadStoreOperation::single_copy_peer(const Step& step) const {
  if (!schedule().single_copy || talks(step.kind)) return kOwn;
  for (const Segment* s = schedule().begin(step); s != schedule().end(step); ++s)
    if (s->owner != kOwn) return s->owner;
  return kOwn;
}

// True if the next step only copies or divides the result of the first one, with the same places
// and lengths.
bool LoadStoreOperation::fuse_together(std::uint32_t first, std::uint32_t next) const {
  const CompiledStep &a = compiled_->steps[first], &b = compiled_->steps[next];
  if (a.places < 2 || b.places > 2 || a.stretches != b.stretches) return false;
  for (std::uint32_t i = 0; i < a.stretches; ++i) {
    const Stretch &x = compiled_->stretches[a.first + i], &y = compiled_->stretches[b.first + i];
    const Place& made = compiled_->places[x.first_place];
    const Place& taken = compiled_->places[y.first_place + b.places - 1];
    if (x.elements != y.elements || made.space != taken.space || made.owner != taken.owner ||
        made.offset != taken.offset)
      return false;
  }
  return true;
}

void LoadStoreOperation::begin() {
  entered_ = positions_ != nullptr;
  ShmChannel& shm = entered_ ? positions_->shm() : channel_.shm->take(priority_);
  if (&shm != shm_) attached_.use(*(shm_ = &shm));   // an unneeded store would delay short calls
  call_ = entered_ ? positions_->call() : shm_->enroll();
  if (entered_) base_[2] = shm_->slot(shm_->rank(), call_);
  next_ = 0;
  waits_for_ = -1;
  aside_ = base_[2];
  for (Transfer& message : sent_) message.done.store(true, std::memory_order_relaxed);
  begun_ = is_paused_ = false;
  mismatch_.reset();
  barred_.reset();
  misfit_.reset();
}

void LoadStoreOperation::cancel(Transport& transport) {
  for (Transfer& message : sent_)
    if (!message.done.load(std::memory_order_acquire)) transport.cancel(message);
  if (schedule().single_copy && entered_) attached_.withdraw();
}

inline bool LoadStoreOperation::enter() {
  if (!shm_->is_next(call_)) return false;   // an earlier call of this rank is under way
  if (!shm_->can_enter(slot_bytes_, swaps_)) {
    waits_for_ = 1 - schedule().problem.rank;
    return false;
  }
  if (const auto peer = shm_->occupied(call_, slot_bytes_, mismatch_)) {
    waits_for_ = *peer;
    return false;
  }
  if (mismatch_) return false;
  waits_for_ = -1;
  shm_->enter(call_, slot_bytes_, number(), fingerprint_, swaps_);
  base_[2] = shm_->slot(schedule().problem.rank, call_);
  if (schedule().single_copy) attached_.show(call_, base_[0], base_[1]);
  return entered_ = true;
}

bool LoadStoreOperation::advance(Transport& transport) {
  if (done() || mismatch_ || barred_ || misfit_) return false;
  if (!entered_) {
    if (!enter()) return false;
    if (sends_as_well_) begin_uneven(transport);
  }
  const std::size_t before = next_;
  const std::size_t preempted = shm_->profile().preempted;
  std::size_t worked = 0;
  is_paused_ = false;
  for (; next_ < items_.size(); ++next_) {
    const Item& item = items_[next_];
    if (worked >= preempted && item.bytes > 0) return is_paused_ = true;
    if (events_ && !begun_) begun_s_ = now_s_();
    begun_ = true;
    if (!do_step(item, transport)) return next_ > before;
    if (events_) note(item);
    begun_ = false;
    worked += item.bytes;
  }
  if (!sent_.empty() && !has_sent(transport)) return next_ > before;
  if (positions_) positions_->leave();
  if (shm_->leave(call_)) transport.wake_peers(*channel_.ranks);
  complete();
  return true;
}

inline bool LoadStoreOperation::do_step(const Item& item, Transport& transport) {
  if (item.kind == Kind::wait) return wait(item);
  if (item.kind == Kind::signal) {
    shm_->signal(call_, item.signals);
    transport.wake_peers(*channel_.ranks);
  } else if (item.position != kOwn) {
    return copy_singly(item);
  } else if (item.uneven) {
    return copy_uneven(*item.uneven);
  } else {
    work(item);
  }
  return true;
}

// If the peer has gone, this rank waits for it as for a late one, and the watchdog reports it.
bool LoadStoreOperation::copy_singly(const Item& item) {
  const CompiledStep& step = compiled_->steps[item.first];
  waits_for_ = item.position;
  for (std::uint32_t i = 0; i < step.stretches; ++i) {
    const Stretch& stretch = compiled_->stretches[step.first + i];
    const Place* const places = compiled_->places.data() + stretch.first_place;   // target, source
    const bool writes = places[0].owner != kOwn;
    const Place &there = places[writes ? 0 : 1], &here = places[writes ? 1 : 0];
    const int error = attached_.copy({item.position, there.space == Space::input, writes,
                                      there.offset, at(here),
                                      stretch.elements * size_of(compiled_->type)});
    if (error != 0 && error != Attached::kGone) barred_ = CopyDenied{item.position, writes, error};
    if (error != 0) return false;
  }
  waits_for_ = -1;
  return true;
}

// After the last step. If copies were refused, the root sends the message (see Attached).
bool LoadStoreOperation::has_sent(Transport& transport) {
  const Problem& pb = schedule().problem;
  const bool is_first = next_ == items_.size();
  if (is_first) ++next_;
  for (int peer = 0; schedule().single_copy && peer < pb.ranks; ++peer) {
    const bool pairs = peer != pb.rank && (pb.rank == pb.root || peer == pb.root);
    if (is_first && pairs && attached_.is_refused(peer)) send_instead(peer, transport);
  }
  const auto open = std::ranges::find_if(sent_, [](const Transfer& message) {
    return !message.done.load(std::memory_order_acquire);
  });
  const auto at = static_cast<std::size_t>(open - sent_.begin());
  if (open == sent_.end()) waits_for_ = -1;
  else waits_for_ = sends_as_well_ ? compiled_->uneven_copies[at].peer : static_cast<int>(at);
  return waits_for_ < 0;
}

void LoadStoreOperation::send_instead(int position, Transport& transport) {
  const bool sends = schedule().problem.rank == schedule().problem.root;
  begin_message(sent_[static_cast<std::size_t>(position)], position, 0,
                {base_[1], compiled_->message_bytes}, sends, transport);
}

// Sends first: what is sent in place must be aside before anything is received.
void LoadStoreOperation::begin_uneven(Transport& transport) {
  for (const bool sends : {true, false})
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      const UnevenCopy& copy = compiled_->uneven_copies[i];
      if (!copy.is_message || copy.sends != sends) continue;
      std::byte* data = at(copy.place);
      if (sends && compiled_->aside_bytes > 0)
        data = static_cast<std::byte*>(std::memcpy(aside_ + copy.aside, data, copy.bytes));
      begin_message(sent_[i], copy.peer, copy.seq, {data, copy.bytes}, sends, transport);
    }
}

void LoadStoreOperation::begin_message(Transfer& message, int position, int seq, const Part& part,
                                       bool sends, Transport& transport) {
  message.peer = rank_of(position);
  message.key = {channel_.context, number(), 0, false, seq};
  message.fingerprint = fingerprint_;
  message.priority = priority_;
  message.bytes = part.bytes;
  message.parts = {part};
  message.done.store(false, std::memory_order_relaxed);
  message.moved = 0;
  message.granted = false;
  if (sends) transport.send(message);
  else transport.recv(message);
}

// If the lengths differ, this rank reports that and does not go on.
bool LoadStoreOperation::copy_uneven(const UnevenCopy& copy) {
  std::byte* const slot = at(copy.slot);
  std::uint64_t bytes = copy.bytes;
  if (copy.sends) {
    std::memcpy(slot, &bytes, sizeof bytes);
    if (!copy.is_message) copy_bytes(slot + kUnevenHead, at(copy.place), copy.bytes);
    return true;
  }
  std::memcpy(&bytes, slot, sizeof bytes);
  if (bytes != copy.bytes) misfit_ = Misfit{copy.peer, std::size_t(bytes), copy.bytes};
  else if (!copy.is_message) copy_bytes(at(copy.place), slot + kUnevenHead, copy.bytes);
  return !misfit_;
}

// Logs every signal, since each goes to another peer. Fused steps share one entry.
void LoadStoreOperation::note(const Item& item) {
  if (item.kind != Kind::signal)
    return log(item.first, begun_s_, static_cast<int>(item.last - item.first));
  for (std::uint32_t step = item.first; step < item.last; ++step) log(step, begun_s_);
}

inline bool LoadStoreOperation::wait(const Item& item) {
  waits_for_ = item.position;
  const int peer = named(item.position);
  if (peer < 0) {
    mismatch_ = positions_->mismatch();
    return false;
  }
  if (!shm_->has_come(peer, call_, item.signals)) return false;
  waits_for_ = -1;
  if (item.signals == 1) mismatch_ = shm_->mismatch(peer, call_);
  return !mismatch_;
}

// The rank is known whenever a step reads from a position, since a wait comes before it.
inline int LoadStoreOperation::named(int position) const {
  return positions_ ? positions_->rank_at(position) : position;
}

int LoadStoreOperation::peer_of(int position) const {
  const int rank = named(position);
  return rank < 0 ? -1 : rank_of(rank);
}

std::byte* LoadStoreOperation::scratch_of(int position) const {
  return shm_->slot(named(position), call_);
}

bool LoadStoreOperation::can_progress() {
  if (done() || mismatch_ || barred_ || misfit_) return false;
  if (!entered_)
    return shm_->is_next(call_) && shm_->can_enter(slot_bytes_, swaps_) &&
           !shm_->occupied(call_, slot_bytes_, mismatch_);
  if (is_paused_) return true;
  if (next_ >= items_.size()) return false;
  const Item& item = items_[next_];
  return item.kind == Kind::wait && named(item.position) >= 0 &&
         shm_->has_come(named(item.position), call_, item.signals);
}

// Returns the rank at a position; if none has come there yet, all ranks that have yet to come.
std::vector<int> LoadStoreOperation::awaited_at(int position) const {
  std::vector<int> ranks{named(position)};
  if (ranks[0] < 0) ranks = positions_->missing();
  for (int& rank : ranks) rank = rank_of(rank);
  return ranks;
}

std::vector<int> LoadStoreOperation::waits_for() const {
  std::vector<int> ranks;
  if (waits_for_ >= 0) ranks = awaited_at(waits_for_);
  if (positions_ && !positions_->are_ranks()) return ranks;
  for (std::size_t i = next_; entered_ && i < items_.size(); ++i) {   // consecutive waits
    const Item& item = items_[i];
    if (item.kind != Kind::wait) break;
    if (i == next_) continue;
    if (!shm_->has_come(item.position, call_, item.signals))
      ranks.push_back(rank_of(item.position));
  }
  return ranks;
}

}  // namespace paceline
