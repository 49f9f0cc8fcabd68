// Hypercube with a fold: the largest power of two of the ranks exchange along its dimensions; each
// of the others hands its part to a neighbour before and is handed the result after.
#pragma once

namespace paceline {

struct Hypercube {
  int ranks;

  // 2^dimensions() of the ranks are corners, extra() are not.
  int dimensions() const {
    int d = 0;
    while ((2 << d) <= ranks) ++d;
    return d;
  }
  int extra() const { return ranks - (1 << dimensions()); }

  // Among the first 2 * extra() ranks the even ones are not corners; the odd one next to each
  // stands for both.
  bool is_corner(int rank) const { return rank >= 2 * extra() || rank % 2 == 1; }
  bool stands_for_two(int rank) const { return rank < 2 * extra() && rank % 2 == 1; }

  int corner_of(int rank) const { return rank < 2 * extra() ? rank / 2 : rank - extra(); }
  int rank_of(int corner) const { return corner < extra() ? 2 * corner + 1 : corner + extra(); }
  int partner(int rank, int dimension) const { return rank_of(corner_of(rank) ^ (1 << dimension)); }

  // The corners that agree with this one from dimension d on upwards, and the ranks that these
  // stand for, are consecutive ranks: the first of them, and the one behind the last.
  int first_near(int corner, int d) const { return first_of(corner >> d << d); }
  int behind_near(int corner, int d) const { return first_of(((corner >> d) + 1) << d); }

 private:
  int first_of(int corner) const { return corner < extra() ? 2 * corner : corner + extra(); }
};

}  // namespace paceline
