// ClosedContexts: contexts of the communicators that this rank has closed last. A message for one
// of them is dropped; a message for an unknown context is kept, since this rank may have yet to
// make that communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

namespace paceline {

class ClosedContexts {
 public:
  static constexpr std::size_t kMost = 4096;   // contexts kept; then the oldest is dropped

  void add(std::uint64_t context) {
    if (!set_.insert(context).second) return;
    oldest_first_.push_back(context);
    if (oldest_first_.size() <= kMost) return;
    set_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }
  bool has(std::uint64_t context) const { return set_.contains(context); }

 private:
  std::unordered_set<std::uint64_t> set_;
  std::deque<std::uint64_t> oldest_first_;
};

}  // namespace paceline
