// Blocks cover the message exactly, for all counts.
#include "ir/layout.hpp"

#include <doctest/doctest.h>

#include "coll/registry.hpp"
#include "ir/pipeline.hpp"

using namespace paceline;

namespace {

const std::size_t kCounts[] = {0, 1, 2, 3, 5, 7, 12, 64, 65, 1000, 1009};

Problem problem(Collective collective, int ranks, int rank, bool in_place = false) {
  Problem p;
  p.collective = collective;
  p.ranks = ranks;
  p.rank = rank;
  p.in_place = in_place;
  return p;
}

std::vector<std::size_t> counts(const std::vector<Piece>& pieces) {
  std::vector<std::size_t> out;
  for (const Piece& piece : pieces) out.push_back(piece.count);
  return out;
}

using Counts = std::vector<std::size_t>;

}  // namespace

TEST_CASE("layout: cut covers exactly, in order, in nearly equal parts") {
  for (std::size_t count : kCounts)
    for (int parts = 1; parts <= 64; ++parts) {
      std::size_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const Piece piece = cut(count, parts, i);
        CHECK(piece.offset == next);
        CHECK(piece.count - count / std::size_t(parts) <= 1);   // no part is shorter
        if (i > 0) CHECK(piece.count <= cut(count, parts, i - 1).count);   // the longer ones first
        next += piece.count;
      }
      CHECK(next == count);
    }
}

TEST_CASE("layout: long parts begin at multiples of a grain, short ones are cut by elements") {
  for (std::size_t count : {0, 63, 2047, 2048, 2049, 2111, 2112, 2113, 4097, 10007})
    for (int parts : {1, 2, 3, 7, 64}) {
      const std::size_t least = count / std::size_t(parts);
      const bool is_long = least >= 16 * 64;
      std::size_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const Piece piece = cut(count, parts, i, 64), bare = cut(count, parts, i);
        CHECK(piece.offset == next);
        if (is_long) CHECK(piece.offset % 64 == 0);
        else CHECK(piece.offset == bare.offset);
        CHECK(piece.count < least + 2 * 64);
        CHECK(piece.count + 2 * 64 > least);
        next += piece.count;
      }
      CHECK(next == count);
    }
}

// Ranks that share memory work on parts that have no cache line in common.
TEST_CASE("layout: ranks that send nothing cut long parts at lines, others equally") {
  Problem p = problem(Collective::allreduce, 2, 0);
  p.one_node = true;
  const std::vector<Piece> vector{{0, 65538}};
  const Schedule near = build(find_algorithm(Collective::allreduce, "two_shot"), p);
  CHECK(place(near, vector, 1).offset == 32768 + 64);
  const Schedule far = build(find_algorithm(Collective::allreduce, "ring"), p);
  CHECK(place(far, vector, 1).offset == 32769);
}

// Every element of every unit belongs to exactly one block, and the blocks of a pipeline segment
// are one contiguous slice of the unit.
TEST_CASE("layout: the blocks of a pipelined schedule cover every unit exactly") {
  for (std::size_t count : kCounts)
    for (int units : {1, 3})
      for (int cuts : {1, 2, 5})
        for (int segments : {1, 2, 7}) {
          Schedule s;
          s.units = units;
          s.cuts = cuts;
          s.pipeline = segments;
          std::vector<Piece> places;
          for (int u = 0; u < units; ++u) places.push_back({100 + std::size_t(u) * 2000, count});
          for (int u = 0; u < units; ++u) {
            std::size_t next = places[std::size_t(u)].offset;
            for (int slice = 0; slice < segments; ++slice)
              for (int c = 0; c < cuts; ++c) {
                const Piece piece = place(s, places, (slice * units + u) * cuts + c);
                CHECK(piece.offset == next);
                next += piece.count;
              }
            CHECK(next == places[std::size_t(u)].offset + count);
          }
        }
}

// Blocks cut within another algorithm's block begin and end where that does, for all counts.
TEST_CASE("layout: blocks that are cut within others cover those exactly") {
  int elsewhere = 0;
  for (std::size_t count : kCounts)
    for (int outer : {1, 3, 8})
      for (int within : {1, 2, 7})
        for (int segments : {1, 2}) {
          Schedule coarse, fine;
          coarse.pipeline = fine.pipeline = segments;
          coarse.cuts = outer;
          fine.cuts = outer * within;
          fine.within = within;
          const std::vector<Piece> vector{{100, count}};
          Schedule at_once = fine;
          at_once.within = 1;
          for (int block = 0; block < segments * outer; ++block) {
            const Piece whole = place(coarse, vector, block);
            std::size_t next = whole.offset;
            for (int i = 0; i < within; ++i) {
              const Piece part = place(fine, vector, block * within + i);
              CHECK(part.offset == next);
              next += part.count;
            }
            CHECK(next == whole.offset + whole.count);
            elsewhere += place(at_once, vector, block * within).offset != whole.offset;
          }
        }
  CHECK(elsewhere > 100);   // cut at once they would begin elsewhere
}

TEST_CASE("layout: segments count the blocks of the buffer they are like") {
  const Problem p = problem(Collective::alltoall, 3, 1);
  const Schedule s = build(find_algorithm(Collective::alltoall, "pairwise"), p);
  const Layout layout = uneven_layout(p, {1, 2, 3}, {10, 20, 30});
  Segment segment;
  segment.blocks = 2;
  segment.like = Space::input;
  CHECK(count_of(s, layout, segment) == 3);
  segment.like = Space::output;
  CHECK(count_of(s, layout, segment) == 30);
  segment.first = 1;
  CHECK(count_of(s, layout, segment) == 50);
}

TEST_CASE("layout: units lie one after the other; a short buffer holds the rank's own only") {
  const Counts sizes{4, 0, 2}, others{1, 1, 1}, own{0, 0, 2};
  for (bool in_place : {false, true})
    for (Collective c : {Collective::allgather, Collective::gather, Collective::reduce_scatter,
                         Collective::scatter, Collective::alltoall}) {
      const bool to_input = c == Collective::reduce_scatter || c == Collective::scatter;
      const bool from_output = c == Collective::allgather || c == Collective::gather;
      const bool pairs = c == Collective::alltoall;
      const Layout l = uneven_layout(problem(c, 3, 2, in_place), sizes, pairs ? others : sizes);
      CHECK_MESSAGE(counts(l.input) == (from_output && !in_place ? own
                                        : pairs && in_place      ? others
                                                                 : sizes), std::string(name_of(c)));
      CHECK_MESSAGE(counts(l.output) == (to_input && !in_place ? own : pairs ? others : sizes),
                    std::string(name_of(c)));
      if (to_input && !in_place) CHECK(l.output[2].offset == 0);
      if (from_output && !in_place) CHECK(l.input[2].offset == 0);
    }
}

TEST_CASE("layout: equal units") {
  const Layout vector = even_layout(problem(Collective::allreduce, 4, 0), 9);
  CHECK(counts(vector.input) == Counts{9});
  const Layout units = even_layout(problem(Collective::allgather, 3, 1), 5);
  CHECK(counts(units.output) == Counts{5, 5, 5});
  CHECK(counts(units.input) == Counts{0, 5, 0});
  CHECK(units.output[2].offset == 10);
}
