#include "runtime/progress/shm_groups.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <thread>

#include "base/str.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

constexpr int kPollUs = 200;   // longest sleep between two looks of a leaving rank

// Measures how long peers have waited in their current call.
class Waits {
 public:
  // Returns the seconds since this first saw the peer in its call; 0: in no call, or just seen. The
  // caller asks repeatedly.
  double seen_s(int rank, const PeerStatus& doing, double at_s) {
    if (!doing.inside) {
      since_.erase(rank);
      return 0;
    }
    const Wait now{doing.context, doing.number, at_s};
    Wait& since = since_.try_emplace(rank, now).first->second;
    if (since.context != now.context || since.number != now.number) since = now;
    return at_s - since.at_s;
  }

 private:
  struct Wait {
    std::uint64_t context;
    std::uint32_t number;
    double at_s;
  };
  std::map<int, Wait> since_;
};

}  // namespace

void ShmGroups::add(Group& group) {
  free_unneeded();
  const WorldConfig& config = state_.config;
  const auto node = [&](int rank) {
    return config.nodes.empty() ? 0 : config.nodes[static_cast<std::size_t>(rank)];
  };
  std::vector<int> mates;
  int local_rank = 0;
  for (int rank : group.ranks) {
    if (node(rank) != node(state_.rank())) continue;
    if (rank == state_.rank()) local_rank = static_cast<int>(mates.size());
    mates.push_back(rank);
  }
  const bool is_whole = mates.size() == group.ranks.size();
  StagingBuffers* const buffers = state_.transport->stages();
  if (buffers && mates.size() > 1 && (is_whole || config.node_staging > 0))
    group.shm = std::make_unique<ShmChannels>(*buffers, group.context, mates, local_rank);
  for (EntryBook& book : group.entry_books) book.set_takes_turns(state_.oversubscribed);
  group.one_node = group.shm && is_whole;
}

bool ShmGroups::is_taken(std::uint64_t context) const {
  const auto has_it = [&](const auto& one) { return one.first == context; };
  return broken_contexts_.has(context) || std::ranges::any_of(closing_, has_it);
}

// A peer that looks for the staging buffer of a broken group finds none, and is told why the group
// is broken. Its context stays taken until ClosedContexts::kMost others have been broken.
void ShmGroups::release(Group& group) {
  if (group.shm && group.broken.empty()) {
    closing_.emplace_back(group.context, std::move(group.shm));
  } else if (group.shm) {
    group.shm->close();
    group.shm.reset();
    broken_contexts_.add(group.context);
  }
  free_unneeded();
}

void ShmGroups::open_staging(Group& group, std::size_t slot_bytes) {
  const std::lock_guard lock(state_.mutex);
  open_channel(group, group.shm->first(), slot_bytes);
}

// Peers with a staging buffer wait for this one. If there is none, they are told why, and need not
// wait for their time-out.
void ShmGroups::open_channel(Group& group, ShmChannel& channel, std::size_t slot_bytes) try {
  channel.open(slot_bytes);
} catch (const Error& error) {
  failures_.break_group(group, error.fault(),
                        str(name_of(group, state_.rank()), " has no room to share memory in: ",
                            error.what()),
                        true);
  throw Error(group.fault, group.broken);
}

// Throws if a rank of the group is gone. A rank that has left may have done so because another has
// died, so dead ranks are named first. Called without the lock, at start-up.
void ShmGroups::look_for_lost(const Group& group, double& looked_s) {
  if (now_s() - looked_s < SessionState::kWatchS) return;
  looked_s = now_s();
  if (state_.config.idle) state_.config.idle();
  const std::lock_guard lock(state_.mutex);
  state_.transport->check_peers();
  driver_.progress();
  if (!group.broken.empty()) throw Error(group.fault, group.broken);
  for (const bool left : {false, true})
    for (int rank : group.ranks)
      if (const std::string& why = state_.why_gone(rank);
          !why.empty() && why.starts_with("it has left") == left)
        fail(Fault::lost, "start-up: ", name_of(group, rank), " is lost: ", why, ".");
}

// If this fails, no peer needs this rank's buffer any more, so leave() must not wait for any.
void ShmGroups::attach_together(Group& group, int timeout_ms) try {
  open_staging(group);
  const double begun_s = now_s();
  double looked_s = begun_s;
  const auto pause_for = [&](int peer, const char* what) {
    if (now_s() - begun_s > 1e-3 * timeout_ms)
      fail(Fault::timeout, "start-up: ", name_of(group, peer), " has not ", what,
           " shared memory within ", timeout_ms * 1e-3,
           " s. Is it still there? PACELINE_START_TIMEOUT_MS is the limit.");
    look_for_lost(group, looked_s);
    std::this_thread::sleep_for(std::chrono::microseconds(20));   // short: ranks start together
  };
  const auto rank_at = [&](int position) {
    return group.ranks[static_cast<std::size_t>(position)];
  };
  while (true) {
    std::unique_lock lock(state_.mutex);
    const auto unseen = group.shm->first().unseen();
    if (const auto& lacking = group.shm->first().lacking()) {
      failures_.break_group(
          group, lacking->fault(),
          str("start-up: ", name_of(group, state_.rank()), ": ", lacking->what()), true);
      throw Error(group.fault, group.broken);
    }
    const std::vector<int> pending_attachers = group.shm->first().pending_attachers();
    lock.unlock();
    if (!unseen && pending_attachers.empty()) return;
    if (unseen) pause_for(rank_at(*unseen), "shown its");
    else pause_for(pending_attachers[0], "found this rank's");
  }
} catch (...) {
  const std::lock_guard lock(state_.mutex);
  has_waited_ = true;
  throw;
}

// Frees a staging buffer when its communicator is closed, every peer has found it, and this rank
// has found theirs. Looks first, since peers may wait for each other's looks.
void ShmGroups::free_unneeded() {
  std::erase_if(closing_, [&](const auto& one) {
    ShmChannels& shm = *one.second;
    if (shm.is_idle()) shm.look_around();
    if (!shm.is_idle() || shm.has_unattached_peers() || !shm.needed_by().empty()) return false;
    shm.close();
    return true;
  });
  if (StagingBuffers* const buffers = state_.transport->stages()) buffers->clear();
}

// A peer cannot free its buffers, or leave, before this rank has found them.
void ShmGroups::look_around() {
  for (const auto& one : closing_) one.second->look_around();
  for (const auto& entry : state_.groups)
    if (entry.second->shm && entry.second->broken.empty()) entry.second->shm->look_around();
  if (StagingBuffers* const buffers = state_.transport->stages()) buffers->clear();
}

// Returns the ranks of the world that may still need this rank's buffers and are not lost. Requires
// the lock.
std::vector<int> ShmGroups::pending_attachers() {
  std::vector<int> ranks;
  const auto add = [&](ShmChannels* shm) {
    if (!shm) return;
    for (int rank : shm->needed_by())
      if (!state_.is_gone(rank)) ranks.push_back(rank);
  };
  for (const auto& one : closing_) add(one.second.get());
  for (const auto& entry : state_.groups)
    if (entry.second->broken.empty()) add(entry.second->shm.get());
  return ranks;
}

// A rank's buffers must stay while a peer has yet to look for them. A peer that computes looks in
// its next call of any communicator; this rank waits for it as long as for a call. A peer that
// waits in a call has looked, unless it has yet to make the communicator. Then it may wait for this
// rank, which gives up when the peer has been in that call for attachers_ms. For the same time this
// rank waits for room for messages that the transport owes.
void ShmGroups::wait_for_attachers(std::unique_lock<std::mutex>& lock, bool may_stop) {
  if (std::exchange(has_waited_, true)) return;
  const WorldConfig& config = state_.config;
  Transport& transport = *state_.transport;
  const double begun_s = now_s(), attachers_s = 1e-3 * config.attachers_ms;
  Waits waits;
  for (bool warned = false;;) {
    transport.check_peers();
    driver_.progress();
    look_around();
    const double at_s = now_s(), waited_s = at_s - begun_s;
    std::optional<int> awaited;
    for (int rank : pending_attachers()) {
      const bool gives_up = waits.seen_s(rank, transport.peer_status(rank), at_s) > attachers_s;
      const bool is_over = config.timeout_ms > 0 && waited_s > 1e-3 * config.timeout_ms;
      if (!awaited && !gives_up && !is_over) awaited = rank;
    }
    if (!awaited && !(transport.owes() && waited_s < attachers_s)) return;
    const bool warns = config.warn_ms > 0 && waited_s > 1e-3 * config.warn_ms;
    if (awaited && warns && !std::exchange(warned, true))
      std::fprintf(stderr, "paceline: rank %d leaves, and has waited %.0f s for rank %d, which "
                           "has yet to make a call that it has made.\n",
                   state_.rank(), waited_s, *awaited);
    lock.unlock();
    if (config.meanwhile) config.meanwhile();
    transport.rest(kPollUs, [] { return false; });
    if (may_stop && config.idle) config.idle();
    lock.lock();
  }
}

}  // namespace paceline
