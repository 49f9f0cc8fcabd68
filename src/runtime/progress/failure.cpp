// The part of the session that ends what cannot go on: it breaks communicators, tells their ranks,
// and says where in the program each of them was.
#include <algorithm>
#include <cctype>
#include <new>

#include "runtime/progress/clock.hpp"
#include "runtime/progress/session.hpp"

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
void Session::raise(const ActiveOp& active) {
  {
    const std::lock_guard lock(mutex_);
    try {
      progress();
    } catch (...) {   // there is an error to tell already
    }
  }
  tell_where(*active.group);
  const std::lock_guard lock(mutex_);
  const Error& error = *active.operation->error();
  throw Error(error.fault(), error.what() + whereabouts(*active.group));
}

// Who comes to a communicator that is broken already says where it is, too.
void Session::raise_late(Group& group, const Error& error) {
  if (is_inherited()) throw Error(error);
  tell_where(group);
  const std::lock_guard lock(mutex_);
  if (group.broken.empty() || error.fault() != group.fault) throw Error(error);
  throw Error(group.fault, told(group));
}

// With the lock held. Nobody is to wait for a rank that cannot take part.
void Session::starve(Group& group) {
  break_group(group, Fault::resource,
              str(name_of(group, transport_->rank()), " has been refused memory for a call; the "
                  "communicator cannot be used any more."),
              true);
}

void Session::raise_starved(Group& group) {
  {
    const std::lock_guard lock(mutex_);
    starve(group);
  }
  raise_late(group, Error(group.fault, group.broken));
}

void Session::abort(Group& group, const std::string& why) {
  check_owner();
  const std::lock_guard lock(mutex_);
  break_group(group, Fault::lost, str(name_of(group, transport_->rank()), " ", why,
              why.ends_with('.') ? "" : ".", " The communicator cannot be used any more."), true);
  progress();
}

std::string Session::broken(const Group& group) const {
  if (is_inherited()) return whose();
  const std::lock_guard lock(mutex_);
  return told(group);
}

bool Session::is_called(const Group& group) {
  check_owner();
  const std::lock_guard lock(mutex_);
  progress();
  if (!group.broken.empty()) throw Error(group.fault, told(group));
  bool found = false;
  transport_->unexpected([&](int, const Key& key, const Fingerprint&) {
    found |= key.context == group.context && static_cast<std::int32_t>(key.number - group.last) > 0;
  });
  if (group.shm && group.shm->is_called()) found = true;
  return found;
}

std::string Session::whose() const {
  return str("this process is a fork of rank ", transport_->rank(), " (process ", process_,
             "), to which the communicator belongs");
}

void Session::refuse_child() const {
  fail(Fault::usage, "fork: ", whose(), ". Call collectives there, or fork before the ranks join; ",
       "a child may join a world of its own.");
}

void Session::aborted(int peer, std::uint64_t context, const std::string& why) {
  if (why.empty()) return;
  const auto found = groups_.find(context);
  if (why[0] == kWord) {
    if (found != groups_.end() && peer >= 0) found->second->words[peer] = one_line(why.substr(1));
    return;
  }
  if (found == groups_.end()) {
    if (!closed_.has(context) && early_aborts_.size() < kEarlyAborts)
      early_aborts_[context] = why;
    return;
  }
  if (found->second->closed && !is_under_way(*found->second)) return;   // it does not matter here
  const int fault = std::clamp(why[0] - 'A', 0, static_cast<int>(Fault::internal));
  trouble_.push_back({context, static_cast<Fault>(fault), why.substr(1), false});
}

void Session::lost(int peer, const std::string& why) {
  gone_[static_cast<std::size_t>(peer)] = why;
}

void Session::settle() {
  while (!trouble_.empty()) {
    const Trouble t = std::move(trouble_.back());
    trouble_.pop_back();
    if (const auto found = groups_.find(t.context); found != groups_.end())
      break_group(*found->second, t.fault, t.why, t.tell_others);
  }
}

void Session::break_group(Group& group, Fault fault, const std::string& why, bool tell_others) {
  if (!group.broken.empty()) return;
  group.broken = why;
  group.fault = fault;
  if (fault != Fault::usage) try {
    keep_record(why);
  } catch (const std::bad_alloc&) {   // it is but a help
  }
  for (const auto& active : active_) {
    if (active->group.get() != &group) continue;
    if (!active->label.empty() && group.labels.size() < kLongestWord)
      group.labels += str(group.labels.empty() ? "call #" : ", #", active->operation->number(),
                          " '", active->label, "'");
    active->operation->stop(*transport_, Error(fault, why));
  }
  if (tell_others) tell_all(group, pack(fault, why));
}

// With the lock held. Also those that were lost: they may only have been stopped.
void Session::tell_all(const Group& group, const std::string& what) {
  for (int rank : group.ranks)
    if (rank != transport_->rank()) transport_->abort(rank, group.context, what);
  wake_thread();   // where there was no room for it
}

// Without the lock, by the thread that is about to raise the error: only its own stack shows where
// it is, and only now somebody wants to know. The first one speaks for its rank.
void Session::tell_where(Group& group) {
  if (group.ranks.size() < 2) return;
  const int me = transport_->rank();
  {
    const std::lock_guard lock(mutex_);
    if (group.broken.empty() || group.fault == Fault::usage) return;
    if (!config_.call_site && group.labels.empty()) return;
    if (!group.words.try_emplace(me).second) return;
  }
  std::string here = config_.call_site ? config_.call_site() : "";   // may wait for Python's lock
  {
    const std::lock_guard lock(mutex_);
    if (!group.labels.empty()) here += (here.empty() ? "" : ", in ") + group.labels;
    if (here.empty()) {   // a thread of our own, say: another one may know
      group.words.erase(me);
      return;
    }
    group.words[me] = one_line(here);
    tell_all(group, kWord + group.words[me]);
  }
  const auto is_heard = [&](int rank) {
    return group.words.contains(rank) || !gone_[static_cast<std::size_t>(rank)].empty();
  };
  for (const double begun_s = now_s(); now_s() - begun_s < kWordsS;) {
    {
      const std::lock_guard lock(mutex_);
      transport_->check_peers();
      progress();
      if (std::ranges::all_of(group.ranks, is_heard)) break;
    }
    transport_->rest(kNapUs, [] { return false; });
  }
  const std::lock_guard lock(mutex_);
  amend_record(group);
}

// With the lock held: where the ranks of a broken group were, as far as they have said so. Most are
// in the same line.
std::string Session::whereabouts(const Group& group) const {
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

std::string Session::told(const Group& group) const {
  return group.broken.empty() ? "" : group.broken + whereabouts(group);
}

}  // namespace paceline
