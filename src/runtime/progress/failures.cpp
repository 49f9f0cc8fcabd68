#include "runtime/progress/failures.hpp"

#include <algorithm>
#include <cctype>
#include <exception>
#include <new>
#include <utility>

#include "base/str.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/progress/clock.hpp"
#include "runtime/progress/mismatch.hpp"

namespace paceline {
namespace {

// Number of aborts kept for communicators that this rank has yet to make. Further ones are dropped;
// calls on those communicators then end by their time-out.
constexpr std::size_t kEarlyAborts = 1024;

// Seconds that a rank waits for its peers' call sites before it raises an error. Waiting peers send
// theirs within a millisecond or two, later with more ranks than processors; peers that compute
// send none.
constexpr double kCallSitesS = 0.5;
constexpr int kPollUs = 1000;               // longest sleep between two looks meanwhile
constexpr char kCallSite = '@';             // begins a call site, instead of a fault's letter
constexpr std::size_t kLongestSite = 200;   // bytes of a call site, and of a group's labels
constexpr std::size_t kMostNamed = 8;       // call sites that an error names, and ranks at each

// Packs a break for the peers (Transport::abort): a letter for its fault, then the sentence.
std::string pack(Fault fault, const std::string& why) {
  return str(static_cast<char>('A' + static_cast<int>(fault)), why);
}

// Cuts a long call site at its beginning, since the line number is at its end. Replaces control
// characters.
std::string one_line(std::string site) {
  if (site.size() > kLongestSite) site = "..." + site.substr(site.size() - kLongestSite);
  std::ranges::replace_if(site, [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return site;
}

// Returns "rank 2", or "ranks 0, 1, 2 and 61 more".
std::string list(const std::vector<std::size_t>& ranks) {
  std::string out = ranks.size() > 1 ? "ranks " : "rank ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    out += str(i == 0 ? "" : ", ", ranks[i]);
  return ranks.size() > kMostNamed ? str(out, " and ", ranks.size() - kMostNamed, " more") : out;
}

}  // namespace

// progress() first takes the ended operation off SessionState::active: it holds the session, which
// would never end.
void Failures::raise(const ActiveOp& active) {
  {
    const std::lock_guard lock(state_.mutex);
    try {
      driver_.progress();
    } catch (...) {   // the call's own error is thrown below
    }
  }
  exchange_call_sites(*active.group);
  const std::lock_guard lock(state_.mutex);
  const Error& error = *active.operation->error();
  throw Error(error.fault(), error.what() + call_sites_of(*active.group));
}

// A call on a communicator that was broken before has a call site, too. For one that was broken in
// the call, raise() has sent it.
void Failures::raise_with_call_sites(Group& group, const Error& error) {
  if (state_.is_inherited()) throw Error(error);
  exchange_call_sites(group, " (came later)");
  const std::lock_guard lock(state_.mutex);
  if (group.broken.empty() || error.fault() != group.fault) throw Error(error);
  throw Error(group.fault, reason(group));
}

// Tells the peers, since they wait for a rank that cannot take part. Requires the lock.
void Failures::break_out_of_memory(Group& group) {
  break_group(group, Fault::resource,
              str(name_of(group, state_.rank()), " got no memory for a call; the "
                  "communicator cannot be used any more."),
              true);
}

void Failures::raise_out_of_memory(Group& group) {
  {
    const std::lock_guard lock(state_.mutex);
    break_out_of_memory(group);
  }
  exchange_call_sites(group);
  raise_with_call_sites(group, Error(group.fault, group.broken));
}

void Failures::abort(Group& group, const std::string& why) {
  state_.check_owner();
  const std::lock_guard lock(state_.mutex);
  break_group(group, Fault::lost, str(name_of(group, state_.rank()), " ", why,
              why.ends_with('.') ? "" : ".", " The communicator cannot be used any more."), true);
  driver_.progress();
}

std::string Failures::broken(const Group& group) const {
  if (state_.is_inherited()) return state_.owner();
  const std::lock_guard lock(state_.mutex);
  return reason(group);
}

bool Failures::arrives(int peer, const Key& key, const Fingerprint& fingerprint) {
  const auto found = state_.groups.find(key.context);
  // Unknown communicator: keeps the message if this rank has yet to make it, and drops it if this
  // rank has closed it.
  if (found == state_.groups.end()) return !closed_.has(key.context);
  const Group& group = *found->second;
  if (!group.broken.empty()) return false;
  // A call that has not started here is compared when it starts. Numbers wrap around.
  if (static_cast<std::int32_t>(key.number - group.last) > 0) return !group.closed;
  const std::size_t before = pending_.size();
  compare(peer, key, fingerprint);
  return pending_.size() == before;
}

// The message's call has started here. If it has ended as well, it has all its messages, so that
// even an equal fingerprint is a mismatch.
void Failures::compare(int peer, const Key& key, const Fingerprint& theirs) {
  const Group& group = *state_.groups.at(key.context);
  const auto& active = state_.active;
  const auto found = std::find_if(active.begin(), active.end(), [&](const auto& one) {
    return one->group->context == key.context && one->operation->number() == key.number;
  });
  const bool is_under_way = found != active.end();   // such a call is known, however old
  if (is_under_way) (*found)->operation->sighted(peer, key);
  const bool known = is_under_way || group.last - key.number < SessionState::kHistory;
  const Fingerprint mine = is_under_way
                               ? (*found)->operation->fingerprint()
                               : group.history[key.number % SessionState::kHistory];
  if (is_under_way && mine == theirs) return;
  pending_.push_back({key.context, Fault::mismatch,
                      misplaced_message(group, peer, key, theirs, mine, known), true});
}

void Failures::misfits(int peer, const Key& key, std::size_t came, std::size_t expected) {
  const auto group = state_.groups.find(key.context);   // it exists, since it has a receive
  if (group == state_.groups.end()) return;
  pending_.push_back({key.context, Fault::mismatch,
                      wrong_size(*group->second, peer, key, came, expected), true});
}

// Notes the failures that an operation has found: a peer in another call, or with a unit of another
// length, a copy that the system refuses, a device that cannot go on, or too little memory to
// attach a peer's staging buffer.
void Failures::inspect(const ActiveOp& active) {
  const Group& group = *active.group;
  const Operation& operation = *active.operation;
  const auto add = [&](Fault fault, const std::string& why) {
    pending_.push_back({group.context, fault, why, true});
  };
  const auto add_error = [&](const Error& error) {
    add(error.fault(), str(operation.describe(), ": ", name_of(group, state_.rank()), ": ",
                           error.what(), " The communicator cannot be used any more."));
  };
  if (const auto& mismatch = operation.mismatch())
    add(Fault::mismatch, differing_calls(group, *mismatch));
  if (const auto& denied = operation.barred())
    add(Fault::resource, denied_copy(active, state_.rank(), *denied));
  if (const auto& misfit = operation.misfit())
    misfits(group.ranks[static_cast<std::size_t>(misfit->position)],
            {group.context, operation.number()}, misfit->came, misfit->expected);
  if (const auto& failure = operation.failure()) add_error(*failure);
  if (group.shm && group.shm->lacking()) add_error(*group.shm->lacking());
}

bool Failures::is_own_pending() const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [](const Trouble& trouble) { return trouble.tell_others; });
}

void Failures::opened(const Group& group) {
  const auto early = early_aborts_.find(group.context);
  if (early == early_aborts_.end()) return;
  aborted(-1, group.context, early->second);
  early_aborts_.erase(early);
  handle();
}

void Failures::aborted(int peer, std::uint64_t context, const std::string& why) {
  if (why.empty()) return;
  const auto found = state_.groups.find(context);
  if (why[0] == kCallSite) {
    if (found != state_.groups.end() && peer >= 0)
      found->second->call_sites[peer] = one_line(why.substr(1));
    return;
  }
  if (found == state_.groups.end()) {
    if (!closed_.has(context) && early_aborts_.size() < kEarlyAborts)
      early_aborts_[context] = why;
    return;
  }
  if (found->second->closed && !state_.is_under_way(*found->second)) return;   // no call to end
  const int fault = std::clamp(why[0] - 'A', 0, static_cast<int>(Fault::internal));
  pending_.push_back({context, static_cast<Fault>(fault), why.substr(1), false});
}

void Failures::handle() {
  while (!pending_.empty()) {
    const Trouble t = std::move(pending_.back());
    pending_.pop_back();
    if (const auto found = state_.groups.find(t.context); found != state_.groups.end())
      break_group(*found->second, t.fault, t.why, t.tell_others);
  }
}

void Failures::break_group(Group& group, Fault fault, const std::string& why, bool tell_others) {
  if (!group.broken.empty()) return;
  group.broken = why;
  group.fault = fault;
  if (fault != Fault::usage) try {
    keep_record(why);
  } catch (const std::bad_alloc&) {   // the record is optional
  }
  for (const auto& active : state_.active) {
    if (active->group.get() != &group) continue;
    if (!active->label.empty() && group.labels.size() < kLongestSite)
      group.labels += str(group.labels.empty() ? "call #" : ", #", active->operation->number(),
                          " '", active->label, "'");
    active->operation->stop(*state_.transport, Error(fault, why));
  }
  if (tell_others) tell_all(group, pack(fault, why));
}

void Failures::break_all_under_way() {
  Fault fault = Fault::internal;
  std::string what = "an exception of unknown type";
  bool is_starved = false;
  try {
    throw;
  } catch (const std::bad_alloc&) {
    is_starved = true;
  } catch (const Error& error) {
    fault = error.fault();
    what = error.what();
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  for (const auto& active : state_.active) {
    Group& group = *active->group;
    if (is_starved)
      break_out_of_memory(group);
    else
      break_group(group, fault,
                  str(active->operation->describe(), ": ", name_of(group, state_.rank()),
                      " cannot go on: ", what, ". The communicator cannot be used any more."),
                  true);
    active->operation->stop(*state_.transport, Error(group.fault, group.broken));
  }
}

// Tells lost ranks as well: they may only have been stopped (SIGSTOP). Requires the lock.
void Failures::tell_all(const Group& group, const std::string& what) {
  for (int rank : group.ranks)
    if (rank != state_.rank()) state_.transport->abort(rank, group.context, what);
  thread_.wake();   // sends what found no room yet (Transport::owes())
}

// The thread that is about to raise the error calls this without the lock, since only its own stack
// shows its call site. The first such thread speaks for its rank: it marks the rank by an empty
// string in call_sites. Other threads of the rank wait for it.
void Failures::exchange_call_sites(Group& group, std::string_view when) {
  if (group.ranks.size() < 2) return;
  const int me = state_.rank();
  bool speaks = false;
  {
    const std::lock_guard lock(state_.mutex);
    if (group.broken.empty() || group.fault == Fault::usage) return;
    if (!state_.config.call_site && group.labels.empty()) return;
    speaks = group.call_sites.try_emplace(me).second;
    if (!speaks && !group.asks_call_sites) return;
    group.asks_call_sites = true;
  }
  if (!speaks) return await_call_sites([&] { return !group.asks_call_sites; });
  // config.call_site() may wait for Python's GIL, so it is called without the lock.
  std::string here = state_.config.call_site ? state_.config.call_site() : "";
  {
    const std::lock_guard lock(state_.mutex);
    if (!group.labels.empty()) here += (here.empty() ? "" : ", in ") + group.labels;
    if (here.empty()) {   // this thread has none, as the progress thread; another one may have
      group.call_sites.erase(me);
      group.asks_call_sites = false;
      return;
    }
    here = one_line(here);
    group.call_sites[me] = str(here, when);
    tell_all(group, kCallSite + group.call_sites[me]);
  }
  await_call_sites([&] {
    return std::ranges::all_of(group.ranks, [&](int rank) {
      return group.call_sites.contains(rank) || state_.is_gone(rank);
    });
  });
  const std::lock_guard lock(state_.mutex);
  group.asks_call_sites = false;
  amend_record(group, here);
}

// Drives the transport until `is_over()`, which is called with the lock; for kCallSitesS at most.
void Failures::await_call_sites(const std::function<bool()>& is_over) {
  for (const double begun_s = now_s(); now_s() - begun_s < kCallSitesS;) {
    {
      const std::lock_guard lock(state_.mutex);
      state_.transport->check_peers();
      driver_.progress();
      if (is_over()) return;
    }
    state_.transport->rest(kPollUs, [] { return false; });
  }
}

// Returns a sentence with the call sites that a broken group's ranks have sent. Ranks at the same
// call site, as most are, are named together. Requires the lock.
std::string Failures::call_sites_of(const Group& group) const {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> places;
  for (std::size_t position = 0; position < group.ranks.size(); ++position) {
    const auto site = group.call_sites.find(group.ranks[position]);
    if (site == group.call_sites.end() || site->second.empty()) continue;
    const auto known = [&](const auto& place) { return place.first == site->second; };
    const auto at = std::ranges::find_if(places, known);
    if (at != places.end()) at->second.push_back(position);
    else places.push_back({site->second, {position}});
  }
  std::string out;
  for (std::size_t i = 0; i < std::min(places.size(), kMostNamed); ++i)
    out += str(i == 0 ? " Where they were: " : "; ", list(places[i].second), " at ",
               places[i].first);
  if (places.size() > kMostNamed) out += str("; ", places.size() - kMostNamed, " places more");
  return out.empty() ? out : out + ".";
}

std::string Failures::reason(const Group& group) const {
  return group.broken.empty() ? "" : group.broken + call_sites_of(group);
}

// Called before the calls under way are stopped, with the lock held. Keeps the record of a
// session's first break only, since that one explains most.
void Failures::keep_record(const std::string& reason) {
  if (state_.config.record_dir.empty() || kept_record_) return;
  kept_record_ = record_of(state_, reason);
  write_record(*kept_record_, state_.config.record_dir);
}

// The rest of the record stays as it was when the communicator broke. Requires the lock.
void Failures::amend_record(const Group& group, const std::string& call_site) {
  if (!kept_record_) return;
  for (RecordedCommunicator& one : kept_record_->communicators)
    if (one.context == group.context) one.called_at = call_site;
  write_record(*kept_record_, state_.config.record_dir);
}

}  // namespace paceline
