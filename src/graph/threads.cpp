// The part of the engine that runs tasks: the threads of its pools, and the end of tasks.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "graph/engine.hpp"

namespace paceline::graph {
namespace {

constexpr int kLooks = 400;   // of a pool's thread before it sleeps: some microseconds
constexpr std::size_t kMostUntold = 64;   // failures kept for wait_all(), which throws the first

thread_local const Engine* t_engine = nullptr;   // the engine whose pool has this thread

void pause() {   // the core's other hardware threads may run
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// True if a runs after b; for heaps.
bool runs_after(const Task& a, const Task& b) {
  if (a->spec.priority != b->spec.priority) return a->spec.priority < b->spec.priority;
  return a->number > b->number;
}

std::string name_of(const TaskState& task) {
  return task.spec.name.empty() ? str("#", task.number) : "'" + task.spec.name + "'";
}

}  // namespace

// Tasks that this thread has made ready and runs itself. They wait here until its current task has
// returned: a chain of calls that each end at once must not nest.
class Engine::AtOnce {
 public:
  explicit AtOnce(const Engine& engine) : engine_(engine), outer_(t_innermost) {
    t_innermost = this;
  }
  ~AtOnce() { t_innermost = outer_; }
  AtOnce(const AtOnce&) = delete;
  AtOnce& operator=(const AtOnce&) = delete;

  // Null if this thread runs no tasks of the engine.
  static AtOnce* of(const Engine& engine) {
    return t_innermost && &t_innermost->engine_ == &engine ? t_innermost : nullptr;
  }
  std::vector<Task> tasks;

 private:
  static thread_local AtOnce* t_innermost;
  const Engine& engine_;
  AtOnce* const outer_;
};

thread_local Engine::AtOnce* Engine::AtOnce::t_innermost = nullptr;

bool Engine::is_in_task() const { return t_engine == this || AtOnce::of(*this); }

void Engine::make_ready(const Task& task) {
  AtOnce* const here = task->spec.at_once ? AtOnce::of(*this) : nullptr;
  if (here && task->stage == Stage::waiting) {   // else ends_with() has brought it: to its pool
    here->tasks.push_back(task);
    return;
  }
  Ready& ready = ready_[static_cast<std::size_t>(task->spec.pool)];
  ready.heap.push_back(task);
  std::push_heap(ready.heap.begin(), ready.heap.end(), runs_after);
  ready.count.store(ready.heap.size(), std::memory_order_relaxed);
  if (ready.sleeping > 0) ready.arrived.notify_one();
}

void Engine::release(std::vector<Task>& followers) {
  for (const Task& follower : std::exchange(followers, {}))
    if (--follower->waits_for == 0) make_ready(follower);
}

void Engine::serve(Pool pool) {
  t_engine = this;
  Ready& ready = ready_[static_cast<std::size_t>(pool)];
  const AtOnce here(*this);
  Lock lock(mutex_);
  while (Task task = next(ready, lock)) {
    run_or_skip(task, lock);
    run_at_once(lock);
    collect(lock);
  }
}

void Engine::run_or_skip(const Task& task, Lock& lock) {
  // One that has run already, and comes once more to end, fails for its own reasons alone.
  const auto failure = task->stage == Stage::waiting ? inherited(*task) : nullptr;
  if (failure)
    skip(task, failure, lock);
  else
    run(task, lock);
}

// Runs them in the order in which they became ready; those that they make ready come after them.
void Engine::run_at_once(Lock& lock) {
  std::vector<Task>& tasks = AtOnce::of(*this)->tasks;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Task task = std::move(tasks[i]);
    run_or_skip(task, lock);
  }
  tasks.clear();
}

void Engine::start_or_queue(const Task& task, Lock& lock) {
  if (!task->spec.at_once || AtOnce::of(*this)) return make_ready(task);
  const AtOnce here(*this);
  make_ready(task);
  run_as_guest(lock);
}

// Runs tasks in a thread that close() does not join. So close() waits until the last guest has
// left: the task that a guest is still in may already be complete and be the last one.
void Engine::run_as_guest(Lock& lock) {
  ++guests_;
  run_at_once(lock);
  if (--guests_ == 0 && closed_) completed_.notify_all();
}

// Returns the most urgent task, or none once the engine stops. Looks for one for a while before it
// sleeps: waking a thread costs the caller of push() some microseconds.
Task Engine::next(Ready& ready, Lock& lock) {
  for (bool has_looked = false; ready.heap.empty();) {
    if (stop_) return nullptr;
    if (!std::exchange(has_looked, true)) {
      lock.unlock();
      for (int i = 0; i < kLooks && ready.count.load(std::memory_order_relaxed) == 0; ++i)
        pause();
      lock.lock();
      continue;
    }
    ++ready.sleeping;
    ready.arrived.wait(lock);
    --ready.sleeping;
  }
  std::pop_heap(ready.heap.begin(), ready.heap.end(), runs_after);
  Task task = std::move(ready.heap.back());
  ready.heap.pop_back();
  ready.count.store(ready.heap.size(), std::memory_order_relaxed);
  return task;
}

void Engine::run(const Task& task, Lock& lock) {
  task->stage = Stage::running;
  std::function<void()> work = std::move(task->work);
  std::function<void(Completion)> asynchronous = std::move(task->asynchronous_work);
  std::function<void(const std::exception_ptr&)> skipped = std::move(task->spec.skipped);
  task->spec.skipped = nullptr;
  const bool is_asynchronous = asynchronous != nullptr;
  lock.unlock();
  std::exception_ptr error;
  std::shared_ptr<Completion::Promise> promise;
  try {
    if (is_asynchronous) {
      promise = std::make_shared<Completion::Promise>(this, task);
      asynchronous(Completion(promise));
    } else {
      work();
    }
  } catch (...) {
    error = std::current_exception();
  }
  work = nullptr;   // its captures are destroyed here, without the lock
  asynchronous = nullptr;
  skipped = nullptr;
  if (error && promise) promise->end(error);
  promise.reset();
  lock.lock();
  mark_started(task);
  if (!is_asynchronous) complete(task, error ? failed(error) : nullptr);
}

void Engine::skip(const Task& task, const std::shared_ptr<Failure>& failure, Lock& lock) {
  task->stage = Stage::running;
  const auto work = std::move(task->work);
  const auto asynchronous = std::move(task->asynchronous_work);
  auto skipped = std::move(task->spec.skipped);
  task->spec.skipped = nullptr;
  lock.unlock();
  try {
    if (skipped) skipped(failure->error);
  } catch (...) {   // the task has failed already, for a better reason
  }
  skipped = nullptr;
  lock.lock();
  mark_started(task);
  complete(task, failure);
}

void Engine::mark_started(const Task& task) {
  task->started = true;
  release(task->follow_start);
}

void Engine::complete(const Task& task, std::shared_ptr<Failure> failure) {
  task->stage = Stage::complete;
  for (const Variable& variable : task->spec.write) variable->failure = failure;
  task->failure = std::move(failure);
  release(task->follow_completion);
  if (task->spec.keeps) trash_.push_back(std::move(task->spec.keeps));
  task->spec.read.clear();
  task->spec.write.clear();
  task->spec.sequence.reset();
  --unfinished_;
  if (task->awaited || (waiting_for_all_ > 0 && unfinished_ == 0)) completed_.notify_all();
}

void Engine::end(const Task& task, const std::exception_ptr& error) {
  Lock lock(mutex_);
  if (AtOnce::of(*this)) return complete(task, error ? failed(error) : nullptr);
  const AtOnce here(*this);
  complete(task, error ? failed(error) : nullptr);
  run_as_guest(lock);
}

void Engine::end_with(const Task& task, std::function<void()> work) {
  const Lock lock(mutex_);
  task->work = std::move(work);
  make_ready(task);
}

// Destroys without the lock what complete tasks have kept alive, and old errors.
void Engine::collect(Lock& lock) {
  if (trash_.empty() && !bin_->holds_some()) return;
  std::vector<std::shared_ptr<void>> trash = std::move(trash_);
  trash_.clear();
  lock.unlock();
  trash.clear();
  bin_->empty();
  lock.lock();
}

void Completion::done() const { promise_->end(nullptr); }
void Completion::failed(std::exception_ptr error) const { promise_->end(std::move(error)); }

void Completion::ends_with(std::function<void()> work) const {
  promise_->end_with(std::move(work));
}

void Completion::Promise::end_with(std::function<void()> work) {
  if (!ended.exchange(true)) engine->end_with(task, std::move(work));
}

void Completion::Promise::end(std::exception_ptr error) {
  if (!ended.exchange(true)) engine->end(task, error);
}

Completion::Promise::~Promise() {
  if (ended) return;
  end(std::make_exception_ptr(Error(
      Fault::internal, str("engine: task ", name_of(*task), " was given up before it was ended; ",
                           "asynchronous work must call done() or failed()."))));
}

std::shared_ptr<Failure> Engine::new_failure(std::exception_ptr error) const {
  return {new Failure{.error = std::move(error)},
          [bin = bin_](Failure* failure) { bin->add(failure); }};
}

std::shared_ptr<Failure> Engine::failed(std::exception_ptr error) {
  auto failure = new_failure(std::move(error));
  failure->birth = failures_++;
  if (untold_.size() < kMostUntold) untold_.push_back(failure);
  return failure;
}

// True if the task was pushed before a wait threw this failure.
bool Engine::applies(const Failure& failure, const TaskState& task) const {
  if (task.number >= failure.told) return false;
  return failure.birth >= told_failures_ || task.number < told_tasks_;
}

// Returns why the task cannot do its work: an operand's failure, or that it was cancelled.
std::shared_ptr<Failure> Engine::inherited(const TaskState& task) const {
  for (const auto* variables : {&task.spec.read, &task.spec.write})
    for (const Variable& variable : *variables)
      if (variable->failure && applies(*variable->failure, task)) return variable->failure;
  if (!task.cancelled && task.number >= cancelled_below_) return nullptr;
  const std::string why = task.cancelled || why_cancelled_.empty() ? "" : ": " + why_cancelled_;
  auto failure = new_failure(std::make_exception_ptr(   // its caller knows: no wait_all() throws it
      Error(Fault::usage, str("engine: task ", name_of(task), " was cancelled", why, "."))));
  failure->birth = failures_;
  return failure;
}

}  // namespace paceline::graph
