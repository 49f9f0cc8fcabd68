#include "transport/bootstrap.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace paceline {

namespace {

// First character of a rank's last word; no other value begins with it. The fault and a sentence
// follow.
constexpr char kEnd = '\1';

std::string pack(Fault fault, const std::string& why) {
  return str(kEnd, static_cast<char>('A' + static_cast<int>(fault)), why);
}

// Throws GivenUp for a time-out: that rank may still come to the next meeting.
[[noreturn]] void raise(const std::string& word) {
  const std::string why = word.substr(std::min<std::size_t>(2, word.size()));
  const int fault = word.size() < 2 ? 0 : word[1] - 'A';
  if (fault == static_cast<int>(Fault::timeout)) throw GivenUp(why);
  throw Error(static_cast<Fault>(std::clamp(fault, 0, static_cast<int>(Fault::internal))), why);
}

}  // namespace

void Bootstrap::know(int, int) {}

SharedWatch Bootstrap::watch(int, int process_id) const {
  return std::make_shared<const ProcessWatch>(process_id);
}

std::string StoreBootstrap::key(int rank, int turn) const {
  return str("paceline/", name_, "/", turn, "/", rank);
}

std::vector<std::string> StoreBootstrap::allgather(const std::string& mine) try {
  store_.set(key(rank_, turn_), mine);
  ++said_;
  std::vector<std::string> said = hear(mine);
  ++turn_;
  return said;
} catch (const GivenUp& error) {
  end(Fault::timeout, error.what());
  throw;
} catch (const Error& error) {
  end(error.fault(), error.fault() == Fault::timeout
                         ? str("start-up: rank ", rank_, " has given up waiting after ",
                               timeout_.count(), " ms.")
                         : error.what());
  throw;
} catch (...) {
  end(Fault::lost, str("start-up: rank ", rank_, " has given up waiting: its program was ",
                       "interrupted, or its store has failed."));
  throw;
}

// A write that fails is tried again by the next end(), when this rank may have given back what it
// holds. Until then its peers wait as for a rank that is gone.
void StoreBootstrap::end(Fault fault, const std::string& why) {
  is_over_ = true;
  vigil_.forget_all();
  if (has_ended_) return;
  const std::string self = str("start-up: rank ");
  try {
    store_.set(key(rank_, said_), pack(fault, why.starts_with(self) ? why : str(
        self, rank_, " cannot start: ", why)));
    has_ended_ = true;
  } catch (...) {
  }
}

std::vector<std::string> StoreBootstrap::hear(const std::string& mine) {
  std::vector<std::string> said;
  for (int r = 0; r < ranks_; ++r) {
    said.push_back(r == rank_ ? mine : Vigil::get(store_, key(r, turn_), timeout_,
                                                  [this] { look(); }));
    if (said.back().starts_with(kEnd)) raise(said.back());
  }
  return said;
}

void StoreBootstrap::look() {
  if (idle_) idle_();
  const int missing =
      vigil_.missing(store_, [this](int rank) { return key(rank, turn_); });
  if (missing < 0) return;
  const std::string why = str("start-up: rank ", missing, " is lost: its process has died while "
                              "the ranks met, or was one of an earlier run: a store must be new "
                              "for each run.");
  store_.set(key(missing, turn_), pack(Fault::lost, why));
  throw Error(Fault::lost, why);
}

PartBootstrap::PartBootstrap(Bootstrap& whole, std::vector<int> members)
    : whole_(whole), members_(std::move(members)) {
  const auto me = std::find(members_.begin(), members_.end(), whole.rank());
  require(me != members_.end(), "a rank meets in a part that it belongs to");
  rank_ = static_cast<int>(me - members_.begin());
}

std::vector<std::string> PartBootstrap::allgather(const std::string& mine) {
  const std::vector<std::string> all = whole_.allgather(mine);
  std::vector<std::string> said;
  for (int member : members_) said.push_back(all[std::size_t(member)]);
  return said;
}

std::vector<std::string> collective_try(Bootstrap& meeting, const std::function<void()>& step,
                                  const std::string& note) {
  constexpr char kWell = '\n';   // no error begins with it
  try {
    step();
  } catch (const Error& error) {
    // A rank that missed a meeting inside the step would not hear this either.
    if (!meeting.is_over() && error.fault() != Fault::timeout) meeting.allgather(error.what());
    throw;
  } catch (const std::exception& error) {
    if (!meeting.is_over()) meeting.allgather(str("start-up: ", error.what()));
    throw;
  }
  std::vector<std::string> said = meeting.allgather(kWell + note);
  for (int r = 0; r < meeting.ranks(); ++r) {
    std::string& theirs = said[std::size_t(r)];
    if (!theirs.starts_with(kWell))
      fail(Fault::resource, "start-up: rank ", r, " could not start: ", theirs);
    theirs.erase(0, 1);
  }
  return said;
}

}  // namespace paceline
