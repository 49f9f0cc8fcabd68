#include "unit/weak_memory.hpp"

#include <algorithm>
#include <deque>
#include <semaphore>
#include <thread>

namespace paceline::test {
namespace {

// Threads of the system, of which the one whose turn it is runs.
struct Turns {
  std::deque<std::binary_semaphore> go;
  std::vector<std::size_t> left;   // threads that have not ended
  std::binary_semaphore back{0};   // a thread has come to its first operation, or all have ended
};
thread_local Turns* turns = nullptr;
thread_local std::size_t self = 0;
thread_local bool has_begun = false;

void join(std::vector<std::size_t>& view, const std::vector<std::size_t>& other) {
  view.resize(std::max(view.size(), other.size()));
  for (std::size_t word = 0; word < other.size(); ++word)
    view[word] = std::max(view[word], other[word]);
}

bool acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
bool releases(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_acquire;
}

}  // namespace

int Memory::Choices::take(int among) {
  if (at_ == made_.size()) made_.push_back({0, among});
  return made_[at_++].taken;
}

bool Memory::Choices::next() {
  at_ = 0;
  while (!made_.empty() && made_.back().taken + 1 == made_.back().among) made_.pop_back();
  if (made_.empty()) return false;
  ++made_.back().taken;
  return true;
}

void Memory::run(std::vector<std::function<void()>> threads) {
  const View all(words_.size(), 0);
  threads_.assign(threads.size(), {all, all, all});
  Turns ours;
  std::vector<std::thread> running;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    ours.go.emplace_back(0);
    ours.left.push_back(i);
  }
  for (std::size_t i = 0; i < threads.size(); ++i) {
    running.emplace_back([&, i] {
      turns = &ours, self = i;
      threads[i]();
      std::erase(ours.left, i);
      if (!has_begun || ours.left.empty()) ours.back.release();
      else ours.go[choose(ours.left)].release();
    });
    ours.back.acquire();
  }
  if (!ours.left.empty()) {
    ours.go[choose(ours.left)].release();
    ours.back.acquire();
  }
  for (std::thread& thread : running) thread.join();
}

std::size_t Memory::choose(const std::vector<std::size_t>& left) {
  return left[std::size_t(choices_.take(int(left.size())))];
}

void Memory::turn() {
  if (!has_begun) {
    has_begun = true;
    turns->back.release();
  } else if (const std::size_t next = choose(turns->left); next != self) {
    turns->go[next].release();
  } else {
    return;
  }
  turns->go[self].acquire();
}

int Memory::make(std::uint64_t value) {
  words_.push_back({{value, {}}});
  return int(words_.size()) - 1;
}

std::uint64_t Memory::load(int word, std::memory_order order) {
  turn();
  Thread& thread = threads_[self];
  std::size_t& oldest = thread.now[std::size_t(word)];
  const std::vector<Stored>& values = words_[std::size_t(word)];
  oldest += std::size_t(choices_.take(int(values.size() - oldest)));
  const Stored& found = values[oldest];
  join(thread.to_acquire, found.view);
  if (acquires(order)) join(thread.now, found.view);
  return found.value;
}

void Memory::store(int word, std::uint64_t value, std::memory_order order) {
  turn();
  Thread& thread = threads_[self];
  std::vector<Stored>& values = words_[std::size_t(word)];
  thread.now[std::size_t(word)] = values.size();
  View view = releases(order) ? thread.now : thread.released;
  view[std::size_t(word)] = values.size();
  values.push_back({value, std::move(view)});
}

void Memory::fence(std::memory_order order) {
  turn();
  fence(threads_[self], order);
}

void Memory::fence_all() {
  turn();
  for (Thread& thread : threads_) fence(thread, std::memory_order_seq_cst);
  fence(threads_[self], std::memory_order_seq_cst);   // after all of theirs
}

void Memory::fence(Thread& thread, std::memory_order order) {
  if (acquires(order)) join(thread.now, thread.to_acquire);
  if (order == std::memory_order_seq_cst) {
    join(thread.now, fenced_);
    fenced_ = thread.now;
  }
  if (releases(order)) thread.released = thread.now;
}

long explore(const std::function<bool(Memory&)>& program) {
  Memory::Choices choices;
  for (long executions = 1;; ++executions) {
    Memory memory(choices);
    if (!program(memory) || !choices.next()) return executions;
  }
}

}  // namespace paceline::test
