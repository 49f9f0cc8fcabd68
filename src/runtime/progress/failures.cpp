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

constexpr std::size_t kEarlyAborts = 1024;  // of communicators that this rank has yet to make

// How long a rank that raises an error waits for its peers to say where they are. Those that wait
// as well have looked within a millisecond or two, or later where ranks crowd the processors; those
// that compute will not say it.
constexpr double kWordsS = 0.5;
constexpr int kNapUs = 1000;
constexpr char kWord = '@';               // what is no fault, but where the sender is
constexpr std::size_t kLongestWord = 200;
constexpr std::size_t kMostNamed = 8;     // of places, and of the ranks at each

// A break travels to the peers as its fault and the sentence.
std::string pack(Fault fault, const std::string& why) {
  return str(static_cast<char>('A' + static_cast<int>(fault)), why);
}

// Of its end, where the line is; and only what a sentence may hold.
std::string one_line(std::string word) {
  if (word.size() > kLongestWord) word = "..." + word.substr(word.size() - kLongestWord);
  std::ranges::replace_if(word, [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return word;
}

// "rank 2", "ranks 0, 1, 2 and 61 more".
std::string list(const std::vector<std::size_t>& ranks) {
  std::string out = ranks.size() > 1 ? "ranks " : "rank ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    out += str(i == 0 ? "" : ", ", ranks[i]);
  return ranks.size() > kMostNamed ? str(out, " and ", ranks.size() - kMostNamed, " more") : out;
}

}  // namespace

// Throws what went wrong with it. An operation that has ended leaves the list first: it keeps the
// session, which would never end.
void Failures::raise(const ActiveOp& active) {
  {
    const std::lock_guard lock(state_.mutex);
    try {
      driver_.progress();
    } catch (...) {   // there is an error to tell already
    }
  }
  tell_where(*active.group);
  const std::lock_guard lock(state_.mutex);
  const Error& error = *active.operation->error();
  throw Error(error.fault(), error.what() + whereabouts(*active.group));
}

// Who comes to a communicator that is broken already says where it is, too.
void Failures::raise_late(Group& group, const Error& error) {
  if (state_.is_inherited()) throw Error(error);
  tell_where(group);
  const std::lock_guard lock(state_.mutex);
  if (group.broken.empty() || error.fault() != group.fault) throw Error(error);
  throw Error(group.fault, reason(group));
}

// With the lock held. Nobody is to wait for a rank that cannot take part.
void Failures::starve(Group& group) {
  break_group(group, Fault::resource,
              str(name_of(group, state_.rank()), " has been refused memory for a call; the "
                  "communicator cannot be used any more."),
              true);
}

void Failures::raise_starved(Group& group) {
  {
    const std::lock_guard lock(state_.mutex);
    starve(group);
  }
  raise_late(group, Error(group.fault, group.broken));
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
  // A communicator that this rank still has to make, or has closed.
  if (found == state_.groups.end()) return !closed_.has(key.context);
  const Group& group = *found->second;
  if (!group.broken.empty()) return false;
  // Numbers wrap around in a long training. A later call is compared when it starts here.
  if (static_cast<std::int32_t>(key.number - group.last) > 0) return !group.closed;
  const std::size_t before = pending_.size();
  compare(peer, key, fingerprint);
  return pending_.size() == before;
}

// The call that the message belongs to has started here, and may have ended. If it has ended, no
// message of it can be missing, so an equal fingerprint is no excuse.
void Failures::compare(int peer, const Key& key, const Fingerprint& theirs) {
  const Group& group = *state_.groups.at(key.context);
  const auto& active = state_.active;
  const auto found = std::find_if(active.begin(), active.end(), [&](const auto& one) {
    return one->group->context == key.context && one->operation->number() == key.number;
  });
  const bool is_under_way = found != active.end();   // and known, however many have begun since
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
  pending_.push_back({key.context, Fault::mismatch,
                      wrong_size(peer, state_.rank(), key, came, expected), true});
}

// Its device cannot go on, or this rank lacks what it takes to reach a peer's staging buffer.
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
  if (const auto& failure = operation.failure()) add_error(*failure);
  if (group.shm && group.shm->lacking()) add_error(*group.shm->lacking());
}

bool Failures::is_own_pending() const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [](const Trouble& trouble) { return trouble.tell_others; });
}

void Failures::opened(const Group& group) {
  closed_.remove(group.context);
  const auto early = early_aborts_.find(group.context);
  if (early == early_aborts_.end()) return;
  aborted(-1, group.context, early->second);
  early_aborts_.erase(early);
  handle();
}

void Failures::aborted(int peer, std::uint64_t context, const std::string& why) {
  if (why.empty()) return;
  const auto found = state_.groups.find(context);
  if (why[0] == kWord) {
    if (found != state_.groups.end() && peer >= 0)
      found->second->words[peer] = one_line(why.substr(1));
    return;
  }
  if (found == state_.groups.end()) {
    if (!closed_.has(context) && early_aborts_.size() < kEarlyAborts)
      early_aborts_[context] = why;
    return;
  }
  if (found->second->closed && !state_.is_under_way(*found->second)) return;   // no matter here
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
  } catch (const std::bad_alloc&) {   // it is but a help
  }
  for (const auto& active : state_.active) {
    if (active->group.get() != &group) continue;
    if (!active->label.empty() && group.labels.size() < kLongestWord)
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
      starve(group);
    else
      break_group(group, fault,
                  str(active->operation->describe(), ": ", name_of(group, state_.rank()),
                      " cannot go on: ", what, ". The communicator cannot be used any more."),
                  true);
    active->operation->stop(*state_.transport, Error(group.fault, group.broken));
  }
}

// With the lock held. Also those that were lost: they may only have been stopped.
void Failures::tell_all(const Group& group, const std::string& what) {
  for (int rank : group.ranks)
    if (rank != state_.rank()) state_.transport->abort(rank, group.context, what);
  thread_.wake();   // where there was no room for it
}

// Without the lock, by the thread that is about to raise the error: only its own stack shows where
// it is, and only now somebody wants to know. The first one speaks for its rank.
void Failures::tell_where(Group& group) {
  if (group.ranks.size() < 2) return;
  const int me = state_.rank();
  {
    const std::lock_guard lock(state_.mutex);
    if (group.broken.empty() || group.fault == Fault::usage) return;
    if (!state_.config.call_site && group.labels.empty()) return;
    if (!group.words.try_emplace(me).second) return;
  }
  // May wait for Python's lock.
  std::string here = state_.config.call_site ? state_.config.call_site() : "";
  {
    const std::lock_guard lock(state_.mutex);
    if (!group.labels.empty()) here += (here.empty() ? "" : ", in ") + group.labels;
    if (here.empty()) {   // a thread of our own, say: another one may know
      group.words.erase(me);
      return;
    }
    group.words[me] = one_line(here);
    tell_all(group, kWord + group.words[me]);
  }
  const auto is_heard = [&](int rank) {
    return group.words.contains(rank) || state_.is_gone(rank);
  };
  for (const double begun_s = now_s(); now_s() - begun_s < kWordsS;) {
    {
      const std::lock_guard lock(state_.mutex);
      state_.transport->check_peers();
      driver_.progress();
      if (std::ranges::all_of(group.ranks, is_heard)) break;
    }
    state_.transport->rest(kNapUs, [] { return false; });
  }
  const std::lock_guard lock(state_.mutex);
  amend_record(group);
}

// With the lock held: where the ranks of a broken group were, as far as they have said so. Most are
// in the same line.
std::string Failures::whereabouts(const Group& group) const {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> places;
  for (std::size_t position = 0; position < group.ranks.size(); ++position) {
    const auto word = group.words.find(group.ranks[position]);
    if (word == group.words.end() || word->second.empty()) continue;
    const auto known = [&](const auto& place) { return place.first == word->second; };
    const auto at = std::ranges::find_if(places, known);
    if (at != places.end()) at->second.push_back(position);
    else places.push_back({word->second, {position}});
  }
  std::string out;
  for (std::size_t i = 0; i < std::min(places.size(), kMostNamed); ++i)
    out += str(i == 0 ? " Where they were: " : "; ", list(places[i].second), " at ",
               places[i].first);
  if (places.size() > kMostNamed) out += str("; ", places.size() - kMostNamed, " places more");
  return out.empty() ? out : out + ".";
}

std::string Failures::reason(const Group& group) const {
  return group.broken.empty() ? "" : group.broken + whereabouts(group);
}

// With the lock held, before what is under way is stopped. What breaks first says most.
void Failures::keep_record(const std::string& reason) {
  if (state_.config.record_dir.empty() || kept_record_) return;
  kept_record_ = record_of(state_, reason);
  write_record(*kept_record_, state_.config.record_dir);
}

// With the lock held. The rest stays as it was when the communicator broke.
void Failures::amend_record(const Group& group) {
  if (!kept_record_) return;
  for (RecordedCommunicator& one : kept_record_->communicators)
    if (one.context == group.context) one.called_at = group.words.at(state_.rank());
  write_record(*kept_record_, state_.config.record_dir);
}

}  // namespace paceline
