// Tail: the rest of a sum once late ranks enter. Early ranks own the message, a slice each, and
// have summed or hold what they have; late ranks own nothing.
//
// Every slice goes in passes: a late rank sends a piece of it to its owner, which adds it, and in
// an allreduce the sum travels round the early ranks while the next pieces come in; one of them
// tells the late rank.
#pragma once

#include <cstdint>
#include <vector>

#include "coll/sums.hpp"
#include "coll/late.hpp"
#include "ir/algorithm.hpp"
#include "ir/builder.hpp"

namespace paceline {

class Tail {
 public:
  // Consecutive blocks of the message.
  struct Range {
    int first, blocks;
  };

  // `blocks`: of the message, at least one for each pass of a slice; 0: just as many.
  Tail(const Problem& problem, const Knobs& knobs, int blocks = 0)
      : sides(problem), passes(passes_of(sides, knobs)),
        blocks_(blocks > 0 ? blocks : sides.waiting() * passes) {}

  // Passes as asked for; else enough to overlap, and few enough for schedules of many ranks.
  static int passes_of(const Sides& sides, const Knobs& knobs) {
    return knobs.blocks > 0 ? knobs.blocks : std::clamp(128 / sides.waiting(), 2, 8);
  }

  static Cost cost(const Problem& problem, const Knobs& knobs) {
    const Sides sides(problem);
    const double m = sides.waiting(), p = problem.ranks, passes = passes_of(sides, knobs);
    return {.rounds = m - 1 + passes * (p - 1), .volume = (m - 1) / m + (p - 1) / m,
            .reduced = (p - 1) / m};
  }

  static int cuts(const Problem& problem, const Knobs& knobs) {
    const Sides sides(problem);
    return sides.waiting() * passes_of(sides, knobs);
  }

  Range slice(int place) const {
    const int m = sides.waiting(), at = (place + m) % m;
    return share({0, blocks_}, m, at);
  }
  Range piece(int place, int pass) const { return share(slice(place), passes, pass); }

  static Segment input(const Builder& b, Range r) { return b.input(r.first, r.blocks); }
  static Segment output(const Builder& b, Range r) { return b.output(r.first, r.blocks); }
  // A range of a segment that holds more of the message.
  static Segment part(const Builder& b, const Segment& whole, Range r) {
    return Builder::part(whole, input(b, r).first, r.blocks);
  }

  // A late rank's part: sends all that it has to owners in turn and, in an allreduce, receives all
  // sums.
  void give(Builder& b) const {
    for_all([&](int place, int pass) {
      b.send(sides.early_at(place), {input(b, piece(place, pass))});
    });
  }
  void hear(Builder& b) const {
    for_all([&](int place, int pass) {
      b.recv(sides.early_at(place + sides.at % sides.waiting()), {output(b, piece(place, pass))});
    });
  }

  // Slots for every rank's part of the own slice, by rank, which are filled as it comes. Sends
  // slices of other early ranks to these.
  std::vector<Segment> slots(Builder& b) const {
    const int m = sides.waiting(), at = sides.at;
    const Segment own = input(b, slice(at));
    std::vector<Segment> all(static_cast<std::size_t>(b.problem().ranks), own);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (static_cast<int>(rank) != b.problem().rank) all[rank] = b.scratch(own);
    for (int k = 1; k < m; ++k) {
      const int to = (at + k) % m, from = sides.early_at(at - k);
      b.send(sides.early_at(to), {input(b, slice(to))});
      b.recv(from, {all[static_cast<std::size_t>(from)]});
    }
    return all;
  }

  // Receives what late ranks send of a range.
  void take(Builder& b, const std::vector<Segment>& slots, Range range) const {
    for (int rank : sides.late)
      b.recv(rank, {part(b, slots[static_cast<std::size_t>(rank)], range)});
  }

  // Receives what late ranks send in one pass, then sums all slots in rank order.
  void add(Builder& b, const std::vector<Segment>& slots, int pass, const Segment& sum) const {
    const Range own = piece(sides.at, pass);
    take(b, slots, own);
    std::vector<Segment> pieces;
    for (const Segment& slot : slots) pieces.push_back(part(b, slot, own));
    if (pieces.size() > 1) sum_in_groups(b, pieces, sum);
    else b.copy(pieces.front(), sum);
    b.finish(sum);
  }

  // An early rank's part of one pass, once its own piece is complete: passes sums round the early
  // ranks.
  void spread(Builder& b, int pass) const {
    const int m = sides.waiting(), k = sides.missing();
    for (int hop = 0; hop < m; ++hop) {
      const int of = sides.at - hop;   // the slice's owner
      const Segment sum = output(b, piece(of, pass));
      if (hop > 0) b.recv(sides.early_at(sides.at - 1), {sum});
      if (hop < m - 1) b.send(sides.early_at(sides.at + 1), {sum});
      for (int late = hop; late < k; late += m) b.send(sides.late_at(late), {sum});
    }
  }

  const Sides sides;
  const int passes;

 private:
  // Part `i` of `parts` nearly equal ones.
  static Range share(Range whole, int parts, int i) {
    const auto begin = [&](int of) {
      return static_cast<int>(std::int64_t{of} * whole.blocks / parts);
    };
    return {whole.first + begin(i), begin(i + 1) - begin(i)};
  }

  int blocks_;

  // Calls each(owner's place, pass) in the order in which this late rank gives and hears.
  template <class Each>
  void for_all(Each&& each) const {
    const int m = sides.waiting();
    for (int pass = 0; pass < passes; ++pass)
      for (int k = 0; k < m; ++k) each((sides.at % m + m - k) % m, pass);
  }
};

}  // namespace paceline
