// Engine: runs tasks in pools of threads, in an order that their reads and writes allow.
//
// The caller of push() names the variables that a task reads and writes; it does not wait. A task
// runs when all earlier tasks that it conflicts with are complete (base/hazard.hpp). A task that
// throws fails, and so do the tasks that read or write what it should have written; the caller gets
// the error from the next wait. Tasks that are pushed after that wait may use the variables again.
//
// Any thread may call; tasks may push tasks, but may not wait for them. In a child of fork() an
// engine of the parent throws a usage error, or reports that it has no tasks.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "graph/task.hpp"

namespace paceline::graph {

// Number of threads of each pool.
struct Threads {
  int compute = 1;
  int copy = 1;
  int communication = 1;
};

class Engine {
 public:
  // Called by a waiting thread every 50 ms, without a lock; what it throws ends the wait.
  using Idle = void (*)();

  explicit Engine(const Threads& threads);   // at least 1 of each: else a usage error
  ~Engine();                                 // completes what has been pushed
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Variable variable(std::string name = {});
  Sequence sequence();

  // The task is complete when `work` returns, or has failed when it throws. Both kinds of push
  // throw a usage error after close(), or for variables of another engine.
  Task push(std::function<void()> work, TaskSpec spec);
  // `work` starts an activity and returns; the task is complete once its Completion ends it.
  Task push_asynchronous(std::function<void(Completion)> work, TaskSpec spec);

  // Does short work on this thread, under the engine's lock and without a task: returns true. Only
  // if no task that conflicts with it is unfinished, and the last writers of these variables have
  // not failed; else it does nothing and returns false. `work` must not call the engine.
  template <class Work>
  bool do_now(const std::vector<Variable>& read, const std::vector<Variable>& write,
              const Work& work) {
    const Lock lock(mutex_);
    if (!are_at_rest(read, write)) return false;
    work();
    return true;
  }

  // Waits until the task is complete; throws its error.
  void wait(const Task& task, Idle idle = nullptr);
  // Waits until the task that was pushed last to write the variable is complete, and so all earlier
  // ones; throws its error.
  void wait(const Variable& variable, Idle idle = nullptr);
  // Waits until no task is unfinished; throws the first error that no wait has thrown.
  void wait_all(Idle idle = nullptr);

  bool is_complete(const Task& task) const;
  std::exception_ptr error(const Task& task) const;   // of a complete task; null: none
  // Cancels a task that has not started: it will not run, and tasks that depend on it fail with a
  // usage error. Returns true if it had not started.
  bool cancel(const Task& task);
  void cancel_all(std::string why = {});   // the reason, for tasks that depend on these
  std::size_t unfinished() const;   // tasks
  // True if the caller is a thread of one of its pools, or runs one of its at_once tasks.
  bool is_in_task() const;

  // Waits about that long for all tasks (it looks every 50 ms); returns true if they are complete.
  // Throws what `idle` throws, but not the errors of tasks.
  bool settles(std::chrono::milliseconds limit, Idle idle = nullptr);

  // Completes all pushed tasks and ends the threads; from the call on only tasks in its own threads
  // can push. If `idle` throws while a task is unfinished, the engine stays open. Throws like
  // wait_all(), with the threads ended.
  void close(Idle idle = nullptr);
  bool is_closed() const;
  // True if this process made it. A forked child has none of its threads and cannot use it; it must
  // not destroy it if they may have been at work during the fork.
  bool is_here() const { return getpid() == process_; }

 private:
  friend class Completion;
  class AtOnce;
  using Lock = std::unique_lock<std::mutex>;

  struct Ready {   // tasks that the threads of a pool may run
    std::vector<Task> heap;   // the most urgent first, of equals the oldest
    std::atomic<std::size_t> count{0};   // of the heap, to look at without the lock
    std::condition_variable arrived;
    int sleeping = 0;   // threads of the pool that wait for it
  };

  // The functions below require mutex_, except add(), the checks, serve(), end() and end_with().
  // Those that take a Lock& release it while they run code outside of the engine.
  Task add(Task task);
  void check(const TaskSpec& spec) const;
  void check_process() const;
  void check_caller(const char* what) const;
  bool are_at_rest(const std::vector<Variable>& read, const std::vector<Variable>& write) const;
  void depend(const Task& task, const Variable& variable, Use kind);
  void follow(const Task& task, const Task& earlier);
  void make_ready(const Task& task);
  void release(std::vector<Task>& followers);

  void end_threads(std::vector<std::thread> threads);   // without the lock
  void serve(Pool pool);   // a thread of the pool
  Task next(Ready& ready, Lock& lock);
  void run_or_skip(const Task& task, Lock& lock);
  void run_at_once(Lock& lock);    // tasks that this thread has made ready and runs itself
  void run_as_guest(Lock& lock);   // the same in a thread that is not of a pool
  void start_or_queue(const Task& task, Lock& lock);   // a task whose predecessors are done
  void run(const Task& task, Lock& lock);
  void skip(const Task& task, const std::shared_ptr<Failure>& failure, Lock& lock);
  void mark_started(const Task& task);
  void complete(const Task& task, std::shared_ptr<Failure> failure);   // null: no failure
  void end(const Task& task, const std::exception_ptr& error);   // an asynchronous task
  void end_with(const Task& task, std::function<void()> work);
  void collect(Lock& lock);   // destroys, without the lock, what trash_ and bin_ hold

  std::shared_ptr<Failure> new_failure(std::exception_ptr error) const;
  std::shared_ptr<Failure> failed(std::exception_ptr error);   // a new one, for a wait to throw
  std::shared_ptr<Failure> inherited(const TaskState& task) const;   // null: it may run
  bool applies(const Failure& failure, const TaskState& task) const;
  void wait_locked(const Task& task, Lock& lock, Idle idle);
  template <class Done>
  void wait_until(Lock& lock, Idle idle, const Done& done);

  const int process_;   // id of the process that made it
  mutable std::mutex mutex_;
  std::array<Ready, kPools> ready_;
  std::condition_variable completed_;
  int waiting_for_all_ = 0;             // threads in wait_all()
  std::uint64_t pushed_ = 0;            // tasks, so far
  std::uint64_t cancelled_below_ = 0;   // cancel_all() means tasks with lower numbers
  std::string why_cancelled_;           // the reason of cancel_all()
  std::size_t unfinished_ = 0;          // tasks that were pushed and are not complete
  std::uint64_t failures_ = 0;          // so far; numbers them (Failure::birth)
  std::vector<std::shared_ptr<Failure>> untold_;       // that no wait has thrown
  std::uint64_t told_failures_ = 0, told_tasks_ = 0;   // as they were at the last wait_all()
  std::vector<std::shared_ptr<void>> trash_;   // TaskSpec::keeps of complete tasks
  const std::shared_ptr<Bin> bin_ = std::make_shared<Bin>();
  int closing_ = 0;   // threads in close()
  int guests_ = 0;    // threads in run_as_guest()
  bool closed_ = false;   // close() has got so far that nothing can be pushed
  bool stop_ = false;     // the threads are to end
  bool ended_ = false;    // and have
  std::vector<std::thread> threads_;
};

}  // namespace paceline::graph
