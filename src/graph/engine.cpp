#include "graph/engine.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/error.hpp"

namespace paceline::graph {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(50);   // between looks of a waiting thread
constexpr std::size_t kFewReaders = 32;   // of a variable, before complete ones are looked for

}  // namespace

Engine::Engine(const Threads& threads) : process_(getpid()) {
  const int wanted[kPools] = {threads.compute, threads.copy, threads.communication};
  static constexpr const char* kNames[kPools] = {"compute", "copy", "communication"};
  for (int pool = 0; pool < kPools; ++pool)
    if (wanted[pool] < 1)
      fail(Fault::usage, "engine: ", wanted[pool], " threads for the pool '", kNames[pool],
           "'; each pool needs at least 1.");
  try {
    for (int pool = 0; pool < kPools; ++pool)
      for (int i = 0; i < wanted[pool]; ++i) {
        threads_.emplace_back([this, pool] { serve(static_cast<Pool>(pool)); });
        pthread_setname_np(threads_.back().native_handle(),
                           str("pl-", kNames[pool]).substr(0, 15).c_str());
      }
  } catch (const std::exception& error) {   // those that were made must end
    const std::size_t made = threads_.size();
    end_threads(std::move(threads_));
    fail(Fault::resource, "engine: after ", made, " threads no other can be made: ", error.what(),
         "; ask for fewer, or raise the limit on this user's processes or memory.");
  }
}

void Engine::end_threads(std::vector<std::thread> threads) {
  {
    const Lock lock(mutex_);
    stop_ = true;
  }
  for (Ready& ready : ready_) ready.arrived.notify_all();
  for (std::thread& thread : threads) thread.join();
}

template <class Done>
void Engine::wait_until(Lock& lock, Idle idle, const Done& done) {
  while (!done()) {
    if (!idle) {
      completed_.wait(lock);
      continue;
    }
    completed_.wait_for(lock, kBetweenLooks);
    lock.unlock();
    idle();
    lock.lock();
  }
}

Engine::~Engine() {
  if (!is_here()) {   // a forked child has none of the threads and must not wait for them
    for (std::thread& thread : threads_) thread.detach();
    for (Ready& ready : ready_) new (&ready.arrived) std::condition_variable;
    new (&completed_) std::condition_variable;
    return;
  }
  try {
    close();
  } catch (...) {   // a caller that wants the error calls close()
  }
}

void Engine::close(Idle idle) {
  if (!is_here()) return;   // the parent completes the pushed tasks
  check_caller("close()");
  {
    const Lock lock(mutex_);
    ++closing_;
  }
  std::exception_ptr error;
  try {
    wait_all(idle);
  } catch (...) {
    error = std::current_exception();
  }
  std::vector<std::thread> threads;   // where several threads close, the first one ends them
  {
    const Lock lock(mutex_);
    --closing_;
    if (unfinished_ > 0) std::rethrow_exception(error);   // `idle` has ended the wait
    closed_ = true;
    threads.swap(threads_);
  }
  const bool is_first = !threads.empty();
  if (is_first) end_threads(std::move(threads));
  {
    Lock lock(mutex_);
    if (is_first) ended_ = true;
    completed_.notify_all();
    wait_until(lock, nullptr, [&] { return ended_ && guests_ == 0; });
    collect(lock);
  }
  if (error) std::rethrow_exception(error);
}

bool Engine::is_closed() const {
  if (!is_here()) return true;
  const Lock lock(mutex_);
  return closed_;
}

Variable Engine::variable(std::string name) {
  auto variable = std::make_shared<VariableState>();
  variable->engine = this;
  variable->name = std::move(name);
  return variable;
}

Sequence Engine::sequence() {
  auto sequence = std::make_shared<SequenceState>();
  sequence->engine = this;
  return sequence;
}

Task Engine::push(std::function<void()> work, TaskSpec spec) {
  auto task = std::make_shared<TaskState>();
  task->work = std::move(work);
  task->spec = std::move(spec);
  return add(std::move(task));
}

Task Engine::push_asynchronous(std::function<void(Completion)> work, TaskSpec spec) {
  auto task = std::make_shared<TaskState>();
  task->asynchronous_work = std::move(work);
  task->spec = std::move(spec);
  return add(std::move(task));
}

// Throws a usage error if the task cannot be pushed here, before anything is changed.
void Engine::check(const TaskSpec& spec) const {
  check_process();
  const auto is_ours = [&](const Variable& variable) {
    if (!variable) fail(Fault::usage, "engine: a task names no variable where it should name one.");
    if (variable->engine != this)
      fail(Fault::usage, "engine: variable '", variable->name, "' belongs to another engine; ",
           "tasks use the variables of their own.");
  };
  for (const Variable& variable : spec.read) is_ours(variable);
  for (const Variable& variable : spec.write) is_ours(variable);
  if (spec.sequence && spec.sequence->engine != this)
    fail(Fault::usage, "engine: a task's sequence belongs to another engine.");
}

void Engine::check_process() const {
  if (!is_here())
    fail(Fault::usage, "engine: a fork of the process that made it has none of its threads; make a "
                       "new engine here.");
}

void Engine::check_caller(const char* what) const {
  check_process();
  if (is_in_task())
    fail(Fault::usage, "engine: ", what, " inside of a task, which could wait for itself; push a ",
         "task that reads what it should wait for.");
}

Task Engine::add(Task task) {
  check(task->spec);
  task->engine = this;
  Lock lock(mutex_);
  if (closed_ || (closing_ > 0 && !is_in_task()))
    fail(Fault::usage, "engine: it is ", closed_ ? "closed" : "being closed",
         "; push tasks before close().");
  task->number = pushed_++;
  ++unfinished_;
  for (const Variable& variable : task->spec.read) depend(task, variable, Use::read);
  for (const Variable& variable : task->spec.write) depend(task, variable, Use::write);
  if (const Sequence& sequence = task->spec.sequence) {
    if (sequence->last && !sequence->last->started) {
      sequence->last->follow_start.push_back(task);
      ++task->waits_for;
    }
    sequence->last = task;
  }
  if (task->waits_for == 0) start_or_queue(task, lock);
  collect(lock);
  return task;
}

void Engine::depend(const Task& task, const Variable& variable, Use kind) {
  std::vector<Task>& readers = variable->cell.readers;
  // A variable that is often read and never written must not keep all its readers.
  if (kind == Use::read && readers.size() >= kFewReaders &&
      readers.size() == readers.capacity())
    std::erase_if(readers, [](const Task& reader) { return reader->stage == Stage::complete; });
  access(variable->cell, task, kind, [&](const Task& earlier) { follow(task, earlier); });
}

// A closed engine is not at rest, so that the caller uses push(), which throws.
bool Engine::are_at_rest(const std::vector<Variable>& read,
                         const std::vector<Variable>& write) const {
  const auto is_complete = [](const Task& task) { return task->stage == Stage::complete; };
  const auto is_written = [&](const Variable& variable) {
    return variable->engine == this && !variable->failure &&
           (!variable->cell.writer || is_complete(*variable->cell.writer));
  };
  const auto is_free = [&](const Variable& variable) {
    return is_written(variable) && std::ranges::all_of(variable->cell.readers, is_complete);
  };
  return is_here() && !closed_ && closing_ == 0 && std::ranges::all_of(read, is_written) &&
         std::ranges::all_of(write, is_free);
}

void Engine::follow(const Task& task, const Task& earlier) {
  if (earlier->stage == Stage::complete) return;
  earlier->follow_completion.push_back(task);
  ++task->waits_for;
}

void Engine::wait_locked(const Task& task, Lock& lock, Idle idle) {
  task->awaited = true;
  wait_until(lock, idle, [&] { return task->stage == Stage::complete; });
  collect(lock);
  if (!task->failure) return;
  task->failure->told = std::min(task->failure->told, pushed_);
  std::erase(untold_, task->failure);
  const std::exception_ptr error = task->failure->error;
  lock.unlock();
  std::rethrow_exception(error);
}

void Engine::wait(const Task& task, Idle idle) {
  if (task->engine != this) fail(Fault::usage, "engine: wait() for a task of another engine.");
  check_caller("wait()");
  Lock lock(mutex_);
  wait_locked(task, lock, idle);
}

void Engine::wait(const Variable& variable, Idle idle) {
  check({.read = {variable}});
  check_caller("wait()");
  Lock lock(mutex_);
  if (const auto writer = variable->cell.writer) wait_locked(*writer, lock, idle);
}

void Engine::wait_all(Idle idle) {
  check_caller("wait()");
  Lock lock(mutex_);
  ++waiting_for_all_;
  try {
    wait_until(lock, idle, [&] { return unfinished_ == 0; });
  } catch (...) {
    const Lock again(mutex_);
    --waiting_for_all_;
    throw;
  }
  --waiting_for_all_;
  collect(lock);
  told_failures_ = failures_;
  told_tasks_ = pushed_;
  if (untold_.empty()) return;
  const std::exception_ptr error = untold_.front()->error;
  untold_.clear();
  lock.unlock();
  std::rethrow_exception(error);
}

bool Engine::settles(std::chrono::milliseconds limit, Idle idle) {
  if (!is_here()) return true;
  check_caller("wait()");
  const auto until = std::chrono::steady_clock::now() + limit;
  const auto is_over = [&] {
    return unfinished_ == 0 || std::chrono::steady_clock::now() >= until;
  };
  for (Lock lock(mutex_); !is_over(); lock.lock()) {
    completed_.wait_for(lock, kBetweenLooks);
    lock.unlock();
    if (idle) idle();
  }
  return unfinished() == 0;
}

bool Engine::is_complete(const Task& task) const {
  check_process();
  const Lock lock(mutex_);
  return task->stage == Stage::complete;
}

std::exception_ptr Engine::error(const Task& task) const {
  check_process();
  const Lock lock(mutex_);
  return task->failure ? task->failure->error : nullptr;
}

bool Engine::cancel(const Task& task) {
  if (!is_here()) return false;
  const Lock lock(mutex_);
  if (task->stage != Stage::waiting) return false;
  task->cancelled = true;
  return true;
}

void Engine::cancel_all(std::string why) {
  if (!is_here()) return;
  const Lock lock(mutex_);
  cancelled_below_ = pushed_;
  why_cancelled_ = std::move(why);
}

std::size_t Engine::unfinished() const {
  if (!is_here()) return 0;
  const Lock lock(mutex_);
  return unfinished_;
}

}  // namespace paceline::graph
