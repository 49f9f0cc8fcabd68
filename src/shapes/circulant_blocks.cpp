#include "shapes/circulant_blocks.hpp"

#include <algorithm>

namespace paceline {
namespace {

// The position as a sum of skips, the largest first: the index of the last one; q for the root.
int base_block(const std::vector<int>& skips, int position) {
  const int q = static_cast<int>(skips.size()) - 1;
  int last = q;
  for (int k = q - 1; k >= 0 && position > 0; --k)
    if (position >= skips[static_cast<std::size_t>(k)]) {
      position -= skips[static_cast<std::size_t>(k)];
      last = k;
    }
  return last;
}

// Finds, for one kind of round after the other, the largest base block among the positions from
// which that round can hear, s(k+1) to s(k) back, that no round before has taken. They are visited
// as sums of skips, one turn ahead so that none is negative.
class Search {
 public:
  Search(const std::vector<int>& skips, int position)
      : s_(skips), q_(static_cast<int>(skips.size()) - 1), here_(position + skips.back()),
        bound_(2 * skips.back()), unused_((2 << q_) - 1) {
    unused_ &= ~(1 << base_block(skips, position));
    visit(0, below(q_ + 1));
  }
  const std::vector<int>& found() const { return found_; }

 private:
  int skip(int k) const { return s_[static_cast<std::size_t>(k)]; }
  int round() const { return static_cast<int>(found_.size()); }
  int below(int e) const {
    do --e;
    while (e >= 0 && !(unused_ >> e & 1));
    return e;
  }

  // Tries to add skips of at most index e to the sum `at`.
  void visit(int at, int e) {
    for (; e >= 0 && round() < q_; e = below(e)) {
      const int next = at + skip(e);
      if (next > here_ - skip(round()) || next >= bound_) continue;
      if (next <= here_ - skip(round() + 1)) visit(next, e);   // not yet near enough
      if (round() == q_ || at > here_ - skip(round() + 1)) return;
      bound_ = next;
      found_.push_back(e);
      unused_ &= ~(1 << e);
    }
  }

  const std::vector<int>& s_;
  int q_, here_, bound_, unused_;
  std::vector<int> found_;
};

}  // namespace

std::vector<int> circulant_skips(int ranks) {
  std::vector<int> skips{ranks};
  while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
  std::reverse(skips.begin(), skips.end());
  return skips;
}

std::vector<int> circulant_receives(const std::vector<int>& skips, int position) {
  const int q = static_cast<int>(skips.size()) - 1;
  std::vector<int> out = Search(skips, position).found();
  for (int& e : out)   // what the root itself sends is new
    e = e == q ? base_block(skips, position) : e - q;
  return out;
}

std::vector<int> circulant_sends(const std::vector<int>& skips, int position) {
  std::vector<int> out;
  for (std::size_t k = 0; k + 1 < skips.size(); ++k)
    out.push_back(circulant_receives(skips, (position + skips[k]) % skips.back())[k]);
  return out;
}

std::vector<BlockRound> block_rounds(const BlockBroadcast& broadcast, int position) {
  const auto [p, blocks] = broadcast;
  std::vector<BlockRound> rounds;
  const std::vector<int> skips = circulant_skips(p);
  const int q = static_cast<int>(skips.size()) - 1;
  if (q == 0) return rounds;
  const std::vector<int> receives = circulant_receives(skips, position),
                         sends = circulant_sends(skips, position);
  const int start = (q - (blocks - 1) % q) % q;   // so that the last round is one of kind q - 1
  for (int i = start; i < start + blocks - 1 + q; ++i) {
    const auto k = static_cast<std::size_t>(i % q);
    const auto block = [&](int e) {
      return std::max(-1, std::min(e + i / q * q - start, blocks - 1));
    };
    BlockRound round{(position + skips[k]) % p, (position - skips[k] + p) % p, block(sends[k]),
                     block(receives[k])};
    if (round.to == 0) round.sends = -1;   // the root knows
    if (position == 0) round.receives = -1;
    rounds.push_back(round);
  }
  return rounds;
}

}  // namespace paceline
