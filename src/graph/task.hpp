// Task: a piece of work of the dependency engine (graph/engine.hpp), with the variables that it
// reads and writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/hazard.hpp"

namespace paceline::graph {

class Engine;
struct TaskState;
using TaskPointer = std::shared_ptr<TaskState>;

// Pool that runs a task. Each pool has its own threads, so that copies and collectives go on while
// all compute threads are busy.
enum class Pool { compute, copy, communication };
inline constexpr int kPools = 3;

// Reason why a task has not done its work. The tasks that depend on it fail with the same Failure.
// The thread that drops the last reference may hold locks, so the Failure goes into the engine's
// Bin.
struct Failure {
  std::exception_ptr error;
  std::uint64_t birth = 0;   // failures of the engine before this one
  // A wait has thrown it before the tasks with this number and later ones were pushed: those may
  // use the variables again. Until then no task has so high a number.
  std::uint64_t told = ~std::uint64_t{0};
};

// Failures without references, until a thread without a lock empties it: the destructor of an error
// may do anything, such as wait for a lock of the thread that has dropped it.
class Bin {
 public:
  void add(Failure* failure) {
    const std::lock_guard lock(mutex_);
    failures_.emplace_back(failure);
    holds_some_ = true;
  }
  bool holds_some() const { return holds_some_; }
  void empty() {   // by a thread without the engine's lock
    std::vector<std::unique_ptr<Failure>> failures;   // destroyed after the lock has gone
    const std::lock_guard lock(mutex_);
    failures.swap(failures_);
    holds_some_ = false;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Failure>> failures_;
  std::atomic<bool> holds_some_{false};
};

struct VariableState {
  const Engine* engine = nullptr;
  std::string name;
  // Guarded by the engine's mutex.
  Cell<TaskPointer> cell;             // its last writer, and the readers since
  std::shared_ptr<Failure> failure;   // of the last complete writer; null: it has not failed
};

// Resource that tasks read and write: readers run together, writers one at a time, as if all ran in
// the order of their pushes.
using Variable = std::shared_ptr<VariableState>;

struct SequenceState {
  const Engine* engine = nullptr;
  TaskPointer last;   // that was pushed; guarded by the engine's mutex
};

// Tasks of one sequence start in the order of their pushes; each starts as soon as its predecessor
// has started, not when it is complete. For calls that must be made in one order.
using Sequence = std::shared_ptr<SequenceState>;

// Description of a task, besides its work.
struct TaskSpec {
  std::string name = {};
  std::vector<Variable> read = {}, write = {};
  Sequence sequence = {};   // or none
  int priority = 0;         // of the tasks of a pool that could run, the highest runs first
  Pool pool = Pool::compute;
  // Short work that never waits: the thread that makes the task ready runs it at once, even if it
  // is not of the engine, because waking a thread of the pool would cost more than the work.
  bool at_once = false;
  // Called instead of the work if the task fails because of an earlier one, or is cancelled. Its
  // exceptions are dropped.
  std::function<void(const std::exception_ptr&)> skipped = {};
  // Object that must live until the task is complete. It is released without a lock, and never by a
  // thread inside done() or failed(): its destructor may do anything.
  std::shared_ptr<void> keeps = {};
};

// Ends a task that goes on after its work has returned: call done() or failed() once, on any
// thread. A Completion that is dropped without either fails the task.
class Completion {
 public:
  void done() const;
  void failed(std::exception_ptr error) const;
  // Ends the task as `work` does, by returning or throwing, which a thread of its pool runs. For
  // threads that must not spend time here.
  void ends_with(std::function<void()> work) const;

 private:
  friend class Engine;
  struct Promise {
    Promise(Engine* e, TaskPointer t) : engine(e), task(std::move(t)) {}
    ~Promise();
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    void end(std::exception_ptr error);   // only the first call has an effect
    void end_with(std::function<void()> work);   // only the first call has an effect

    Engine* engine;
    TaskPointer task;
    std::atomic<bool> ended{false};
  };
  explicit Completion(std::shared_ptr<Promise> promise) : promise_(std::move(promise)) {}
  std::shared_ptr<Promise> promise_;
};

enum class Stage { waiting, running, complete };

// Guarded by the engine's mutex.
struct TaskState {
  const Engine* engine = nullptr;
  std::uint64_t number = 0;            // in the order of pushes
  TaskSpec spec;
  std::function<void()> work;          // one of the two, until the task runs; then also what
  std::function<void(Completion)> asynchronous_work;   // Completion::ends_with() was given
  int waits_for = 0;                   // earlier tasks that still have to start or to complete
  Stage stage = Stage::waiting;
  bool started = false;                // its work has returned, or it was skipped
  bool cancelled = false;
  bool awaited = false;                // a thread waits for it, or has
  // Later tasks that wait for its start (of its sequence), or for its completion.
  std::vector<TaskPointer> follow_start, follow_completion;
  std::shared_ptr<Failure> failure;
};

// Handle that push() returns, to wait for, to query and to cancel.
using Task = TaskPointer;

}  // namespace paceline::graph
