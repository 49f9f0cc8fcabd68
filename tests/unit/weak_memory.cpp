#include "unit/weak_memory.hpp"

#include <algorithm>
#include <memory>
#include <semaphore>
#include <thread>

namespace paceline::test {
namespace {

// Threads of the system, of which only the holder of the baton runs.
struct Baton {
  std::binary_semaphore back{0};
  std::vector<std::unique_ptr<std::binary_semaphore>> go;
};
thread_local Baton* baton = nullptr;
thread_local std::size_t self = 0;

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
  Baton ours;
  std::vector<std::thread> running;
  std::vector<std::size_t> left;
  std::vector<char> has_ended(threads.size());
  for (std::size_t i = 0; i < threads.size(); ++i) {
    ours.go.push_back(std::make_unique<std::binary_semaphore>(0));
    left.push_back(i);
  }
  for (std::size_t i = 0; i < threads.size(); ++i)
    running.emplace_back([&, i] {
      baton = &ours, self = i;
      ours.go[i]->acquire();
      threads[i]();
      has_ended[i] = true;
      ours.back.release();
    });
  while (!left.empty()) {
    const auto chosen = left.begin() + choices_.take(int(left.size()));
    ours.go[*chosen]->release();
    ours.back.acquire();
    if (has_ended[*chosen]) left.erase(chosen);
  }
  for (std::thread& thread : running) thread.join();
}

void Memory::turn() {
  baton->back.release();
  baton->go[self]->acquire();
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
