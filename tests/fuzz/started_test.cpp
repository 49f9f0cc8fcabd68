// Ranks of a node each that start calls without waiting, as a training step does: whether they
// learn who is late as blocking calls do, and that no start waits for what may never come.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/random.hpp"
#include "fuzz/nodes.hpp"
#include "world/worlds.hpp"

namespace paceline::fuzz {
namespace {

constexpr int kRanks = 4, kLate = 2;
constexpr double kGapS = 4 * kMessageS;

using Buffers = std::vector<std::vector<float>>;
using Step = std::function<void(Communicator&, int rank, int step, Buffers&)>;

Call tagged(std::vector<float>& buffer, std::uint64_t tag) {
  Call call = sum_of(buffer);
  call.tag = tag;
  return call;
}

// The same steps by all ranks, one of which is late; its calls overwrite the buffers.
struct Training {
  explicit Training(std::uint64_t seed) : nodes(kRanks, seed) {}

  void run(int steps, std::size_t buckets, const Step& step) {
    tails.assign(std::size_t(steps), std::vector<bool>(kRanks));
    rest_s.assign(std::size_t(steps), 0);
    std::vector<double> entered_s(std::size_t(steps), 0);
    const std::vector<float> right = in_ring_order(kRanks, kCount);
    ended = nodes.run(learning, [&](Communicator& world, int rank) {
      Buffers buffers(buckets, std::vector<float>(kCount));
      for (int s = 0; s < steps; ++s) {
        for (auto& buffer : buffers)
          for (std::size_t i = 0; i < kCount; ++i) buffer[i] = value(rank, i);
        if (rank == kLate) nodes.fibers.sleep(kGapS);
        const auto at = std::size_t(s);
        tails[at][std::size_t(rank)] = says(world.explain(asked(buffers)), "tail_as_ring");
        entered_s[at] = std::max(entered_s[at], nodes.fibers.now_s());
        step(world, rank, s, buffers);
        rest_s[at] = std::max(rest_s[at], nodes.fibers.now_s() - entered_s[at]);
        for (const auto& buffer : buffers) wrong += buffer != right;
      }
      explained = world.explain(asked(buffers));
    });
  }
  Call asked(Buffers& buffers) const { return tagged(buffers[0], tag); }

  void check_sums() const {
    CHECK(ended);
    CHECK(nodes.trouble() == "");   // ranks that choose differently get a mismatch
    CHECK(wrong == 0);
    for (const auto& step : tails)
      for (bool tail : step) CHECK(tail == step[0]);
  }
  int learned() const {
    return static_cast<int>(std::count_if(tails.begin(), tails.end(),
                                          [](const auto& step) { return step[0]; }));
  }
  double later_s() const {   // of a step, on average, once there was time to learn
    const auto half = rest_s.begin() + std::ptrdiff_t(rest_s.size() / 2);
    return std::accumulate(half, rest_s.end(), 0.0) / double(rest_s.end() - half);
  }

  Nodes nodes;
  std::uint64_t tag = 0;
  std::vector<std::vector<bool>> tails;   // by step and rank: the first call names one late
  std::vector<double> rest_s;             // of each step, from the last arrival on
  std::string explained;
  bool ended = false;
  int wrong = 0;
};

// Nothing but what rank 0 does lets it go on: for what peers may do by other means.
void wait_for(Nodes& nodes, const int& done, int wanted) {
  while (done < wanted) nodes.fibers.sleep(1e-4);
}

}  // namespace

TEST_CASE("started: a training step's buckets teach, and what they teach pays") {
  for (const auto& [buckets, with_plans] : {std::pair{3, false}, {3, true}, {12, false}}) {
    CAPTURE(buckets);
    CAPTURE(with_plans);
    Training training(5);
    std::vector<std::vector<Plan>> plans(kRanks);
    const Step step = [&, with_plans = with_plans](Communicator& world, int rank, int,
                                                   Buffers& buffers) {
      auto& mine = plans[std::size_t(rank)];
      std::vector<Request> requests;
      for (std::size_t b = 0; b < buffers.size(); ++b) {
        if (with_plans && mine.size() <= b) mine.push_back(world.plan(sum_of(buffers[b])));
        requests.push_back(with_plans ? mine[b].start() : world.start(sum_of(buffers[b])));
      }
      std::vector<float> count(1, 1);   // what follows tells one step from the next
      requests.push_back(world.start(sum_of(count)));
      for (Request& request : requests) request.wait();
    };
    training.run(40, std::size_t(buckets), step);
    training.check_sums();
    CHECK_MESSAGE(says(training.explained, "taken for late: 2"), training.explained);
    MESSAGE("a step without and with it: ", training.rest_s[2] / kMessageS, ", ",
            training.later_s() / kMessageS, " of a message's time after the last arrival");
    CHECK(training.later_s() < (buckets == 3 ? 0.75 : 0.92) * training.rest_s[2]);
  }
}

TEST_CASE("started: no start waits where calls alike are under way together") {
  Training training(6);
  training.tag = 5;
  int done = 0;   // steps that rank 0 has started whole
  training.run(24, 2, [&](Communicator& world, int rank, int step, Buffers& buffers) {
    if (rank == 1) wait_for(training.nodes, done, step + 1);
    Request first = world.start(tagged(buffers[0], 5));
    Request second = world.start(tagged(buffers[1], 5));
    if (rank == 0) ++done;
    first.wait();
    second.wait();
  });
  training.check_sums();
  CHECK(training.learned() == 0);   // nobody can say that it waits
}

TEST_CASE("started: more in a row than have places of their own") {
  Training together(7);
  int done = 0;
  together.run(16, 12, [&](Communicator& world, int rank, int step, Buffers& buffers) {
    if (rank == 1) wait_for(together.nodes, done, step + 1);
    std::vector<Request> requests;
    for (auto& buffer : buffers) requests.push_back(world.start(sum_of(buffer)));
    if (rank == 0) ++done;
    for (Request& request : requests) request.wait();
  });
  together.check_sums();

  for (const bool with_plans : {false, true}) {
    Training one_by_one(8);
    std::vector<std::vector<Plan>> plans(kRanks);
    one_by_one.run(40, 1, [&](Communicator& world, int rank, int, Buffers& buffers) {
      auto& mine = plans[std::size_t(rank)];
      if (with_plans && mine.empty()) mine.push_back(world.plan(sum_of(buffers[0])));
      (with_plans ? mine[0].start() : world.start(sum_of(buffers[0]))).wait();
    });
    one_by_one.check_sums();
    CHECK(one_by_one.learned() >= 30);
  }
}

// It has said that it will wait: it does then, for calls that its peers have made before that one.
TEST_CASE("started: a program that no longer waits is held once, and then no more") {
  Training training(9);
  training.tag = 3;
  int done = 0;
  training.run(36, 2, [&](Communicator& world, int rank, int step, Buffers& buffers) {
    const bool waits = step < 24;
    if (step > 25 && rank == 1) wait_for(training.nodes, done, step - 25);
    Request first = world.start(tagged(buffers[0], 3));
    if (waits) first.wait();
    Request second = world.start(tagged(buffers[1], waits ? 4 : 3));
    if (step > 25 && rank == 0) ++done;
    if (!waits) first.wait();
    second.wait();
  });
  training.check_sums();
  CHECK(training.learned() >= 10);
}

// Whenever that is, also in the call from which the others learn whom to expect.
TEST_CASE("started: a rank that alone does not wait has learned what the others have") {
  for (int odd = 4; odd < 24; ++odd) {
    CAPTURE(odd);
    Training training(12);
    training.tag = 3;
    training.run(30, 2, [&](Communicator& world, int rank, int step, Buffers& buffers) {
      Request first = world.start(tagged(buffers[0], 3));
      const bool waits = rank != 3 || step != odd;
      if (waits) first.wait();
      if (step == odd) world.start(tagged(buffers[1], 3)).wait();
      else world.run(tagged(buffers[1], 4));
      if (!waits) first.wait();
    });
    training.check_sums();
    CHECK(training.learned() > 0);
  }
}

// Rank 0 knows at once what the others know only before the next call of tag 3. Between lies a call
// at a new place, which goes by what the communicator has learned.
TEST_CASE("started: a rank that waits where others do not learns no earlier than they do") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    Training training(seed);
    training.tag = 3;
    int named = 0;
    training.run(24, 2, [&](Communicator& world, int rank, int step, Buffers& buffers) {
      const Call first = tagged(buffers[0], 3);
      const Call second = tagged(buffers[1], 100 + std::uint64_t(step));
      std::vector<Request> requests;
      if (rank == 0) world.run(first);
      else requests.push_back(world.start(first));
      named += says(world.explain(second), "taken for late: 2");
      requests.push_back(world.start(second));
      for (Request& request : requests) request.wait();
    });
    training.check_sums();
    CHECK(training.learned() >= 10);
    CHECK(named >= 40);
  }
}

TEST_CASE("started: who may not wait for an earlier call says nothing, and never waits") {
  Training training(10);
  int done = 0;
  training.run(24, 2, [&](Communicator& world, int rank, int step, Buffers& buffers) {
    Call calls[2] = {tagged(buffers[0], 4), tagged(buffers[1], 4)};
    for (Call& call : calls) call.may_wait = false;
    Request first = world.start(calls[0]);
    if (step < 12) first.wait();
    else if (rank == 1) wait_for(training.nodes, done, step - 11);
    Request second = world.start(calls[1]);
    if (step >= 12 && rank == 0) ++done;
    if (step >= 12) first.wait();
    second.wait();
  });
  training.check_sums();
  CHECK(training.learned() == 0);
}

// A reduce keeps what it has: whoever is late, its root hears one message's time.
TEST_CASE("started: rooted calls take those for late whom the last allreduce has named") {
  Nodes nodes(kRanks, 11);
  std::vector<std::string> reduce(kRanks), from_late(kRanks), other(kRanks), short_one(kRanks);
  int wrong = 0;
  const bool ended = nodes.run(learning, [&](Communicator& world, int rank) {
    const auto at = std::size_t(rank);
    std::vector<std::int32_t> sums(kCount), from(kCount), sent(kCount);
    Call sum{Collective::allreduce, Type::i32, Op::sum};
    Call rooted{Collective::reduce, Type::i32, Op::sum};
    Call told{Collective::broadcast, Type::i32};
    sum.count = rooted.count = told.count = kCount;
    sum.input = sum.output = sums.data();
    rooted.input = from.data();
    rooted.output = sums.data();
    told.output = sent.data();
    for (int step = 0; step < 30; ++step) {
      if (rank == kLate) nodes.fibers.sleep(kGapS);
      std::fill(sums.begin(), sums.end(), rank);
      std::fill(from.begin(), from.end(), rank + step);
      std::fill(sent.begin(), sent.end(), rank == 1 ? step : -1);
      world.start(sum).wait();
      wrong += sums[7] != 6;
      told.root = 1;
      reduce[at] = world.explain(rooted);
      other[at] = world.explain(told);
      world.start(rooted).wait();
      world.run(told);
      if (rank == 0) wrong += sums[kCount - 1] != 6 + 4 * step;
      wrong += sent[kCount / 2] != step;
    }
    told.root = kLate;
    from_late[at] = world.explain(told);
    told.count = 16;
    short_one[at] = world.explain(told);
  });
  CHECK(ended);
  CHECK(nodes.trouble() == "");
  CHECK(wrong == 0);
  for (int r = 0; r < kRanks; ++r) {
    const auto at = std::size_t(r);
    CHECK_MESSAGE(says(reduce[at], "taken for late: 2"), reduce[at]);
    CHECK(reduce[at] == reduce[0]);
    CHECK(other[at] == other[0]);
    CHECK_MESSAGE(says(other[at], "sorted_chain, "), other[at]);
    CHECK_MESSAGE(says(from_late[at], "taken for late: none"), from_late[at]);
    CHECK_MESSAGE(!says(short_one[at], "arrivals"), short_one[at]);
  }
}

}  // namespace paceline::fuzz
