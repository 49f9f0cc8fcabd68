// The dependency engine as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/engine.hpp"
#include "runtime/communicator.hpp"

namespace paceline::binding {

using EnginePointer = std::shared_ptr<graph::Engine>;

// Wraps a Python object, or a value that holds some, so that any thread may drop it.
template <class Value>
std::shared_ptr<Value> droppable_anywhere(Value value) {
  return {new Value(std::move(value)), [](Value* held) {
            const nanobind::gil_scoped_acquire locked;
            delete held;
          }};
}

struct PyVariable {
  EnginePointer engine;
  graph::Variable variable;
};

// The communicator of an engine's calls; kept while calls are under way or may come.
struct Caller {
  Communicator communicator;
};

// Ends its engine when Python drops it, without waiting. An engine with incomplete tasks stays for
// ever, and so does what a forked child has of its parent's.
class PyEngine {
 public:
  PyEngine(int compute, int copy, int communication)
      : engine_(std::make_shared<graph::Engine>(
            graph::Threads{compute, copy, communication})) {}
  ~PyEngine() {
    const nanobind::gil_scoped_release unlocked;
    if (!engine_->is_here() || engine_->unfinished() > 0) {
      new EnginePointer(engine_);
      return;
    }
    try {
      engine_->close();
    } catch (...) {   // callers see the error if they call close()
    }
  }
  PyEngine(const PyEngine&) = delete;
  PyEngine& operator=(const PyEngine&) = delete;

  const EnginePointer& get() const { return engine_; }

  std::shared_ptr<Caller> caller(const Communicator& communicator) {
    auto made = std::make_shared<Caller>(Caller{communicator});
    std::erase_if(callers_, [](const auto& caller) { return caller.expired(); });
    callers_.push_back(made);
    return made;
  }

  // Keeps what has not begun from running, and has the calls under way end.
  void give_up(const std::string& why) {
    if (!engine_->is_here()) return;
    std::vector<std::shared_ptr<Caller>> callers;
    for (const auto& weak : callers_)
      if (auto caller = weak.lock()) callers.push_back(std::move(caller));
    const nanobind::gil_scoped_release unlocked;
    engine_->cancel_all(why);
    for (const auto& caller : callers)
      if (caller->communicator.broken().empty()) caller->communicator.abort(why);
    callers.clear();
  }

 private:
  EnginePointer engine_;
  std::vector<std::weak_ptr<Caller>> callers_;   // guarded by the GIL
};

}  // namespace paceline::binding
