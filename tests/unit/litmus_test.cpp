// The fences of shared memory, in all orders that the language allows (weak_memory.hpp): this
// machine keeps more order than they require, so that a run of the ranks would not miss one.
#include <doctest/doctest.h>

#include <optional>

#include "engine/shm/call_stamp.hpp"
#include "unit/weak_memory.hpp"

namespace paceline::test {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed, kAcquire = std::memory_order_acquire,
               kRelease = std::memory_order_release, kBoth = std::memory_order_seq_cst;

// A flag line of the memory under test, and a fence that a mutant leaves out.
struct Line {
  Memory* memory;
  std::optional<std::memory_order> without;
  Word turn, what, count, past;
};

void fence(const Line& line, std::memory_order order) {
  if (order != line.without) line.memory->fence(order);
}

CallStamp stamp_of(std::uint64_t call) { return {{10 * call, 100 * call}, 1000 * call}; }

struct Stamps { long executions = 0, whole = 0, torn = 0; };

// A peer reads the stamp of a call, 1 or 3, while the line's owner goes on from one to the other.
// Ends with the first that is torn.
Stamps read_stamps(std::uint64_t call, std::optional<std::memory_order> without = {}) {
  Stamps found;
  found.executions = explore([&](Memory& memory) {
    const CallStamp one = stamp_of(1);
    Line line{&memory, without, Word(memory, turn_of(1, 1)), Word(memory, one.fingerprint.what),
              Word(memory, one.fingerprint.count), Word(memory, one.past)};
    std::optional<CallStamp> read;
    memory.run({[&] {
                  show(line, 3, stamp_of(3));
                  line.turn.store(turn_of(3, 0), kRelease);
                },
                [&] { read = whole_stamp_in(line, call); }});
    if (read) ++(*read == stamp_of(call) ? found.whole : found.torn);
    return found.torn == 0;
  });
  return found;
}

// One thread stores and checks if the other sleeps; the other announces sleep and checks the store.
enum class Fences { both, light, none_of_storer, none_of_sleeper };

long lost_wakes(Fences fences) {
  long lost = 0;
  explore([&](Memory& memory) {
    Word stored(memory), asleep(memory);
    bool sees_sleeper = false, sees_word = false;
    memory.run({[&] {
                  stored.store(1, kRelease);
                  if (fences == Fences::both || fences == Fences::none_of_sleeper)
                    memory.fence(kBoth);
                  sees_sleeper = asleep.load(kRelaxed) == 1;
                },
                [&] {
                  asleep.store(1, kRelaxed);
                  if (fences != Fences::none_of_sleeper) memory.fence(kBoth);
                  if (fences == Fences::light) memory.fence_all();
                  sees_word = stored.load(kAcquire) == 1;
                }});
    lost += !sees_sleeper && !sees_word;
    return true;
  });
  return lost;
}

}  // namespace

TEST_CASE("litmus: a stamp that is taken for a call's is that call's, and whole") {
  for (const std::uint64_t call : {1, 3}) {
    const Stamps found = read_stamps(call);
    MESSAGE(found.executions, " executions; ", found.whole, " read it");
    CHECK(found.whole > 0);
    CHECK(found.torn == 0);
  }
}

TEST_CASE("mutants: a stamp shown, or read, without its fence") {
  CHECK(read_stamps(1, kRelease).torn > 0);
  CHECK(read_stamps(1, kAcquire).torn > 0);
}

TEST_CASE("litmus: who falls asleep sees what was stored, or is seen") {
  CHECK(lost_wakes(Fences::both) == 0);
  CHECK(lost_wakes(Fences::light) == 0);   // the sleeper's membarrier is the storer's fence
}

TEST_CASE("mutants: one who stores, or falls asleep, without a fence") {
  CHECK(lost_wakes(Fences::none_of_storer) > 0);
  CHECK(lost_wakes(Fences::none_of_sleeper) > 0);
}

// The checker itself, by the outcomes that the standard allows and forbids.
TEST_CASE("weak memory: messages arrive with what was stored before, if both sides ask for it") {
  for (const bool releases : {false, true})
    for (const bool acquires : {false, true}) {
      long stale = 0, fresh = 0;
      explore([&](Memory& memory) {
        Word data(memory), flag(memory);
        std::uint64_t seen = 9;
        memory.run({[&] {
                      data.store(1, kRelaxed);
                      flag.store(1, releases ? kRelease : kRelaxed);
                    },
                    [&] {
                      if (flag.load(acquires ? kAcquire : kRelaxed) == 1)
                        seen = data.load(kRelaxed);
                    }});
        stale += seen == 0;
        fresh += seen == 1;
        return true;
      });
      CHECK(fresh > 0);
      CHECK((stale == 0) == (releases && acquires));
    }
}

TEST_CASE("weak memory: two loads of a word never go back, those of two words may") {
  long back = 0, crossed = 0;
  explore([&](Memory& memory) {
    Word x(memory), y(memory);
    std::uint64_t first = 0, second = 0, other = 0;
    memory.run({[&] { x.store(1, kRelaxed), y.store(1, kRelaxed); },
                [&] {
                  other = y.load(kRelaxed), first = x.load(kRelaxed), second = x.load(kRelaxed);
                }});
    back += first == 1 && second == 0;
    crossed += other == 1 && first == 0;
    return true;
  });
  CHECK(back == 0);
  CHECK(crossed > 0);
}

}  // namespace paceline::test
