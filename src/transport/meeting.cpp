#include "transport/meeting.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace paceline {

std::vector<std::string> StoreMeeting::share(const std::string& mine) {
  const auto key = [&](int rank) { return str("paceline/", name_, "/", turn_, "/", rank); };
  store_.set(key(rank_), mine);
  std::vector<std::string> said;
  for (int r = 0; r < ranks_; ++r)
    said.push_back(r == rank_ ? mine : store_.get(key(r), timeout_));
  ++turn_;
  return said;
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
    // A time-out is of a meeting inside the step: whoever is missing will not hear this either.
    if (error.fault() != Fault::timeout) meeting.share(error.what());
    throw;
  } catch (const std::exception& error) {
    meeting.share(str("start-up: ", error.what()));
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
