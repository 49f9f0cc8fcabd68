// What a communicator is made of; shared by its handles, its plans and its requests.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/communicator.hpp"
#include "runtime/plans.hpp"
#include "runtime/recent.hpp"
#include "runtime/session.hpp"
#include "runtime/surroundings.hpp"
#include "tune/choose.hpp"

namespace paceline {

// A call that has been looked through.
struct Ready {
  std::shared_ptr<Prepared> prepared;
  std::vector<PeerBuffers> peers;   // where it uses shared memory
  Fingerprint fingerprint;
};

struct Communicator::State {
  std::shared_ptr<Session> session;
  std::shared_ptr<Group> group;
  std::mutex mutex;  // of the books
  PlanBook book;
  RecentCalls recent;
  Assumed assumed;     // the machine that the choice reckons with; equal on all ranks
  Grouping grouping;   // likewise
  bool spans_nodes;

  State(std::shared_ptr<Session> s, std::shared_ptr<Group> g)
      : session(std::move(s)),
        group(std::move(g)),
        recent(group->rank, static_cast<int>(group->ranks.size())),
        assumed(assumed_in(*group, session->config().nodes, session->assumed())),
        grouping(grouping_in(*group, session->config())),
        spans_nodes(!on_one_node(*group, session->config().nodes)) {
    session->open(group);
  }
  ~State() { session->close(*group); }

  Ready prepare(const Call& call);
  std::shared_ptr<Prepared> prepare(const Call& call, const Problem& problem,
                                    const Layout& layout);
  std::shared_ptr<Flight> free_flight(Prepared& prepared);
  Problem problem_of(const Call& call) const;
  Wish wish_of(const Call& call) const;
  std::size_t stage_bytes() const { return group->stages ? group->stages->bytes() : 0; }
};

}  // namespace paceline
