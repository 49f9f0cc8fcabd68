#include "engine/mixed.hpp"

#include <algorithm>

namespace paceline {

MixedOperation::MixedOperation(std::shared_ptr<const CompiledSchedule> bound,
                               const Channel& channel)
    : MessageOperation(std::move(bound), channel),
      shm_(&channel_.shm->first()),
      mates_(shm_->members()),
      raised_(static_cast<std::size_t>(schedule().lanes)) {
  for (int rank : *channel_.ranks) {
    const auto mate = std::find(mates_.begin(), mates_.end(), rank);
    local_ranks_.push_back(mate == mates_.end() ? -1 : static_cast<int>(mate - mates_.begin()));
  }
}

void MixedOperation::begin() {
  entered_ = false;
  shm_ = &channel_.shm->take(priority_);
  call_ = shm_->enroll();
  has_ended_ = false;
  occupied_by_ = -1;
  mismatch_.reset();
  waits_.clear();
  std::fill(raised_.begin(), raised_.end(), 0);
  MessageOperation::begin();
}

void MixedOperation::cancel(Transport& transport) {
  waits_.clear();
  MessageOperation::cancel(transport);
}

int MixedOperation::position_of(int local_rank) const {
  const auto found = std::find(local_ranks_.begin(), local_ranks_.end(), local_rank);
  return static_cast<int>(found - local_ranks_.begin());
}

void MixedOperation::meet(std::optional<CallMismatch> mismatch) {
  if (!mismatch) return;
  mismatch->position = position_of(mismatch->position);
  mismatch_ = mismatch;
}

bool MixedOperation::is_occupied() {
  std::optional<CallMismatch> mismatch;
  const auto local_rank = shm_->occupied(call_, compiled_->staging_bytes, mismatch);
  occupied_by_ = local_rank ? position_of(*local_rank) : -1;
  meet(mismatch);
  return local_rank || mismatch;
}

bool MixedOperation::enter() {
  if (!shm_->is_next(call_)) return false;   // an earlier call of this rank is under way
  if (is_occupied()) return false;
  shm_->enter(call_, compiled_->staging_bytes, number_, fingerprint_);
  if (notes_) notes_->show(notes_of(schedule().problem.rank));   // nothing of an earlier call
  shm_->announce(call_);
  return entered_ = true;
}

bool MixedOperation::advance(Transport& transport) {
  if (done() || mismatch_ || (!entered_ && !enter())) return false;
  bool moved = look();
  if (mismatch_) return moved;
  moved |= MessageOperation::advance(transport);
  if (!has_ended_) return moved;
  shm_->leave_loudly(call_);
  transport.wake_peers(mates_);
  complete();
  return true;
}

bool MixedOperation::is_raised(const Step& step) {
  return shm_->is_raised(local_rank_of(step.peer), step.lane, call_,
                         static_cast<std::uint32_t>(step.seq) + 1);
}

bool MixedOperation::look() {
  bool moved = false;
  for (std::size_t i = 0; i < waits_.size();) {
    const std::uint32_t id = waits_[i];
    const Step& step = schedule().steps[id];
    if (!is_raised(step)) {
      ++i;
      continue;
    }
    if (step.seq == 0) meet(shm_->mismatch(local_rank_of(step.peer), call_));
    if (mismatch_) return true;
    waits_.erase(waits_.begin() + static_cast<std::ptrdiff_t>(i));
    if (events_) log(id, begun_s_[id]);
    if (notes_) notes_->look(notes_of(step.peer), channel_.now_s());
    end(id);
    moved = true;
  }
  return moved;
}

// Equal signals to several ranks are one store.
void MixedOperation::post(std::uint32_t id, Transport& transport) {
  const Step& step = schedule().steps[id];
  if (step.kind == Kind::wait) return waits_.push_back(id);
  if (step.kind != Kind::signal) return MessageOperation::post(id, transport);
  std::uint32_t& raised = raised_[step.lane];
  if (static_cast<std::uint32_t>(step.seq) >= raised) {
    raised = static_cast<std::uint32_t>(step.seq) + 1;
    if (notes_) notes_->show(notes_of(schedule().problem.rank));
    shm_->raise(step.lane, call_, raised);
    transport.wake_peers(mates_);
  }
  if (events_) log(id, begun_s_[id]);
  end(id);
}

std::byte* MixedOperation::scratch_of(int position) const {
  return shm_->slot(local_rank_of(position), call_);
}

bool MixedOperation::can_progress() {
  if (done() || mismatch_) return false;
  if (!entered_) return shm_->is_next(call_) && (!is_occupied() || mismatch_);
  return std::any_of(waits_.begin(), waits_.end(),
                     [&](std::uint32_t id) { return is_raised(schedule().steps[id]); });
}

std::vector<int> MixedOperation::waits_for() const {
  std::vector<int> ranks = MessageOperation::waits_for();
  if (occupied_by_ >= 0) ranks.push_back(rank_of(occupied_by_));
  for (std::uint32_t id : waits_) ranks.push_back(rank_of(schedule().steps[id].peer));
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace paceline
