// Collectives as tasks of the dependency engine.
#pragma once

#include <memory>

#include "graph/engine.hpp"
#include "runtime/communicator.hpp"

namespace paceline::tasks {

// The calls of one communicator in one engine. All ranks push the same calls in the same order;
// each is made when its operands are ready and all calls that were pushed before it have been made,
// and several may be under way. So ranks whose operands become ready in different orders make their
// calls in one order, and no rank waits for a call that another one can never make.
//
// A call whose operands fail, or that is refused, is not made: its communicator is broken, so that
// no peer waits for it or takes a later call for it, and every rank gets the reason.
class Calls {
 public:
  // Refused where nothing makes progress by itself: a task cannot wait inside of a call.
  Calls(graph::Engine& engine, Communicator communicator);

  // `spec` names the variables that the call reads and writes; this function sets its sequence and
  // pool. The buffers must live until the task is complete (TaskSpec::keeps).
  graph::Task push(const Call& call, graph::TaskSpec spec);

  // For an idle thread: drives a call that is under way for some milliseconds or until it is
  // complete, and the tasks that this makes ready. Returns true if the thread should call again.
  // The call's task reports its errors; Ctrl-C is thrown.
  bool help(int milliseconds);

 private:
  class UnderWay;

  graph::Engine& engine_;
  Communicator communicator_;
  graph::Sequence order_;
  std::shared_ptr<UnderWay> under_way_;
};

}  // namespace paceline::tasks
