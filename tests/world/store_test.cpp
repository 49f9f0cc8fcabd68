// Stores of every type: sums of keys over the ranks, in rounds, as plans cut them; and the errors
// of the other ranks if one cannot make its call.
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "expect_fault.hpp"
#include "graph/engine.hpp"
#include "store/auto.hpp"
#include "store/types.hpp"
#include "world/rank_threads.hpp"

namespace paceline {
namespace {

using store::Auto;
using store::Store;
using Order = std::vector<std::size_t>;
using Make = std::function<std::unique_ptr<Store>(graph::Engine&, Communicator)>;

const std::vector<std::size_t> kCounts = {1, 1000, 3, 0, 9000};   // elements of the keys

// A whole number, different for each rank, round, key and index; sums of a few are exact.
double value_of(int rank, int round, std::size_t key, std::size_t i) {
  return 1e7 * (rank + 1) * (round + 1) + 1e5 * double(key) + double(i);
}

// A store with keys, and an array of this rank for each.
class Rank {
 public:
  Rank(int rank, Communicator world, const Make& make)
      : rank_(rank), ranks_(world.size()), store(make(engine_, std::move(world))) {
    for (std::size_t key = 0; key < kCounts.size(); ++key) {
      buffers_.emplace_back(kCounts[key]), arrays_.emplace_back(kCounts[key]);
      store->add({.name = str("key ", key), .type = Type::f64, .count = kCounts[key],
                  .data = reinterpret_cast<std::byte*>(buffers_[key].data())});
    }
  }
  ~Rank() { engine_.close(); }
  Rank(const Rank&) = delete;

  static Order all() { return {0, 1, 2, 3, 4}; }

  void push(int round, const Order& keys) {
    store->expect(keys);
    for (std::size_t key : keys) {
      engine_.wait(store->variable(key), nullptr);   // what reads the array of the last round
      for (std::size_t i = 0; i < kCounts[key]; ++i)
        arrays_[key][i] = value_of(rank_, round, key, i);
      store::Transfer value{.from = arrays_[key].data(), .to = store->data(key),
                            .bytes = kCounts[key] * sizeof(double)};
      store->push(&key, &value, 1, 0);
    }
  }

  // Returns the sum that is wrong; empty: none.
  std::string pull(int round, const Order& keys) {
    std::vector<store::Transfer> into;
    for (std::size_t key : keys)
      into.push_back({.from = store->data(key), .to = arrays_[key].data(),
                      .bytes = kCounts[key] * sizeof(double)});
    store->pull(keys, into, 0);
    store->wait(keys);
    for (std::size_t key : keys)
      for (std::size_t i = 0; i < kCounts[key]; ++i) {
        double sum = 0;
        for (int rank = 0; rank < ranks_; ++rank) sum += value_of(rank, round, key, i);
        if (arrays_[key][i] != sum)
          return str("key ", key, ", element ", i, " of round ", round, ": ", arrays_[key][i],
                     " and not ", sum);
      }
    return {};
  }

  // For type auto: plans buckets of these keys, in pieces, called in this order.
  void set_plan(const std::vector<Order>& buckets, std::size_t pieces, const Order& order) {
    std::vector<Auto::BucketSpec> specs;
    for (const Order& keys : buckets) {
      std::size_t count = 0;
      for (std::size_t key : keys) count += kCounts[key];
      auto memory = std::make_shared<std::vector<double>>(count);
      specs.push_back({keys, reinterpret_cast<std::byte*>(memory->data()), pieces, memory});
    }
    static_cast<Auto&>(*store).set_plan(specs, order);
  }

 private:
  graph::Engine engine_{{}};
  const int rank_, ranks_;
  std::vector<std::vector<double>> buffers_, arrays_;

 public:
  const std::unique_ptr<Store> store;
};

Make make_auto(std::size_t outstanding, std::function<void()> plan = [] {}) {
  return [=](graph::Engine& engine, Communicator world) {
    return std::make_unique<Auto>(engine, std::move(world), Op::sum, nullptr,
                                  Auto::Options{outstanding, plan});
  };
}

std::unique_ptr<Store> make_depcha(graph::Engine& engine, Communicator world) {
  return std::make_unique<store::DepCha>(engine, std::move(world), Op::sum, nullptr);
}

std::unique_ptr<Store> make_funnel(graph::Engine& engine, Communicator world) {
  return std::make_unique<store::Funnel>(engine, std::move(world), Op::sum, nullptr);
}

std::unique_ptr<Store> make_concom(graph::Engine& engine, Communicator world) {
  store::ConCom::Options options{2, {}};
  for (int i = 0; i < 3; ++i) options.communicators.push_back(world.dup());
  return std::make_unique<store::ConCom>(engine, std::move(world), Op::sum, nullptr,
                                         std::move(options));
}

// Four rounds in which each rank pushes all keys, in an order of its own.
std::string rounds_of(int ranks, const Make& make, const std::function<void(Rank&)>& plan,
                      const std::function<Order(int rank)>& order) {
  return test::run_ranks(ranks, [&](int rank, Communicator world) {
    Rank own(rank, std::move(world), make);
    if (plan) plan(own);
    for (int round = 0; round < 4; ++round) {
      own.push(round, order(rank));
      const std::string wrong = own.pull(round, Rank::all());
      if (!wrong.empty()) fail(Fault::internal, wrong);
    }
    own.store->barrier();
  });
}

Order in_order(int) { return Rank::all(); }

}  // namespace

TEST_CASE("store: keys of every type are summed, round after round") {
  for (int ranks : {1, 2, 3, 5}) {
    CHECK(rounds_of(ranks, make_funnel, nullptr, in_order) == "");
    CHECK(rounds_of(ranks, make_concom, nullptr, in_order) == "");
    CHECK(rounds_of(ranks, make_depcha, nullptr, in_order) == "");
    CHECK(rounds_of(ranks, make_auto(2), nullptr, in_order) == "");
  }
}

TEST_CASE("store: a plan's buckets are called alike, in whatever order ranks push their keys") {
  const auto other_way = [](int rank) { return rank == 1 ? Order{4, 2, 0, 3, 1} : Rank::all(); };
  for (std::size_t pieces : {1, 3})
    for (const Order& once : {Order{0, 1}, Order{1, 0}}) {
      const auto plan = [&](Rank& own) {
        Order order;
        for (std::size_t bucket : once) order.insert(order.end(), pieces, bucket);
        own.set_plan({{2, 0}, {1, 4, 3}}, pieces, order);
      };
      for (int ranks : {2, 3}) CHECK(rounds_of(ranks, make_auto(1), plan, other_way) == "");
    }
}

TEST_CASE("store: keys of a bucket that stays incomplete have calls of their own") {
  CHECK(test::run_ranks(3, [](int rank, Communicator world) {
    Rank own(rank, std::move(world), make_auto(2));
    own.set_plan({{0, 1, 2}, {3, 4}}, 1, {0, 1});
    std::string wrong;
    for (int round = 0; round < 3; ++round) {
      const Order pushed = round == 1 ? Order{2, 0} : Rank::all();
      own.push(round, pushed);
      wrong += own.pull(round, pushed);
    }
    if (!wrong.empty()) fail(Fault::internal, wrong);
  }) == "");
}

TEST_CASE("store: the rest of a bucket that is partly called is called") {
  CHECK(test::run_ranks(2, [](int rank, Communicator world) {
    Rank own(rank, std::move(world), make_auto(1));
    own.set_plan({{0, 1}, {3, 4}}, 2, {0, 1, 0, 1});
    std::string wrong;
    for (int round = 0; round < 2; ++round) {
      own.push(round, {0, 3, 1});
      wrong += own.pull(round, {0, 1, 3});
    }
    if (!wrong.empty()) fail(Fault::internal, wrong);
  }) == "");
}

TEST_CASE("store: a round that had a key without a bucket ends with a plan, others do not") {
  int plans = 0;
  CHECK(test::run_ranks(1, [&](int, Communicator world) {
    Rank* planned = nullptr;
    Rank own(0, std::move(world), make_auto(1, [&] {
               planned->set_plan({{0, 1, 2}}, 1, {0});
               ++plans;
             }));
    planned = &own;
    for (const Order& keys : {Order{0, 1, 2}, Order{1, 0, 2}, Order{2, 1, 0}}) {
      own.push(0, keys);
      own.store->wait();
    }
  }) == "");
  CHECK(plans == 1);
}

TEST_CASE("store: ranks whose plans differ are told, all of them") {
  CHECK(test::run_ranks(2, [](int rank, Communicator world) {
    Rank own(rank, std::move(world), make_auto(1));
    own.set_plan({rank == 0 ? Order{0, 2} : Order{2, 0}}, 1, {0});
    const std::string wrong = test::expect_fault(Fault::mismatch, {"the tag differs"}, [&] {
      own.push(0, {0, 2});
      own.store->wait();
    });
    if (!wrong.empty()) fail(Fault::internal, wrong);
  }) == "");
}

TEST_CASE("store: a value that fails on one rank is told by that rank to all") {
  for (const Make& make : {Make(make_funnel), Make(make_concom), Make(make_depcha), make_auto(1)})
    CHECK(test::run_ranks(2, [&](int rank, Communicator world) {
      Rank own(rank, std::move(world), make);
      const auto exchange = [&] {
        const std::size_t key = 1;
        store::Transfer value{.from = nullptr, .to = own.store->data(key), .bytes = 0};
        if (rank == 1) value.work = [] { fail(Fault::usage, "the value is gone"); };
        own.store->expect({key});
        own.store->push(&key, &value, 1, 0);
        own.store->wait();
      };
      test::expect_told(rank, "the value is gone", {"the value is gone"}, exchange);
    }) == "");
}

TEST_CASE("store: no bucket of a plan that has none") {
  CHECK(test::run_ranks(1, [](int, Communicator world) {
    Rank own(0, std::move(world), make_auto(1));
    const auto push = [&] { static_cast<Auto&>(*own.store).push_bucket(0); };
    const std::string wrong = test::expect_fault(Fault::internal, {"there is no bucket 0"}, push);
    if (!wrong.empty()) fail(Fault::internal, wrong);
  }) == "");
  for (int priority : {kLeastUrgent - 1, kMostUrgent + 1})
    CHECK(test::expect_fault(Fault::usage, {str(priority)},
                             [&] { store::Store::check_priority(priority); }) == "");
  for (int priority : {kLeastUrgent, 0, kMostUrgent}) store::Store::check_priority(priority);
}

}  // namespace paceline
