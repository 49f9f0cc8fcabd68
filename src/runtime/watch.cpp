// The part of the session that looks after those who wait: who is lost, who disagrees, who is late.
#include <algorithm>
#include <cstdio>

#include "runtime/fingerprint.hpp"
#include "runtime/session.hpp"

namespace paceline {

// With the lock held, every now and then while somebody waits: who is lost, who disagrees, who is
// late. Breaking a group does not change the list of flights; it only ends some of them.
void Session::watch(double now) {
  transport_->check_peers();
  if (progress()) return;
  look_for_strangers();
  look_for_lost();
  for (const auto& flight : flying_) {
    const double waited_s = now - flight->started_s;
    const int limit_ms = flight->timeout_ms > 0 ? flight->timeout_ms : config_.timeout_ms;
    if (flight->operation->done()) continue;
    if (limit_ms > 0 && waited_s > 1e-3 * limit_ms) give_up(*flight, limit_ms);
    else if (config_.warn_ms > 0 && waited_s > 1e-3 * config_.warn_ms && !flight->warned)
      warn(*flight, waited_s);
  }
}

// With the lock held. Two ranks that disagree about the root may wait for each other without a
// message between them: what a peer that is waited for says it is doing is compared as well.
void Session::look_for_strangers() {
  for (const auto& flight : flying_)
    for (int peer : flight->operation->waits_for()) {
      const Doing doing = transport_->last_heard(peer);
      const Operation& mine = *flight->operation;
      if (doing.context != flight->group->context || doing.number != mine.number()) continue;
      if (doing.fingerprint != mine.fingerprint())
        compare(peer, {doing.context, doing.number}, doing.fingerprint);
    }
  settle();
}

// With the lock held. A peer that is gone breaks what waits for it, once all that it sent has been
// read.
void Session::look_for_lost() {
  for (const auto& flight : flying_)
    for (int peer : flight->operation->waits_for()) {
      const std::string& why = gone_[static_cast<std::size_t>(peer)];
      if (why.empty()) continue;
      const Group& group = *flight->group;
      break_group(*flight->group, Fault::lost,
                  str(flight->operation->describe(), ": ", name_of(group, peer), " is lost: ", why,
                      ". ", name_of(group, transport_->rank()),
                      " waits for it; the communicator cannot be used any more."),
                  true);
    }
}

std::string Session::name_of(const Group& group, int world_rank) {
  const auto at = std::find(group.ranks.begin(), group.ranks.end(), world_rank);
  const auto position = static_cast<int>(at - group.ranks.begin());
  return str("rank ", position,
             position == world_rank ? "" : str(" (rank ", world_rank, " of the world)"));
}

std::string Session::missing(const Flight& flight) const {
  std::string out;
  for (int peer : flight.operation->waits_for()) {
    const Doing doing = transport_->last_heard(peer);
    std::string where = "has not called anything yet";
    if (doing.number > 0)
      where = str(!doing.current ? "was last heard of in "
                  : doing.inside ? "is inside "
                                 : "has last left ",
                  collective_of(doing.fingerprint),
                  " #", doing.number,
                  doing.context == flight.group->context ? "" : " of another communicator");
    out += str(out.empty() ? "" : "; ", name_of(*flight.group, peer), " ", where);
  }
  return out;
}

void Session::give_up(Flight& flight, int timeout_ms) {
  break_group(*flight.group, Fault::timeout,
              str(flight.operation->describe(), ": ", name_of(*flight.group, transport_->rank()),
                  " has waited ", timeout_ms * 1e-3, " s; ", missing(flight),
                  ". Raise timeout_ms, or look at the ranks named here."),
              true);
}

void Session::warn(Flight& flight, double waited_s) {
  flight.warned = true;
  std::fprintf(stderr, "paceline: %s: %s has waited %.0f s; %s.\n",
               flight.operation->describe().c_str(),
               name_of(*flight.group, transport_->rank()).c_str(), waited_s,
               missing(flight).c_str());
}

}  // namespace paceline
