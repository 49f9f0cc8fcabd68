#include "runtime/progress/session_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/str.hpp"

namespace paceline {
namespace {

constexpr int kSleepUs = 1000;       // an arriving message ends the sleep earlier
constexpr int kPollingSleepUs = 50;  // for events that do not end it, such as those of a device

}  // namespace

SessionState::SessionState(std::unique_ptr<Transport> transport_of_world,
                           const WorldConfig& world_config)
    : process(getpid()),
      config(world_config),
      transport(std::move(transport_of_world)),
      oversubscribed(transport->is_oversubscribed()),
      gone(std::size_t(transport->ranks())) {}

std::string SessionState::owner() const {
  return str("this process is a fork of rank ", rank(), " (process ", process,
             "), to which the communicator belongs");
}

void SessionState::refuse_child() const {
  fail(Fault::usage, "fork: ", owner(), ". Call collectives there, or fork before the ranks join; ",
       "a child may join a world of its own.");
}

bool SessionState::is_under_way(const Group& group) const {
  return std::any_of(active.begin(), active.end(),
                     [&](const auto& one) { return one->group.get() == &group; });
}

bool SessionState::can_progress() {
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) return true;
  return std::any_of(active.begin(), active.end(),
                     [](const auto& one) { return one->operation->can_progress(); });
}

int SessionState::sleep_us() const { return polling.load() > 0 ? kPollingSleepUs : kSleepUs; }

std::string name_of(const Group& group, int world_rank) {
  const auto at = std::find(group.ranks.begin(), group.ranks.end(), world_rank);
  const auto position = static_cast<int>(at - group.ranks.begin());
  return str("rank ", position,
             position == world_rank ? "" : str(" (rank ", world_rank, " of the world)"));
}

}  // namespace paceline
