// The part of the session that opens communicators and closes them. Requests may outlive their
// communicator: until they have ended, and nobody holds them, it is known here.
#include <algorithm>

#include "runtime/progress/session.hpp"

namespace paceline {

void Session::open(const std::shared_ptr<Group>& group) {
  check_owner();
  const std::lock_guard lock(mutex_);
  forget_closed();
  const auto is_it = [&](const auto& left) { return left.first == group->context; };
  if (groups_.contains(group->context) || spent_.has(group->context) ||
      std::any_of(left_shm_.begin(), left_shm_.end(), is_it))
    fail(Fault::usage, "subgroup: its tag has named another group of this communicator, which ",
         "ranks may still look for; every group needs a new one.");
  group->history.resize(kHistory);
  group->last = config_.first_number - 1;
  groups_[group->context] = group;
  closed_.remove(group->context);
  clear_stages();
  const auto node = [&](int rank) {
    return config_.nodes.empty() ? 0 : config_.nodes[static_cast<std::size_t>(rank)];
  };
  std::vector<int> mates;
  int local_rank = 0;
  for (int rank : group->ranks) {
    if (node(rank) != node(transport_->rank())) continue;
    if (rank == transport_->rank()) local_rank = static_cast<int>(mates.size());
    mates.push_back(rank);
  }
  const bool is_whole = mates.size() == group->ranks.size();
  StagingBuffers* const stages = transport_->stages();
  if (stages && mates.size() > 1 && (is_whole || config_.node_staging > 0))
    group->shm = std::make_unique<ShmChannels>(*stages, group->context, mates, local_rank);
  if (oversubscribed_ && group->shm) group->shm->take_turns();
  group->near = group->shm && is_whole;
  if (const auto early = early_aborts_.find(group->context); early != early_aborts_.end()) {
    aborted(-1, group->context, early->second);
    early_aborts_.erase(early);
    settle();
  }
}

void Session::close(Group& group) {
  if (is_inherited()) return;
  const std::lock_guard lock(mutex_);
  group.closed = true;
  land_stopped();   // if it is broken they have been
  release(group);
  forget_closed();
}

// One after the other, each by its own time-out. What completes meanwhile leaves the list.
void Session::complete() {
  for (;;) {
    std::shared_ptr<ActiveOp> active;
    std::uint32_t start = 0;
    {
      check_owner();
      const std::lock_guard lock(mutex_);
      if (active_.empty()) return;
      active = active_.front();
      start = active->operation->number();
    }
    wait(*active, start, 0, 0);
  }
}

bool Session::is_under_way(const Group& group) const {
  return std::any_of(active_.begin(), active_.end(),
                     [&](const auto& active) { return active->group.get() == &group; });
}

// With the lock held: operations that have ended leave the list.
void Session::land_stopped() {
  std::erase_if(active_, [&](const auto& active) {
    if (!active->operation->done()) return false;
    land(*active);
    return true;
  });
}

// With the lock held. The stages of a closed group go, once its last request has ended. Who looks
// for the stage of a broken one finds none, and hears why. Its name stays taken, until that of
// thousands of later ones is.
void Session::release(Group& group) {
  if (!group.closed || is_under_way(group)) return;
  if (group.shm && group.broken.empty()) {
    left_shm_.emplace_back(group.context, std::move(group.shm));
  } else if (group.shm) {
    group.shm->close();
    group.shm.reset();
    spent_.add(group.context);
  }
  clear_stages();
}

// With the lock held. Whoever holds a request of a closed group may ask how it ended, and who was
// where: the group stays for them, and for no one else.
void Session::forget_closed() {
  std::erase_if(groups_, [&](const auto& entry) {
    const auto& [context, group] = entry;
    if (!group->closed || group.use_count() > 1) return false;
    closed_.add(context);
    return true;
  });
}

// With the lock held, where an exception is being handled that came while everything was driven: it
// ends what is under way, on all its ranks. They must not wait for one that cannot go on.
void Session::fail_under_way() {
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
  for (const auto& active : active_) {
    Group& group = *active->group;
    if (is_starved)
      starve(group);
    else
      break_group(group, fault,
                  str(active->operation->describe(), ": ", name_of(group, transport_->rank()),
                      " cannot go on: ", what, ". The communicator cannot be used any more."),
                  true);
    active->operation->stop(*transport_, Error(group.fault, group.broken));
  }
  land_stopped();
}

}  // namespace paceline
