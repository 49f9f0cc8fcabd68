// A small exhaustive checker of programs of two or three threads under C++'s memory model: it runs
// them in every interleaving, and lets every load find every value that the model lets it find.
//
//   explore([&](Memory& memory) {
//     Word x(memory), y(memory);
//     memory.run({[&] { x.store(1, relaxed); }, [&] { seen = x.load(relaxed); }});
//     return seen < 2;                 // true: try the next execution
//   });
//
// The model is that of views: a word keeps all the values that were stored, in order; each thread
// has a view, the oldest value of each word that it may still find; a store takes a view along, and
// a load that acquires joins it. Sequentially consistent fences pass one view on. Left out: words
// that several threads store to, read-modify-writes, stores that a thread makes ahead of its loads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace paceline::test {

class Memory {
 public:
  // Decisions of a run; explore() tries all of them.
  class Choices {
   public:
    int take(int among);
    bool next();   // true if there is another run
   private:
    struct Choice { int taken, among; };
    std::vector<Choice> made_;
    std::size_t at_ = 0;
  };

  explicit Memory(Choices& choices) : choices_(choices) {}

  // Runs these to their ends, an operation at a time.
  void run(std::vector<std::function<void()>> threads);

  int make(std::uint64_t value);   // returns the number of a new word that all have seen
  std::uint64_t load(int word, std::memory_order order);
  void store(int word, std::uint64_t value, std::memory_order order);
  void fence(std::memory_order order);
  void fence_all();   // like membarrier: a fence in every thread, wherever it is

 private:
  using View = std::vector<std::size_t>;   // word -> the oldest of its values that may be found
  struct Stored { std::uint64_t value; View view; };
  struct Thread { View now, to_acquire, released; };

  void turn();   // lets others run before the next operation
  std::size_t choose(const std::vector<std::size_t>& left);   // whose turn it is
  void fence(Thread& thread, std::memory_order order);

  Choices& choices_;
  std::vector<std::vector<Stored>> words_;
  std::vector<Thread> threads_;
  View fenced_;   // by sequentially consistent fences
};

// A word of that memory, as std::atomic<std::uint64_t>.
class Word {
 public:
  explicit Word(Memory& memory, std::uint64_t value = 0)
      : memory_(&memory), number_(memory.make(value)) {}
  std::uint64_t load(std::memory_order order) const { return memory_->load(number_, order); }
  void store(std::uint64_t value, std::memory_order order) {
    memory_->store(number_, value, order);
  }

 private:
  Memory* memory_;
  int number_;
};

// Calls `program` for each execution as long as it returns true; returns the number of executions.
long explore(const std::function<bool(Memory&)>& program);

}  // namespace paceline::test
