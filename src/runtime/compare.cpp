// The part of the session that compares a message that comes with the calls that have started here.
#include <algorithm>

#include "base/str.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {

bool Session::arrives(int peer, const Key& key, const Fingerprint& fingerprint) {
  const auto found = groups_.find(key.context);
  // A communicator that this rank still has to make, or has closed.
  if (found == groups_.end()) return !closed_.has(key.context);
  const Group& group = *found->second;
  if (!group.broken.empty()) return false;
  // Numbers wrap around in a long training. A later call is compared when it starts here.
  if (static_cast<std::int32_t>(key.number - group.last) > 0) return !group.closed;
  const std::size_t before = trouble_.size();
  compare(peer, key, fingerprint);
  return trouble_.size() == before;
}

// The call that the message belongs to has started here, and may have ended. If it has ended, no
// message of it can be missing, so an equal fingerprint is no excuse.
void Session::compare(int peer, const Key& key, const Fingerprint& theirs) {
  const Group& group = *groups_.at(key.context);
  const auto active = std::find_if(active_.begin(), active_.end(), [&](const auto& f) {
    return f->group->context == key.context && f->operation->number() == key.number;
  });
  const bool flies = active != active_.end();   // and is known, however many have begun since
  if (flies) (*active)->operation->sighted(peer, key);
  const bool known = flies || group.last - key.number < kHistory;
  const Fingerprint mine = flies ? (*active)->operation->fingerprint()
                                 : group.history[key.number % kHistory];
  if (flies && mine == theirs) return;
  const auto position = [&](int rank) {
    return static_cast<int>(std::find(group.ranks.begin(), group.ranks.end(), rank) -
                            group.ranks.begin());
  };
  const int me = group.rank, them = position(peer);
  std::string what = str("a message of ", describe(theirs), " from rank ", them,
                         " has no place in ", describe(mine), " on rank ", me);
  if (known && mine != theirs) what = difference(mine, me, theirs, them);
  trouble_.push_back({key.context, Fault::mismatch,
                      str(collective_of(is_refusal(mine) ? theirs : mine), " #", key.number, ": ",
                          what, ". The communicator cannot be used any more."),
                      true});
}

void Session::misfits(int peer, const Key& key, std::size_t came, std::size_t expected) {
  trouble_.push_back({key.context, Fault::mismatch,
                      str("call #", key.number, ": rank ", peer, " sends ", came,
                          " bytes where rank ", transport_->rank(), " expects ", expected,
                          "; the counts of the two ranks do not fit together. The communicator "
                          "cannot be used any more."),
                      true});
}

}  // namespace paceline
