#include "transport/shm/staging.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace paceline {
namespace {

std::int64_t entry_of(const Slab& slab) {
  return std::int64_t{slab.slots()} << 32 | (std::int64_t{slab.descriptor()} + 1);
}
std::int64_t descriptor_in(std::int64_t entry) { return (entry & 0xffffffff) - 1; }
int slots_in(std::int64_t entry) { return static_cast<int>(entry >> 32); }

}  // namespace

ShmStaging::ShmStaging(Inboxes& boxes, int rank, const std::vector<int>& at, std::string folder)
    : boxes_(boxes),
      rank_(rank),
      at_(at),
      folder_(std::move(folder)),
      bytes_(boxes.provision().bytes),
      theirs_(static_cast<std::size_t>(boxes.ranks())) {
  require(theirs_.size() <= AttachTable::kMost, "stages: ", theirs_.size(), " ranks on one node");
  own_.emplace_back(boxes_.take_reserved(), 1, bytes_);
  boxes_.slab_table(rank_)[0].store(entry_of(own_[0]), std::memory_order_release);
  free_.push_back({0, 0});
}

void ShmStaging::add_slab() {
  const auto table = boxes_.slab_table(rank_);
  if (own_.size() == table.size())
    fail(Fault::resource, "shm: this rank has ", open_.size(),
         " communicators with shared memory, which is the most there can be; free some of them.");
  const int slots = Slab::slots_within_limits(bytes_, boxes_.ranks());
  own_.push_back(Slab::create(folder_, slots, bytes_));
  for (int slot = 0; slot < slots; ++slot) free_.push_back({own_.size() - 1, slot});
  table[own_.size() - 1].store(entry_of(own_.back()), std::memory_order_release);
}

StagingBuffer ShmStaging::open(std::uint64_t context) {
  clear();
  if (free_.empty()) add_slab();
  const Place place = free_.front();
  Slab& slab = own_[place.slab];
  const std::size_t reserved = place.slab == 0 ? bytes_ : at_first();
  slab.reserve(place.slot, 0, reserved);   // the first call is to be as fast as the others
  free_.pop_front();
  const StagingBuffer stage = slab.stage(place.slot);
  // Brings it into the caches, too, before the first call.
  std::memset(stage.memory, 0, StagingBuffer::kHead + reserved);
  AttachTable& owner = stage.owner();
  owner.nonce = boxes_.header(rank_).nonce[0];
  owner.context = context;
  owner.reserved.store(reserved, std::memory_order_relaxed);
  slab.context(place.slot).store(context, std::memory_order_release);
  open_[context] = place;
  return stage;
}

void ShmStaging::reserve(std::uint64_t context, std::size_t bytes) {
  const Place place = open_.at(context);
  Slab& slab = own_[place.slab];
  std::atomic<std::uint64_t>& reserved = slab.stage(place.slot).owner().reserved;
  const std::size_t before = reserved.load(std::memory_order_relaxed);
  if (bytes <= before) return;
  slab.reserve(place.slot, before, bytes);
  reserved.store(bytes, std::memory_order_release);
}

const Slab* ShmStaging::slab_of(int owner, std::size_t index) {
  std::vector<Slab>& known = theirs_[static_cast<std::size_t>(owner)];
  if (index < known.size()) return &known[index];
  const auto table = boxes_.slab_table(owner);
  if (index >= table.size()) return nullptr;
  const std::int64_t entry = table[index].load(std::memory_order_acquire);
  if (entry == 0) return nullptr;
  const std::string address = str(boxes_.process_id(owner), " ", descriptor_in(entry));
  try {
    known.push_back(Slab::attach(address, slots_in(entry), bytes_));
    return &known.back();
  } catch (const Error& error) {
    if (error.fault() == Fault::resource) throw;
    if (SharedFile::is_withheld(address))
      fail(Fault::resource, "shm: the memory of process ", boxes_.process_id(owner), ", a rank, "
           "cannot be opened: it, or this one, has changed its user (setuid) or become undumpable "
           "(PR_SET_DUMPABLE) since it joined. Do that before joining.");
    return nullptr;   // its owner has just gone; ranks that wait will hear of that
  }
}

std::optional<StagingBuffer> ShmStaging::find(int peer, std::uint64_t context) {
  const int owner = at_[static_cast<std::size_t>(peer)];
  for (std::size_t index = 0; const Slab* slab = slab_of(owner, index); ++index)
    for (int slot = 0; slot < slab->slots(); ++slot)
      if (slab->context(slot).load(std::memory_order_acquire) == context)
        return hold(owner, {index, slot}, context);
  return {};
}

// A rank that is about to hold a stage marks it and then looks whether it is still in the
// directory; the owner takes it from there and then looks for marks: one of the two sees the other.
std::optional<StagingBuffer> ShmStaging::hold(int owner, const Place& place,
                                              std::uint64_t context) {
  Slab& slab = theirs_[static_cast<std::size_t>(owner)][place.slab];
  const StagingBuffer found = slab.stage(place.slot);
  AttachTable& says = found.owner();
  if (says.nonce != boxes_.header(owner).nonce[0] || says.context != context) return {};
  auto& mine = says.holding[static_cast<std::size_t>(rank_)];
  mine.store(AttachTable::holds, std::memory_order_seq_cst);
  if (slab.context(place.slot).load(std::memory_order_seq_cst) != context) {
    mine.store(AttachTable::not_found, std::memory_order_release);
    return {};
  }
  slab.touch(place.slot, 0, says.reserved.load(std::memory_order_acquire));
  held_.insert({context, {owner, place}});
  return found;
}

bool ShmStaging::is_found(const StagingBuffer& own, int peer) const {
  const auto at = static_cast<std::size_t>(at_[static_cast<std::size_t>(peer)]);
  return own.owner().holding[at].load(std::memory_order_acquire) != AttachTable::not_found;
}

bool ShmStaging::is_held(const Place& place) const {
  const StagingBuffer own = own_[place.slab].stage(place.slot);
  const AttachTable& owner = own.owner();
  for (int rank = 0; rank < boxes_.ranks(); ++rank)
    if (owner.holding[static_cast<std::size_t>(rank)].load(std::memory_order_seq_cst) ==
            AttachTable::holds &&
        boxes_.header(rank).left.load(std::memory_order_acquire) == 0 && !boxes_.has_died(rank))
      return true;
  return false;
}

// The first slab is the meeting's, in a folder that may be full by now: it is not used again. Other
// places keep what a communicator has at first: new pages cost the next one more than its messages.
void ShmStaging::clear() {
  std::erase_if(closed_, [&](const Place& place) {
    if (is_held(place)) return false;
    Slab& slab = own_[place.slab];
    if (place.slab == 0) {
      slab.release(place.slot, 0);
      return true;
    }
    if (slab.stage(place.slot).owner().reserved.load(std::memory_order_relaxed) > at_first())
      slab.release(place.slot, at_first());
    free_.push_front(place);
    return true;
  });
}

void ShmStaging::close(std::uint64_t context) {
  const auto [begin, end] = held_.equal_range(context);
  for (auto held = begin; held != end; ++held) {
    const auto& [owner, place] = held->second;
    const Slab& slab = theirs_[static_cast<std::size_t>(owner)][place.slab];
    slab.stage(place.slot).owner().holding[static_cast<std::size_t>(rank_)].store(
        AttachTable::let_go, std::memory_order_release);
  }
  held_.erase(begin, end);
  if (const auto own = open_.find(context); own != open_.end()) {
    const Place& place = own->second;
    own_[place.slab].context(place.slot).store(0, std::memory_order_seq_cst);
    closed_.push_back(place);
    open_.erase(own);
  }
}

// The number of a process that has ended may be another's by now; and its pages go as it ends.
int ShmStaging::copy(const PeerCopy& wanted) {
  if (has_ended(wanted.peer)) return ESRCH;
  const int error = boxes_.memory().copy(at_[static_cast<std::size_t>(wanted.peer)], wanted);
  return error && has_ended(wanted.peer) ? ESRCH : error;
}

bool ShmStaging::has_ended(int peer) const {
  return boxes_.has_died(at_[static_cast<std::size_t>(peer)]);
}

}  // namespace paceline
