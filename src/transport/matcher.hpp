// Matcher: pairs arriving messages with the posted receives of one peer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "transport/transport.hpp"

namespace paceline {

// `Early` is what a transport keeps of a message that came before its receive; it has key and
// fingerprint.
template <class Early>
class Matcher {
 public:
  // The message that waits for this receive; otherwise the receive is kept. Lists are short: a rank
  // has a handful of messages with one peer under way at any time.
  bool post(Transfer& receive, Early& found) {
    const auto it = std::find_if(early_.begin(), early_.end(),
                                 [&](const Early& e) { return e.key == receive.key; });
    if (it == early_.end()) {
      posted_.push_back(&receive);
      return false;
    }
    found = std::move(*it);
    early_.erase(it);
    return true;
  }

  // The receive that waits for this message, or none.
  Transfer* take(const Key& key) {
    const auto it = std::find_if(posted_.begin(), posted_.end(),
                                 [&](const Transfer* t) { return t->key == key; });
    if (it == posted_.end()) return nullptr;
    Transfer* receive = *it;
    posted_.erase(it);
    return receive;
  }

  void keep(Early early) { early_.push_back(std::move(early)); }
  void cancel(const Transfer& receive) { std::erase(posted_, &receive); }
  const std::vector<Early>& early() const { return early_; }

  template <class Predicate>
  void drop_early(Predicate&& predicate) {
    std::erase_if(early_, predicate);
  }

 private:
  std::vector<Transfer*> posted_;
  std::vector<Early> early_;
};

}  // namespace paceline
