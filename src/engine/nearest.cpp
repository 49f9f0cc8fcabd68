#include "engine/nearest.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace paceline {
namespace {

constexpr int kSweeps = 3, kRounds = 64;   // the least of so many times counts
constexpr int kLooks = 4096, kLooksAhead = 256;   // between two looks at the clock, or for a peer
constexpr int kMostRanks = 8;              // of more, no line is near to all
constexpr int kLines = StageBallot::kLines;
constexpr std::uint64_t kOver = std::numeric_limits<std::uint64_t>::max();

enum Step : std::uint32_t { absent, asked, passed };

class Passage {
 public:
  Passage(std::span<const Stage> stages, int rank, const Passing& how)
      : stages_(stages), rank_(rank), how_(how) {}

  // Says so of this rank; whether it is so of all.
  bool all(Step step, std::uint32_t StageBallot::* what, bool mine) {
    at(rank_).ballot().*what = mine;
    at(rank_).ballot().step.store(step, std::memory_order_release);
    bool all = true;
    for (int peer = 0; peer < ranks(); ++peer) {
      const StageBallot& ballot = at(peer).ballot();
      for (int looks = 1; ballot.step.load(std::memory_order_acquire) < step; ++looks)
        if (looks % kLooksAhead == 0) how_.late(peer);
      all = all && ballot.*what != 0;
    }
    return all;
  }

  // Whether it did not take too long; if it did, nobody waits for this rank any more.
  bool pass_all() {
    begun_s_ = how_.now_s();   // not while peers were still to come
    at(rank_).ballot().ns.fill(std::numeric_limits<std::uint32_t>::max());
    for (int sweep = 0; sweep < kSweeps; ++sweep)
      for (int line = 0; line < kLines; ++line)
        if (!pass(line, static_cast<std::uint64_t>(sweep) * kRounds)) {
          for (int other = 0; other < kLines; ++other) tag(rank_, other).store(kOver);
          return false;
        }
    return true;
  }

  std::pair<int, int> best() const {
    std::array<std::uint64_t, kLines> total{};
    for (const Stage& stage : stages_)
      for (std::size_t line = 0; line < kLines; ++line) total[line] += stage.ballot().ns[line];
    std::array<int, kLines> order;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return total[static_cast<std::size_t>(a)] < total[static_cast<std::size_t>(b)];
    });
    return {order[0], order[1]};
  }

 private:
  int ranks() const { return static_cast<int>(stages_.size()); }
  const Stage& at(int position) const { return stages_[static_cast<std::size_t>(position)]; }
  // In the place for data: a line that shows no call.
  std::atomic<std::uint64_t>& tag(int position, int line) const {
    const StageLine& found = at(position).line_at(static_cast<std::size_t>(line) * Stage::kApart);
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(const_cast<std::byte*>(found.room));
  }

  // To and fro, as in the shortest of calls.
  bool pass(int line, std::uint64_t before) {
    const double begin_s = how_.now_s();
    for (std::uint64_t round = before + 1; round <= before + kRounds; ++round) {
      tag(rank_, line).store(round, std::memory_order_release);
      for (int peer = 0; peer < ranks(); ++peer)
        for (int looks = 1; tag(peer, line).load(std::memory_order_acquire) < round; ++looks)
          if (looks % kLooks == 0 && how_.now_s() - begun_s_ > how_.most_s) return false;
    }
    const double end_s = how_.now_s();
    std::uint32_t& least = at(rank_).ballot().ns[static_cast<std::size_t>(line)];
    least = std::min(least, static_cast<std::uint32_t>((end_s - begin_s) / kRounds * 1e9));
    return end_s - begun_s_ <= how_.most_s;
  }

  std::span<const Stage> stages_;
  int rank_;
  const Passing& how_;
  double begun_s_ = 0;
};

}  // namespace

std::optional<std::pair<int, int>> nearest_lines(std::span<const Stage> stages, int rank,
                                                 const Passing& passing) {
  if (stages.size() < 2) return {};
  Passage passage(stages, rank, passing);
  const bool willing = passing.willing && stages.size() <= kMostRanks;
  if (!passage.all(asked, &StageBallot::willing, willing)) return {};
  if (!passage.all(passed, &StageBallot::whole, passage.pass_all())) return {};
  return passage.best();
}

}  // namespace paceline
