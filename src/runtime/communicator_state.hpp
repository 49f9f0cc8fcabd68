// CommunicatorState: data of a communicator, and the preparation of its calls.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/arrivals.hpp"
#include "runtime/call_cache.hpp"
#include "runtime/check_call.hpp"
#include "runtime/compile.hpp"
#include "runtime/progress/session.hpp"
#include "runtime/schedule_cache.hpp"
#include "runtime/topology.hpp"
#include "tune/choose.hpp"

namespace paceline {

// A call that has been checked and compiled.
struct Ready {
  std::shared_ptr<Prepared> prepared;
  std::vector<PeerBuffers> peers;   // buffers of its peers, if it uses shared memory
  Fingerprint fingerprint;
};

struct CommunicatorState {
  std::shared_ptr<Session> session;
  std::shared_ptr<Group> group;
  std::mutex mutex;  // guards `book` and Prepared::active_ops
  ScheduleCache book;
  CallCache recent;
  Assumed assumed;     // machine that the choice assumes; equal on all ranks
  bool spans_nodes;
  std::vector<int> nodes;   // node of each rank, as nodes_in() returns it; equal on all ranks
  ArrivalBook arrivals;
  bool leaves_out_sums = false;

  CommunicatorState(std::shared_ptr<Session> s, std::shared_ptr<Group> g)
      : session(std::move(s)),
        group(std::move(g)),
        recent(group->rank, static_cast<int>(group->ranks.size()),
               [this](const Call& call) { arrivals.begin(call); }),
        assumed(assumed_in(*group, session->config().nodes, session->assumed())),
        spans_nodes(!on_one_node(*group, session->config().nodes)),
        nodes(nodes_in(*group, session->config())),
        arrivals(spans_nodes ? expected_by(session->config().arrival) : Expected{}, group->ranks,
                 group->rank, nodes, assumed.machine.across.beta_s_per_byte,
                 [this](const Call& call) { return prices_of(call); }) {
    session->open(group);
  }
  ~CommunicatorState() { session->close(*group); }

  // Checks the call, chooses and compiles, or takes the result from the cache. Changes nothing
  // else, since the call may yet be refused, or explain() asks.
  Ready prepare(const Call& call, const std::vector<int>& late = {});
  std::shared_ptr<Prepared> prepare(const Call& call, const Problem& problem,
                                    const Layout& layout);
  Prepared prepared_for(CallShape shape, const Call& call, const Problem& problem,
                        const Layout& layout) const;
  // Returns an operation for this call: one that has ended and that no request holds, or a new one.
  // Opens the staging buffers that it needs; throws a resource error if there is no memory.
  std::shared_ptr<ActiveOp> free_op(Prepared& prepared);
  std::shared_ptr<Prepared> without_active_ops(const Prepared& prepared);
  Problem problem_of(const Call& call) const;
  Overrides wish_of(const Call& call) const;
  CallPrices prices_of(const Call& call) const;   // prices with late ranks
  bool has_notes(const Call& call, const Problem& problem, const Choice& choice) const;
  CompiledSchedule compiled(const Choice& choice, const Problem& problem, const Layout& layout,
                            const Call& call) const;
  // Returns the choice that the call may take instead, depending on the order of arrival.
  std::optional<Choice> by_arrival(const Call& call, const Problem& problem,
                                   const Choice& usual) const;
  std::string evidence(const Call& call, const Problem& problem, const Choice& usual);
  StagingLimits staging_limits() const { return staging_limits_of(*group, session->config()); }
  ChoiceInputs inputs_of(const Call& call, const Problem& problem) const {
    return {bytes_for_choice(call, problem), assumed.machine, staging_for_data(),
            call.is_one_of_many};
  }
  std::size_t staging_for_data() const {
    const std::size_t all = staging_limits().bytes;
    const bool has_notes = !nodes.empty() && arrivals.learns();
    const std::size_t notes = has_notes ? most_staging_for_notes() : 0;
    return all - std::min(all, notes);
  }
};

// Opens a communicator of these ranks of the world. `made_of`: the group whose time-out it takes.
std::shared_ptr<CommunicatorState> open_communicator(const std::shared_ptr<Session>& session,
                                                     std::uint64_t context, std::vector<int> ranks,
                                                     int rank, const Group* made_of = nullptr);

}  // namespace paceline
