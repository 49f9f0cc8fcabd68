#include "transport/meeting.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace paceline {

namespace {

constexpr char kLost = '\1';   // with which nothing else begins that is said

}  // namespace

void Meeting::know(int, int) {}

std::string StoreMeeting::key(int rank, int turn) const {
  return str("paceline/", name_, "/", turn, "/", rank);
}

std::vector<std::string> StoreMeeting::share(const std::string& mine) try {
  store_.set(key(rank_, turn_), mine);
  std::vector<std::string> said = hear(mine);
  ++turn_;
  return said;
} catch (...) {
  is_over_ = true;
  throw;
}

std::vector<std::string> StoreMeeting::hear(const std::string& mine) {
  std::vector<std::string> said;
  for (int r = 0; r < ranks_; ++r) {
    said.push_back(r == rank_ ? mine : Vigil::get(store_, key(r, turn_), timeout_,
                                                  [this] { look(); }));
    if (said.back().starts_with(kLost)) end(said.back().substr(1));
  }
  return said;
}

void StoreMeeting::look() {
  if (idle_) try {
      idle_();
    } catch (...) {
      const std::string why = str("start-up: rank ", rank_, " has given up waiting: its program ",
                                  "was interrupted.");
      store_.set(key(rank_, turn_ + 1), kLost + why);
      throw;
    }
  const int missing =
      vigil_.missing(store_, [this](int rank) { return key(rank, turn_); });
  if (missing < 0) return;
  const std::string why = str("start-up: rank ", missing, " is lost: its process has died while "
                              "the ranks met.");
  store_.set(key(missing, turn_), kLost + why);
  end(why);
}

void StoreMeeting::end(const std::string& why) {
  store_.set(key(rank_, turn_ + 1), kLost + why);
  throw Error(Fault::lost, why);
}

PartMeeting::PartMeeting(Meeting& whole, std::vector<int> members)
    : whole_(whole), members_(std::move(members)) {
  const auto me = std::find(members_.begin(), members_.end(), whole.rank());
  require(me != members_.end(), "a rank meets in a part that it belongs to");
  rank_ = static_cast<int>(me - members_.begin());
}

std::vector<std::string> PartMeeting::share(const std::string& mine) {
  const std::vector<std::string> all = whole_.share(mine);
  std::vector<std::string> said;
  for (int member : members_) said.push_back(all[std::size_t(member)]);
  return said;
}

std::vector<std::string> together(Meeting& meeting, const std::function<void()>& step,
                                  const std::string& note) {
  constexpr char kWell = '\n';   // with which no error begins
  try {
    step();
  } catch (const Error& error) {
    // Who is missing in a meeting inside the step will not hear this either.
    if (!meeting.is_over() && error.fault() != Fault::timeout) meeting.share(error.what());
    throw;
  } catch (const std::exception& error) {
    if (!meeting.is_over()) meeting.share(str("start-up: ", error.what()));
    throw;
  }
  std::vector<std::string> said = meeting.share(kWell + note);
  for (int r = 0; r < meeting.ranks(); ++r) {
    std::string& theirs = said[std::size_t(r)];
    if (!theirs.starts_with(kWell))
      fail(Fault::resource, "start-up: rank ", r, " could not start: ", theirs);
    theirs.erase(0, 1);
  }
  return said;
}

}  // namespace paceline
