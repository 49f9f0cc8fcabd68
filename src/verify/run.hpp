// Run: one symbolic execution of a world, an action at a time, in the order its caller chooses.
#pragma once

#include <memory>

#include "verify/memory.hpp"

namespace paceline {

// begin: the step starts; a local step is done with it. begin_early: a send whose data is taken at
// once, and which is done before its receive. transfer: the message of a started send reaches its
// receive.
enum class Move { begin, begin_early, transfer };

struct Action {
  Move move;
  StepId step;
};

class Run {
 public:
  Run(const World& world, const Partners& partners);

  std::vector<Action> actions(bool early_sends) const;
  void take(const Action& action);

  const std::string& fault() const { return fault_; }
  bool ended() const { return open_ == 0; }
  std::string stuck() const;            // steps and the ranks they wait for, if none can go on
  std::string judge() const;  // contract; for a barrier, that every rank knows of all
  std::string fingerprint() const;      // equal exactly for equal futures

 private:
  enum class Status : char { waiting, ready, begun, done };
  struct Rank {
    std::vector<Status> status;
    std::vector<std::uint32_t> missing;         // predecessors not done
    std::vector<std::uint32_t> begun;           // messages under way
    std::vector<std::uint32_t> ready;
    RankSet knows;
  };

  void end(StepId id);
  void begin(StepId id, bool early);
  void transfer(StepId receiver);
  bool departed(StepId receiver) const;
  const Step& step(StepId id) const { return (*world_)[std::size_t(id.rank)].steps[id.step]; }
  const Schedule& schedule(StepId id) const { return (*world_)[std::size_t(id.rank)]; }
  StepId partner(StepId id) const { return (*partners_)[std::size_t(id.rank)][id.step]; }
  Status& status(StepId id) { return ranks_[std::size_t(id.rank)].status[id.step]; }
  Status status(StepId id) const { return ranks_[std::size_t(id.rank)].status[id.step]; }
  Memory::Content message(StepId sender) const;

  const World* world_;
  const Partners* partners_;
  Memory memory_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, std::uint32_t>, Memory::Content> taken_;      // data of early sends
  std::map<std::pair<int, std::uint32_t>, RankSet> told_;               // what a signal says
  std::size_t open_ = 0;
  std::string fault_;
};

}  // namespace paceline
