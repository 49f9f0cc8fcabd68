#include "transport/shm/stages.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace paceline {

ShmStages::ShmStages(Inboxes& boxes, int rank, const std::vector<int>& at, std::string folder)
    : boxes_(boxes),
      rank_(rank),
      at_(at),
      folder_(std::move(folder)),
      bytes_(boxes.provision().bytes),
      reserved_(boxes.take_reserved()) {}

Stage ShmStages::keep(const Name& name, SharedFile file) {
  file.touch();   // the first call is to be as fast as the others
  SharedFile& kept = files_[name] = std::move(file);
  return {kept.data()};
}

Stage ShmStages::open(std::uint64_t context) {
  const auto table = boxes_.stage_table(rank_);
  const auto entry = std::find_if(table.begin(), table.end(), [](const StageEntry& e) {
    return e.context.load(std::memory_order_relaxed) == 0;
  });
  if (entry == table.end())
    fail(Fault::resource, "shm: this rank has ", table.size(),
         " communicators with shared memory, which is the most there can be; free some of them.");
  SharedFile file = reserved_.data() ? std::move(reserved_)
                                     : make_stage(folder_, Stage::kHead + bytes_);
  file.touch();
  // In the caches, too, before the first call.
  std::memset(file.data(), 0, file.bytes());
  auto* owner = reinterpret_cast<StageOwner*>(file.data() + Stage::kOwner);
  owner->nonce = boxes_.header(rank_).nonce[0];
  owner->context = context;
  entry->descriptor.store(file.descriptor(), std::memory_order_relaxed);
  entry->context.store(context, std::memory_order_release);
  return keep({rank_, context}, std::move(file));
}

std::optional<Stage> ShmStages::find(int peer, std::uint64_t context) {
  const int owner = at_[static_cast<std::size_t>(peer)];
  for (const StageEntry& entry : boxes_.stage_table(owner)) {
    if (entry.context.load(std::memory_order_acquire) != context) continue;
    const auto descriptor = entry.descriptor.load(std::memory_order_relaxed);
    try {
      const Stage found =
          keep({owner, context}, SharedFile::attach(str(boxes_.process_id(owner), " ", descriptor),
                                                    Stage::kHead + bytes_));
      const StageOwner& says = found.owner();
      if (says.nonce != boxes_.header(owner).nonce[0] || says.context != context) return {};
      return found;
    } catch (const Error&) {
      return {};   // its owner has just gone; whoever waits will hear of that
    }
  }
  return {};
}

void ShmStages::close(std::uint64_t context) {
  for (StageEntry& entry : boxes_.stage_table(rank_))
    if (entry.context.load(std::memory_order_relaxed) == context)
      entry.context.store(0, std::memory_order_release);
  std::erase_if(files_, [&](const auto& file) { return file.first.second == context; });
}

// The number of a process that has ended may be another's by now; and its pages go as it ends.
int ShmStages::copy(const PeerCopy& wanted) {
  if (has_ended(wanted.peer)) return ESRCH;
  const int error = boxes_.memory().copy(at_[static_cast<std::size_t>(wanted.peer)], wanted);
  return error && has_ended(wanted.peer) ? ESRCH : error;
}

bool ShmStages::has_ended(int peer) const {
  return boxes_.has_died(at_[static_cast<std::size_t>(peer)]);
}

}  // namespace paceline
