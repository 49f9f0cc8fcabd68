// Fingerprints hold all fields that ranks must pass alike, each in its own place and in order, and
// none that may differ.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "base/str.hpp"
#include "coll/registry.hpp"
#include "runtime/fingerprint.hpp"
#include "tune/choose.hpp"

using namespace paceline;

namespace {

Call sum_of(std::size_t count) {
  Call call{.collective = Collective::allreduce, .type = Type::f32, .op = Op::sum};
  call.count = count;
  return call;
}

Call uneven(Collective collective, std::vector<std::size_t> counts) {
  Call call{.collective = collective, .type = Type::f32, .op = Op::sum};
  call.uneven = true;
  call.counts = std::move(counts);
  return call;
}

// Returns the difference, in the same words on both ranks; empty if both are alike.
std::string between(const Fingerprint& one, const Fingerprint& other) {
  if (one == other) return {};
  const std::string said = difference(one, 2, other, 5);
  CHECK(said == difference(other, 5, one, 2));
  return said;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

using Places = std::optional<std::uint64_t>;

}  // namespace

TEST_CASE("fingerprint: a field that differs is named, with both values") {
  Call root{.collective = Collective::broadcast, .type = Type::f32};
  root.count = 8;
  Call other = root;
  other.root = 3;
  CHECK(has(between(fingerprint_of(root, 7), fingerprint_of(other, 7)),
            "root differs between ranks (rank 2: 0, rank 5: 3)"));
  const Call call = sum_of(8);
  const auto changed = [&](auto&& change) {
    Call c = call;
    change(c);
    return between(fingerprint_of(call, 7), fingerprint_of(c, 7));
  };
  CHECK(changed([](Call&) {}) == "");
  CHECK(has(changed([](Call& c) { c.collective = Collective::broadcast; }),
            "collective differs between ranks (rank 2: allreduce, rank 5: broadcast)"));
  CHECK(has(changed([](Call& c) { c.type = Type::i32; }), "rank 2: float32, rank 5: int32"));
  CHECK(has(changed([](Call& c) { c.op = Op::max; }), "rank 2: sum, rank 5: max"));
  CHECK(has(changed([](Call& c) { c.count = 9; }), "rank 2: 8, rank 5: 9"));
  CHECK(has(changed([](Call& c) { c.uneven = true; }),
            "rank 5 passes a count for every rank, rank 2 one for all"));
  CHECK(has(between(fingerprint_of(call, 7), fingerprint_of(call, 8)), "the algorithm or its"));
  CHECK(has(between(fingerprint_of(call, 7, 1), fingerprint_of(call, 7)),
            "rank 2 passes buffers in shared memory, rank 5 others"));
  CHECK(has(between(fingerprint_of(call, 7, 1), fingerprint_of(call, 7, 2)),
            "place in shared memory differs between ranks (rank 2: 1, rank 5: 2)"));
}

TEST_CASE("fingerprint: the order of uneven counts is part of it") {
  for (const Collective collective : {Collective::reduce_scatter, Collective::allgather}) {
    const auto of = [&](std::vector<std::size_t> counts) {
      return fingerprint_of(uneven(collective, std::move(counts)), 7);
    };
    CHECK(has(between(of({3, 5}), of({5, 3})), "the counts differ between rank 2 and rank 5"));
    std::vector<std::size_t> counts{0, 1, 2, 3, 4};
    std::set<std::uint64_t> seen;
    do seen.insert(of(counts).count);
    while (std::next_permutation(counts.begin(), counts.end()));
    CHECK(seen.size() == 120);
    // Nor do counts that are split, joined or moved to another rank look alike.
    const std::vector<std::vector<std::size_t>> alike{
        {8}, {4, 4}, {3, 5}, {8, 0}, {0, 8}, {0, 8, 0}, {3, 5, 0}, {0, 3, 5}, {3, 0, 5}, {}};
    std::set<std::uint64_t> others;
    for (const auto& one : alike) others.insert(of(one).count);
    CHECK(others.size() == alike.size());
  }
}

TEST_CASE("fingerprint: values that trade places are other fingerprints") {
  const auto all = {1, 2, 3, 5};
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::size_t made = 0;
  for (const int type : all)
    for (const int op : all)
      for (const int root : all)
        for (const unsigned choice : {1u, 2u, 3u, 5u})
          for (const std::size_t count : {1, 2, 3, 5})
            for (const Places place : {Places(), Places(1), Places(2)}) {
              Call call{.collective = Collective::reduce, .type = Type(type), .op = Op(op)};
              call.root = root;
              call.count = count;
              const Fingerprint f = fingerprint_of(call, choice, place);
              seen.insert({f.what, f.count});
              ++made;
            }
  CHECK(seen.size() == made);
}

TEST_CASE("fingerprint: no field spills into another, whatever its value") {
  for (int c = 0; c < kCollectives; ++c)
    for (int t = 0; t < kTypes; ++t)
      for (int o = 0; o < kOps; ++o) {
        Call call{.collective = Collective(c), .type = Type(t), .op = Op(o)};
        call.root = 65535;
        call.count = (std::size_t{1} << 40) - 1;
        const Fingerprint f = fingerprint_of(call, ~0ull, ~0ull);
        Call plain = call;
        plain.root = 0;
        const Fingerprint low = fingerprint_of(plain, 0, 0);
        std::string text(name_of(call.collective));
        CHECK(collective_of(f) == text);
        if (call.collective != Collective::barrier)
          text += str(" of 1099511627775 ", name_of(call.type));
        if (has_op(call.collective)) text += str(", ", name_of(call.op));
        const bool rooted = has_root(call.collective);
        CHECK(describe(f) == text + (rooted ? ", root 65535" : ""));
        CHECK(describe(low) == text + (rooted ? ", root 0" : ""));
      }
}

TEST_CASE("fingerprint: what ranks may pass differently is left out") {
  Call one = sum_of(8), other = one;
  other.root = 3;           // an allreduce has none
  other.timeout_ms = 5;     // each rank has its own
  CHECK(fingerprint_of(one, 7) == fingerprint_of(other, 7));
  Call from{.collective = Collective::broadcast, .type = Type::f32, .op = Op::sum}, max = from;
  max.op = Op::max;         // a broadcast has none
  CHECK(fingerprint_of(from, 7) == fingerprint_of(max, 7));
  for (const Collective collective :
       {Collective::gather, Collective::scatter, Collective::alltoall}) {
    const Call root = uneven(collective, {3, 5});
    Call leaf = uneven(collective, {});
    leaf.count = 5;
    CHECK(fingerprint_of(root, 7) == fingerprint_of(leaf, 7));   // the root alone knows the counts
    leaf.uneven = false;
    CHECK(fingerprint_of(root, 7) != fingerprint_of(leaf, 7));
    CHECK(has(describe(fingerprint_of(root, 7)), " of uneven counts of float32"));
  }
}

TEST_CASE("fingerprint: how a call is carried out counts, each part of it in its place") {
  std::set<std::uint64_t> seen;
  std::size_t made = 0;
  for (const char* name : {"ring", "recursive_doubling"})
    for (const int segments : {1, 2, 3})
      for (const int window : {1, 2, 3})
        for (const int radix : {0, 1, 2})
          for (const int blocks : {0, 1, 2})
            for (const int flags : {0, 1, 2, 3}) {
              Choice choice;
              choice.algorithm = &find_algorithm(Collective::allreduce, name);
              choice.cut.segments = segments;
              choice.cut.window = window;
              choice.cut.knobs = {.radix = radix, .blocks = blocks};
              choice.cut.in_step = flags & 1;
              choice.cut.whole_tail = flags & 2;
              seen.insert(hash_of(choice));
              ++made;
            }
  CHECK(seen.size() == made);
  Algorithm turned = find_algorithm(Collective::allreduce, "ring");
  Choice choice;
  choice.algorithm = &turned;
  const std::uint64_t before = hash_of(choice);
  turned.name = "gnir";
  CHECK(hash_of(choice) != before);
}

TEST_CASE("fingerprint: so does its priority, which is named with them") {
  Call call = sum_of(8);
  std::set<std::uint64_t> seen;
  for (const int priority : {0, 1, -1, 2, 1 << 20, -(1 << 20)}) {
    call.priority = priority;
    seen.insert(fingerprint_of(call, 7).what);
    for (const std::uint64_t tag : {0, 1, 77}) {   // the same one on both ranks
      Call mine = call, theirs = sum_of(8);
      mine.tag = theirs.tag = tag;
      if (priority != 0)
        CHECK(has(between(fingerprint_of(mine, 7), fingerprint_of(theirs, 7)), "the priority"));
    }
  }
  CHECK(seen.size() == 6);
}

TEST_CASE("fingerprint: the ranks of a communicator count, and their order") {
  const std::vector<std::vector<int>> groups{{},     {0},    {1},       {0, 1},    {1, 0},
                                             {0, 2}, {2, 0}, {0, 1, 2}, {0, 2, 1}, {2, 1, 0}};
  std::set<std::uint64_t> seen;
  for (const auto& ranks : groups) seen.insert(digest_of(ranks));
  CHECK(seen.size() == groups.size());
}

// Tags that differ in one bit, or in the order of two letters, differ as fingerprints; also with
// arrays in shared memory. The difference is never reported as another algorithm.
TEST_CASE("fingerprint: calls with different tags are different calls") {
  const Call call = sum_of(8);
  const auto tagged = [&](std::uint64_t tag, Places places = {}) {
    Call c = call;
    c.tag = tag;
    return fingerprint_of(c, 7, places);
  };
  for (const Places places : {Places(), Places(12345)}) {
    CHECK(has(between(fingerprint_of(call, 7, places), tagged(1, places)),
              "rank 5 passes a tag, rank 2 none"));
    for (int bit = 1; bit < 64; ++bit)
      CHECK(has(between(tagged(1, places), tagged(1 | std::uint64_t{1} << bit, places)),
                "the tag"));
    CHECK(between(tagged(77, places), tagged(77, places)) == "");
  }
  CHECK(has(between(tagged(tag_of("ab")), tagged(tag_of("ba"))),
            "the tag differs between rank 2 and rank 5; all ranks must make the calls of all"));
  CHECK(tag_of("") != 0);
  CHECK(tag_of("a") != tag_of("aa"));
  CHECK(has(describe(tagged(5)), "allreduce of 8 float32"));
  Call longer = call;
  longer.count = 9;
  longer.tag = 5;
  CHECK(has(between(tagged(5), fingerprint_of(longer, 7)), "count differs"));
  longer.count = 8;   // the same tag, carried out otherwise
  CHECK(has(between(tagged(5), fingerprint_of(longer, 9)), "the algorithm or its segments"));
}

TEST_CASE("fingerprint: a call that one rank was refused is told apart, whatever it was") {
  Call barrier{.collective = Collective::barrier};
  Call refused = barrier;
  refused.tag = tag_of(kRefused);
  const Fingerprint theirs = fingerprint_of(refused, 7);
  for (const Call& call : {sum_of(8), sum_of(0), barrier})
    CHECK(has(between(fingerprint_of(call, 7), theirs), "rank 5 does not make this call"));
  CHECK(between(fingerprint_of(refused, 7), theirs) == "");
  CHECK(describe(theirs) == "a call that was refused there");
  refused.tag = tag_of("another");
  CHECK(!is_refusal(fingerprint_of(refused, 7)));
}
