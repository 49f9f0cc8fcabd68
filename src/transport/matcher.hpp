// Matcher: pairs arriving messages with the posted receives of one peer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "transport/transport.hpp"

namespace paceline {

// `Early` is what a transport keeps of a message that came before its receive. There may be very
// many: a rank that only sends, such as the root of a scatter, can be thousands of calls ahead. Few
// receives are posted at any time.
template <class Early>
class Matcher {
 public:
  // The message that waits for this receive; otherwise the receive is kept. The old content of
  // `found` lends its memory to a message that comes later.
  bool post(Transfer& receive, Early& found) {
    auto it = early_.begin();   // the oldest is usually the one, and the newest goes to the end
    if (it != early_.end() && it->first != receive.key) it = early_.find(receive.key);
    if (it == early_.end()) {
      posted_.push_back(&receive);
      return false;
    }
    spare_ = early_.extract(it);
    std::swap(found, spare_.mapped());
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

  // A place for a message that has no receive yet. Its content is old.
  Early& keep(const Key& key) {
    if (spare_.empty()) return early_.emplace_hint(early_.end(), key, Early{})->second;
    spare_.key() = key;
    return early_.insert(early_.end(), std::move(spare_))->second;
  }
  void cancel(const Transfer& receive) { std::erase(posted_, &receive); }
  const std::multimap<Key, Early>& early() const { return early_; }

  template <class Visit>
  void visit(const KeyRange& of, Visit&& visit) const {
    if (early_.empty()) return;
    auto it = early_.lower_bound(Key{.context = of.context, .number = of.number.value_or(0),
                                     .seq = std::numeric_limits<std::int32_t>::min()});
    for (; it != early_.end() && of.has(it->first); ++it) visit(it->first, it->second);
  }

  template <class Predicate>
  void drop_early(Predicate&& predicate) {
    for (auto it = early_.begin(); it != early_.end();)
      it = predicate(it->first, it->second) ? early_.erase(it) : std::next(it);
  }

 private:
  std::vector<Transfer*> posted_;
  std::multimap<Key, Early> early_;
  std::multimap<Key, Early>::node_type spare_;
};

}  // namespace paceline
