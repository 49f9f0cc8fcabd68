// The part of the emulation that runs enqueued work.
#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "device/emulation.hpp"

namespace paceline::device {
namespace {

constexpr std::size_t kLongestDelayUs = 50;
constexpr std::chrono::microseconds kLookAgain{50};   // at words

}  // namespace

bool Emulation::can_run(const Queue& queue) const {
  if (queue.busy || queue.tasks.empty()) return false;
  const Task& head = queue.tasks.front();
  if (head.word) return has_reached(head.word->load(std::memory_order_acquire), head.value);
  return !head.waits || head.record->done;
}

void Emulation::run_head(Queue& queue, Lock& lock) {
  const Task task = std::move(queue.tasks.front());
  queue.tasks.pop_front();
  if (task.word) return;
  if (!task.run) {
    pass(queue, task);
    if (!task.waits) tell(*task.record);
    return;
  }
  for (int device : task.touches)
    if (device != kHost && lost_[static_cast<std::size_t>(device)])
      queue.failure = str("device ", device, " has gone");
  // Work after a failure does nothing, except writes of words, for which others wait.
  if (!queue.failure.empty() && !task.touches.empty()) return;
  queue.busy = true;
  const std::size_t delay_us =
      options_.threads && !task.touches.empty() ? random_.below(kLongestDelayUs) : 0;
  lock.unlock();
  if (delay_us > kLongestDelayUs / 2)
    std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
  if (options_.moves || task.touches.empty()) task.run();
  lock.lock();
  queue.busy = false;
}

// A failure passes from the stream to the event recorded on it, and on to streams that wait for it.
void Emulation::pass(Queue& queue, const Task& task) {
  if (task.waits) {
    if (queue.failure.empty()) queue.failure = task.record->failure;
    return;
  }
  task.record->done = true;
  task.record->failure = queue.failure;
}

// Wakes the streams whose next step waits for the record, and the host.
void Emulation::tell(const Record& record) {
  for (auto& [name, queue] : queues_)
    if (!queue->tasks.empty() && queue->tasks.front().record.get() == &record)
      queue->awakened.notify_one();
  passed_.notify_all();
}

// Runs one step of any stream that can go on; returns true if there was one.
bool Emulation::run_any(Lock& lock) {
  std::vector<Queue*> ready;
  for (auto& [name, queue] : queues_)
    if (can_run(*queue)) ready.push_back(queue.get());
  if (ready.empty()) return false;
  run_head(*ready[random_.below(ready.size())], lock);
  return true;
}

// True if another thread does a task, or a stream waits for a word, whose change this process does
// not learn of.
bool Emulation::others_go_on() const {
  return std::any_of(queues_.begin(), queues_.end(), [](const auto& named) {
    const Queue& queue = *named.second;
    return queue.busy || (!queue.tasks.empty() && queue.tasks.front().word);
  });
}

bool Emulation::look_again(Lock& lock) {
  if (!others_go_on()) return false;
  lock.unlock();
  std::this_thread::sleep_for(kLookAgain);
  lock.lock();
  return true;
}

void Emulation::serve(Queue& queue) {
  Lock lock(mutex_);
  while (!stop_ && !queue.ended) {
    if (can_run(queue))
      run_head(queue, lock);
    else if (!queue.tasks.empty() && queue.tasks.front().word)
      queue.awakened.wait_for(lock, kLookAgain);
    else
      queue.awakened.wait(lock);
    if (queue.tasks.empty()) passed_.notify_all();
  }
}

bool Emulation::is_done(Event event) {
  Lock lock(mutex_);
  const std::shared_ptr<Record> record = state(event).record;
  if (!record) return true;
  if (!options_.threads && !record->done) run_any(lock);
  throw_failure(*record);
  return record->done;
}

void Emulation::poll(Event event) {
  Lock lock(mutex_);
  if (!options_.threads) run_any(lock);
  if (const auto& record = state(event).record) throw_failure(*record);
}

void Emulation::synchronize(Event event) {
  Lock lock(mutex_);
  const std::shared_ptr<Record> record = state(event).record;
  while (record && !record->done) {
    if (options_.threads) passed_.wait(lock);
    else if (!run_any(lock) && !look_again(lock))
      fail(Fault::internal, "device: an event is waited for that no stream reaches: what is "
                            "enqueued waits for itself");
  }
  if (record) throw_failure(*record);
}

// Throws the record's failure. Streams of the other devices go on afterwards.
void Emulation::throw_failure(const Record& record) {
  const std::string failure = record.failure;
  if (failure.empty()) return;
  for (auto& [name, queue] : queues_) queue->failure.clear();
  for (auto& [name, event] : events_)
    if (event.record) event.record->failure.clear();
  fail(Fault::lost, "device: ", failure, "; what was enqueued has not been done. Make a group of "
       "the others.");
}

}  // namespace paceline::device
