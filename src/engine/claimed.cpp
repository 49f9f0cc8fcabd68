#include "engine/claimed.hpp"

#include <algorithm>

namespace paceline {
namespace {

// Bit of a fingerprint's choice: the call goes by arrival. Ranks must agree on it.
constexpr std::uint64_t kByArrival = std::uint64_t{0x5aa5} << 48;

}  // namespace

ClaimedOperation::ClaimedOperation(std::shared_ptr<const CompiledSchedule> bound,
                                   const Channel& channel)
    : Operation(std::move(bound), channel),
      shm_(&channel_.shm->first()),
      claimed_(compiled_->by_arrival ? compiled_->by_arrival : compiled_),
      positions_(*shm_, shm_->ranks()) {
  for (const auto& one : claimed_->positions)
    at_.push_back(std::make_unique<LoadStoreOperation>(one, channel_, &positions_));
  if (!compiled_->by_arrival) return;
  usual_ = std::make_unique<LoadStoreOperation>(compiled_, channel_, &positions_);
  positions_.before_leaving([this] { entry_book().leave(node_entries(), channel_.now_s()); });
}

EntryBook& ClaimedOperation::entry_book() const {
  return channel_.entry_books[shm_ == &channel_.shm->first() ? 0 : 1];
}

NodeEntries ClaimedOperation::node_entries() const {
  return {shm_->rank(), shm_->ranks(),
          [shm = shm_](int rank) -> StageEntries& { return shm->stage(rank).entries(); }};
}

std::size_t ClaimedOperation::scratch_bytes() const {
  std::size_t most = 0;
  for (const auto& one : at_) most = std::max(most, one->scratch_bytes());
  return most;
}

void ClaimedOperation::cancel(Transport& transport) {
  if (now_) now_->stop(transport, Error(Fault::internal, "its call has failed"));
  now_ = nullptr;
}

void ClaimedOperation::meet(std::optional<CallMismatch> mismatch) {
  if (!mismatch) return;
  const int rank = shm_->members()[static_cast<std::size_t>(mismatch->position)];
  const std::vector<int>& ranks = *channel_.ranks;
  mismatch->position =
      static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  mismatch_ = mismatch;
}

void ClaimedOperation::begin() {
  shm_ = &channel_.shm->take(priority_);
  call_ = shm_->enroll();
  now_ = nullptr;
  waits_for_ = -1;
  decided_ = !usual_;
  shown_ = fingerprint_;
  arrived_s_ = 0;
  is_paused_ = false;
  mismatch_.reset();
}

// Decides from facts that all ranks of this call know.
bool ClaimedOperation::decide() {
  if (arrived_s_ == 0) arrived_s_ = channel_.now_s();
  if (is_behind()) return false;
  claims_ = entry_book().decide(node_entries(), call_, fingerprint_);
  entry_book().enter(node_entries(), arrived_s_);
  if (claims_) shown_.what ^= kByArrival;
  return decided_ = true;
}

bool ClaimedOperation::is_behind() {
  std::optional<CallMismatch> mismatch;
  return keeps(shm_->behind(call_, mismatch), mismatch);
}

bool ClaimedOperation::is_occupied() {
  std::optional<CallMismatch> mismatch;
  return keeps(shm_->occupied(call_, slot_bytes(), mismatch), mismatch);
}

bool ClaimedOperation::keeps(std::optional<int> peer, const std::optional<CallMismatch>& mismatch) {
  waits_for_ = peer.value_or(-1);
  meet(mismatch);
  return peer || mismatch;
}

bool ClaimedOperation::enter() {
  if (!shm_->is_next(call_)) return false;   // an earlier call of this rank is under way
  if (!decided_ && !decide()) return false;
  waits_for_ = !claims_ || shm_->find(0) ? -1 : 0;
  if (waits_for_ >= 0) return false;
  if (is_occupied()) return false;
  shm_->enter(call_, slot_bytes(), number_, shown_);
  if (claims_) positions_.begin(*shm_, call_);
  else positions_.begin_as_ranks(*shm_, call_);
  take_up();
  return true;
}

void ClaimedOperation::take_up() {
  now_ = claims_ ? at_[static_cast<std::size_t>(positions_.take())].get() : usual_.get();
  now_->record(events_, now_s_);
  now_->set_priority(priority_);
  now_->start({base_[0], base_[1], base_[2], peers_}, number_, shown_);
}

bool ClaimedOperation::advance(Transport& transport) {
  if (done() || mismatch_ || (!now_ && !enter())) return false;
  const bool moved = now_->advance(transport);
  mismatch_ = now_->mismatch();
  is_paused_ = now_->is_paused();
  if (now_->done()) complete();
  return moved;
}

std::vector<int> ClaimedOperation::waits_for() const {
  if (now_) return now_->waits_for();
  if (waits_for_ < 0) return {};
  return {shm_->members()[static_cast<std::size_t>(waits_for_)]};
}

bool ClaimedOperation::can_progress() {
  if (done() || mismatch_) return false;
  if (now_) return now_->can_progress();
  if (!shm_->is_next(call_)) return false;
  if (!decided_) return !is_behind() || mismatch_;
  return (!claims_ || shm_->find(0)) && (!is_occupied() || mismatch_);
}

}  // namespace paceline
