// Notes at the end of messages: every allreduce that sends, in every small world, ends with the
// same words on every rank, those of all ranks, and with the same results as without notes.
#include <doctest/doctest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "arrival/notes.hpp"
#include "base/random.hpp"
#include "base/str.hpp"
#include "coll/algorithms.hpp"
#include "coll/registry.hpp"
#include "engine/message_operation.hpp"
#include "ir/lower.hpp"
#include "loop/loop.hpp"
#include "runtime/progress/clock.hpp"
#include "world/worlds.hpp"

using namespace paceline;
using namespace paceline::test;

namespace {

double model_s = 1;
double model_now_s() { return model_s; }

// Each rank has waited for another time; which ones waited least depends on the seed.
ArrivalWords words_of(int rank, std::uint64_t seed) {
  const std::uint64_t mixed = Random::mix(seed + static_cast<std::uint64_t>(rank));
  const auto ns = static_cast<std::int64_t>(mixed >> 40);
  return {ArrivalWords::Waits::before_any, rank, ns, ns % 1000};
}

// One rank, as a session would drive it.
struct Rank : Listener {
  std::unique_ptr<Transport> transport;
  std::shared_ptr<const Schedule> schedule;
  std::vector<std::int32_t> in, out;
  std::vector<std::byte> scratch;
  std::unique_ptr<MessageOperation> operation;
  bool entered = false;

  bool arrives(int peer, const Key& key, const Fingerprint&) override {
    if (entered) operation->sighted(peer, key);
    return true;
  }
  void misfits(int peer, const Key&, std::size_t came, std::size_t expected) override {
    FAIL("rank ", peer, " sends ", came, " bytes, not ", expected);
  }
  void aborted(int, std::uint64_t, const std::string&) override {}
  void lost(int, const std::string&) override {}

  void enter(std::uint64_t seed) {
    operation->notes()->say(words_of(transport->rank(), seed));
    operation->start({in.data(), out.data(), scratch.data()}, 1, {});
    entered = true;
  }
};

struct Few {
  const Algorithm& algorithm;
  int ranks;
  std::size_t count;
  Cut cut;
};

struct Ranks {
  LoopNet net;
  std::vector<int> all;
  std::vector<std::unique_ptr<Rank>> ranks;

  Ranks(const Few& few, std::uint64_t seed) : net(few.ranks, {.seed = seed}) {
    all.resize(std::size_t(few.ranks));
    std::iota(all.begin(), all.end(), 0);
    Problem pb{.collective = Collective::allreduce, .ranks = few.ranks};
    for (pb.rank = 0; pb.rank < few.ranks; ++pb.rank) {
      Rank& r = *ranks.emplace_back(std::make_unique<Rank>());
      r.transport = net.endpoint(pb.rank);
      r.transport->listen(&r);
      r.schedule = std::make_shared<Schedule>(lower(few.algorithm, pb, few.cut));
      auto bound = std::make_shared<CompiledSchedule>(
          resolve(r.schedule, even_layout(pb, few.count), Type::i32, Op::sum));
      bound->has_notes = true;
      r.operation =
          std::make_unique<MessageOperation>(bound, Channel{9, &all, nullptr, model_now_s});
      r.scratch.resize(r.operation->scratch_bytes());
      for (std::size_t i = 0; i < few.count; ++i)
        r.in.push_back(std::int32_t(1000 * i) + (1 << pb.rank));
      r.out.resize(few.count);
    }
  }

  // Lets the ranks enter one after the other, `late` long after the others. Returns what is wrong.
  std::string run(std::uint64_t seed, int late, double by_s) {
    Random random(seed);
    const double begun_s = model_s;
    bool open = true;
    for (long turn = 0; open; ++turn) {
      model_s += 1e-6;
      if (turn > 4000000) return "does not end";
      Rank& r = *ranks[random.below(ranks.size())];
      const bool is_late = r.transport->rank() == late;
      if (!r.entered && (!is_late || model_s > begun_s + by_s)) r.enter(seed);
      r.transport->progress();
      if (r.entered && !r.operation->done()) r.operation->advance(*r.transport);
      open = std::any_of(ranks.begin(), ranks.end(),
                         [](const auto& one) { return !one->entered || !one->operation->done(); });
    }
    for (const auto& r : ranks)
      if (std::string bad = flaw(*r, seed); !bad.empty())
        return str("rank ", r->transport->rank(), bad);
    return {};
  }

  std::string flaw(const Rank& r, std::uint64_t seed) const {
    const auto p = std::int32_t(ranks.size());
    for (std::size_t i = 0; i < r.out.size(); ++i)
      if (r.out[i] != std::int32_t(1000 * i) * p + (1 << p) - 1) return str(": element ", i);
    ArrivalWords all = words_of(0, seed);
    for (int k = 1; k < p; ++k) all.merge(words_of(k, seed));
    if (!(r.operation->notes()->words() == all)) return ": does not have the words of all";
    return {};
  }
};

}  // namespace

TEST_CASE("notes: whoever has a sum of all ranks has the words of all") {
  long cases = 0;
  for (const Algorithm* a : registry()) {
    if (a->collective != Collective::allreduce || a->is_load_store() || a->by_nodes())
      continue;
    long of_it = 0;
    for (int p = 1; p <= by_length(4, 7, 9); ++p) {
      if (why_not(*a, {.collective = Collective::allreduce, .ranks = p})) continue;
      for (std::size_t count : {1, p - 1, p, 2 * p + 1, 131})
        for (const Cut& cut : {kUncut, Cut{.segments = 3, .window = 2},
                               Cut{.segments = 3, .window = 2, .whole_tail = true}}) {
          if (count == 0) continue;   // there is nothing to sum
          const std::uint64_t seed = std::uint64_t(cases) + 5;
          Ranks world({*a, p, count, cut}, seed);
          const std::string bad = world.run(seed, p - 1, 1e-4);
          CHECK_MESSAGE(bad.empty(), a->name, ", ", p, " ranks, ", count, " elements: ", bad);
          ++cases, ++of_it;
        }
    }
    CHECK_MESSAGE(of_it > 0, a->name, " was never tried");
  }
  MESSAGE(cases, " cases");
}

TEST_CASE("notes: how long a rank waited for the last one, whatever the algorithm") {
  constexpr double kLateS = 0.5;   // beside which the messages of this model take no time
  for (const Algorithm* a : {&allreduce_direct, &allreduce_ring, &allreduce_recursive_doubling,
                             &allreduce_binomial})
    for (int late = 0; late < 5; ++late) {
      Ranks world({*a, 5, 64, kUncut}, 3);
      CHECK(world.run(4, late, kLateS) == "");
      for (int r = 0; r < 5; ++r) {
        Notes& notes = *world.ranks[std::size_t(r)]->operation->notes();
        CAPTURE(a->name);
        CAPTURE(late);
        CAPTURE(r);
        CHECK(notes.waited_s() < (r == late ? 0.01 * kLateS : 1.05 * kLateS));
        if (r != late) CHECK(notes.waited_s() > 0.95 * kLateS);
        CHECK(notes.rest_s(0) < 0.05 * kLateS);
      }
    }
}

// Ages count from the header's arrival, not from the message's, which may take long.
TEST_CASE("notes: long messages make nobody late") {
  Notes early(2, 0, 1), late(2, 1, 1);
  const ArrivalWords one = words_of(0, 1), other = words_of(1, 1);
  early.say(one), early.begin(10.0);
  late.say(other), late.begin(13.0);
  const Part sent = late.to_send(0, 13.5);
  early.sighted(0, 13.5);
  early.sighted(0, 13.9);   // another look at the same header
  std::copy_n(sent.data, sent.bytes, early.to_receive(0).data);
  early.received(0);        // at 20.0
  early.end(20.0);
  CHECK_FALSE(early.words() == one);
  CHECK(early.waited_s() == doctest::Approx(3.0));
  CHECK(early.rest_s(0) == doctest::Approx(7.0));
  early.begin(30.0);   // and nothing of it stays
  CHECK(early.words() == one);
  CHECK(early.waited_s() == 0);
}
