// Ranks that have met agree which lines of their stages are near, or to leave that be.
#include "engine/nearest.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <vector>

using namespace paceline;

namespace {

using Lines = std::optional<std::pair<int, int>>;

// Whoever asks lets others run: there may be more ranks than processors.
double now_s() {
  std::this_thread::yield();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Goes on only when it is asked.
struct Clock {
  double s = 0, tick_s = 1e-7;
  double operator()() {
    std::this_thread::yield();
    return s += tick_s;
  }
};

class Ranks {
 public:
  explicit Ranks(int count) {
    for (int rank = 0; rank < count; ++rank) {
      memory_.push_back(std::make_unique<Page[]>(Stage::kHead / sizeof(Page)));
      Stage stage;
      stage.memory = memory_.back()[0].bytes;
      stages.push_back(stage);
    }
  }
  // What each rank takes.
  std::vector<Lines> pass(const std::function<Passing(int)>& how) const {
    std::vector<Lines> found(stages.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < static_cast<int>(stages.size()); ++rank)
      threads.emplace_back(
          [&, rank] { found[std::size_t(rank)] = nearest_lines(stages, rank, how(rank)); });
    for (std::thread& thread : threads) thread.join();
    return found;
  }
  std::vector<Stage> stages;

 private:
  struct alignas(4096) Page {
    std::byte bytes[4096] = {};
  };
  std::vector<std::unique_ptr<Page[]>> memory_;
};

void yield(int) { std::this_thread::yield(); }

}  // namespace

TEST_CASE("nearest: all ranks take the same two lines, by what all of them have found") {
  for (int count : {2, 3, 5}) {
    const Ranks ranks(count);
    const auto found = ranks.pass([](int) {
      return Passing{.most_s = 60, .now_s = now_s, .late = yield};
    });
    REQUIRE(found[0]);
    const auto [first, second] = *found[0];
    CHECK(first != second);
    for (const Lines& lines : found) CHECK(lines == found[0]);
    std::array<std::uint64_t, StageBallot::kLines> total{};
    for (const Stage& stage : ranks.stages)
      for (std::size_t line = 0; line < total.size(); ++line)
        total[line] += stage.ballot().ns[line];
    for (std::size_t line = 0; line < total.size(); ++line) {
      CHECK(total[std::size_t(first)] <= total[line]);
      if (int(line) != first) CHECK(total[std::size_t(second)] <= total[line]);
    }
    for (const Stage& stage : ranks.stages)   // no line looks as if it showed a call
      for (std::size_t line = 0; line < total.size(); ++line)
        CHECK(stage.line_at(line * Stage::kApart).turn == 0);
  }
}

TEST_CASE("nearest: a rank that would not wait keeps all from it") {
  const Ranks ranks(3);
  for (const Lines& lines : ranks.pass([](int rank) {
         return Passing{.willing = rank != 1, .most_s = 60, .now_s = now_s, .late = yield};
       }))
    CHECK(!lines);
  const Ranks many(9);   // no line is near to all of so many
  for (const Lines& lines : many.pass([](int) { return Passing{.now_s = now_s, .late = yield}; }))
    CHECK(!lines);
}

TEST_CASE("nearest: who takes too long ends it for all, and nobody hangs") {
  for (int slow : {0, 1, 2}) {
    const Ranks ranks(3);
    for (const Lines& lines : ranks.pass([&](int rank) {
           return Passing{.most_s = 60, .now_s = Clock{.tick_s = rank == slow ? 1 : 1e-7},
                          .late = yield};
         }))
      CHECK(!lines);
  }
}

TEST_CASE("nearest: who waits for a rank that does not come is told which") {
  const Ranks ranks(2);
  int asked = 0;
  const auto give_up = [&](int position) {
    CHECK(position == 1);
    if (++asked == 3) throw std::runtime_error("late");
  };
  CHECK_THROWS_WITH(nearest_lines(ranks.stages, 0, {.now_s = now_s, .late = give_up}), "late");
}

TEST_CASE("nearest: waiting for a rank that comes late is not passing lines to and fro") {
  const Ranks ranks(2);
  std::atomic<int> s = 0;   // of a clock that goes on only while rank 0 waits for the other
  const auto now = [&] {
    std::this_thread::yield();
    return double(s.load());
  };
  std::thread other([&] {
    while (s == 0) std::this_thread::yield();
    CHECK(nearest_lines(ranks.stages, 1, {.most_s = 60, .now_s = now_s, .late = yield}));
  });
  const Passing how{.most_s = 0.5, .now_s = now, .late = [&](int) {
                      if (ranks.stages[1].ballot().step == 0) s = 1;
                      std::this_thread::yield();
                    }};
  CHECK(nearest_lines(ranks.stages, 0, how));
  other.join();
}

TEST_CASE("nearest: one rank has nobody to be near to") {
  CHECK(!nearest_lines(Ranks(1).stages, 0, {.now_s = now_s}));
}
