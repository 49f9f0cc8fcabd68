// What a caller can do wrong, and what may happen to it: a code, and a message with values.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "ranks.hpp"

namespace capi {
namespace {

using namespace std::chrono_literals;

template <class Change>
paceline_call changed(paceline_call call, Change&& change) {
  change(call);
  return call;
}

TEST_CASE("an algorithm that the options name and that cannot serve is refused when it is called") {
  const Variable option("PACELINE_ALGORITHM", "allreduce=symmetric");
  with_ranks(2, [](paceline_comm* world, int) {   // starting warms up with an allreduce
    std::vector<float> x(3);
    CHECK(paceline_barrier(world) == PACELINE_OK);
    CHECK_FAULT(paceline_allreduce(world, x.data(), x.data(), x.size(), PACELINE_F32,
                                   PACELINE_SUM),
                PACELINE_REFUSAL, "allreduce/symmetric");
  });
}

TEST_CASE("null in place of a handle or a variable") {
  std::vector<double> x(3);
  const paceline_call call = allreduce_of(x);
  paceline_request* request = nullptr;
  paceline_plan* plan = nullptr;
  int done = 0;
  CHECK_FAULT(paceline_barrier(nullptr), PACELINE_USAGE, "barrier: the communicator is null");
  CHECK_FAULT(paceline_run(nullptr, &call), PACELINE_USAGE, "the communicator is null");
  CHECK_FAULT(paceline_start(nullptr, &call, &request), PACELINE_USAGE, "communicator is null");
  CHECK_FAULT(paceline_plan_create(nullptr, &call, &plan), PACELINE_USAGE, "communicator is null");
  CHECK_FAULT(paceline_plan_start(nullptr, &request), PACELINE_USAGE, "the plan is null");
  CHECK_FAULT(paceline_wait(&request), PACELINE_USAGE, "the request is null");
  CHECK_FAULT(paceline_test(&request, &done), PACELINE_USAGE, "the request is null");
  CHECK(done == 1);  // or a loop around it would never end
  done = 0;
  CHECK_FAULT(paceline_wait_for(&request, 5, &done), PACELINE_USAGE, "the request is null");
  CHECK(done == 1);
  CHECK_FAULT(paceline_wait(nullptr), PACELINE_USAGE, "address of the request");
  CHECK_FAULT(paceline_free(nullptr), PACELINE_USAGE, "address of the communicator");
  CHECK_FAULT(paceline_finalize(nullptr), PACELINE_USAGE, "address of the communicator");
  CHECK_FAULT(paceline_plan_free(nullptr), PACELINE_USAGE, "address of the plan");
  CHECK_OK(paceline_plan_free(&plan));
  CHECK(paceline_rank(nullptr) == -1);
  CHECK(error_has("paceline_rank: the communicator is null"));
  CHECK(paceline_size(nullptr) == -1);
  CHECK_FAULT(paceline_split(nullptr, 0, 0, nullptr), PACELINE_USAGE, "comm is null");
  CHECK_FAULT(paceline_set_timeout(nullptr, 5), PACELINE_USAGE, "the communicator is null");
}

TEST_CASE("what is no handle is seen") {
  alignas(16) char nothing[256] = {};
  auto* comm = reinterpret_cast<paceline_comm*>(nothing);
  auto* request = reinterpret_cast<paceline_request*>(nothing);
  auto* plan = reinterpret_cast<paceline_plan*>(nothing);
  CHECK_FAULT(paceline_barrier(comm), PACELINE_USAGE, "is no communicator");
  CHECK_FAULT(paceline_free(&comm), PACELINE_USAGE, "is no communicator");
  CHECK_FAULT(paceline_finalize(&comm), PACELINE_USAGE, "is no communicator");
  CHECK_FAULT(paceline_wait(&request), PACELINE_USAGE, "is no request");
  CHECK_FAULT(paceline_plan_free(&plan), PACELINE_USAGE, "is no plan");
  CHECK(comm != nullptr);
}

struct Wrong {
  const char* words;
  void (*change)(paceline_call&);
};

std::size_t counts[] = {1, 2, 3};
double piece[8];

// On rank 1 of 3, from a right allreduce of three doubles.
const Wrong kWrong[] = {
    {"call.size is 0", [](paceline_call& c) { c.size = 0; }},
    {"call.size is 95", [](paceline_call& c) { c.size = 95; }},
    {"call.size is 99999", [](paceline_call& c) { c.size = 99999; }},
    {"collective is 0", [](paceline_call& c) { c.collective = paceline_collective{}; }},
    {"collective is 10", [](paceline_call& c) { c.collective = paceline_collective(10); }},
    {"collective is -1", [](paceline_call& c) { c.collective = paceline_collective(-1); }},
    {"type is 0", [](paceline_call& c) { c.type = paceline_type{}; }},
    {"type is 14", [](paceline_call& c) { c.type = paceline_type(14); }},
    {"op is 0", [](paceline_call& c) { c.op = paceline_op{}; }},
    {"op is 12", [](paceline_call& c) { c.op = paceline_op(12); }},
    {"timeout_ms is -1", [](paceline_call& c) { c.timeout_ms = -1; }},
    {"Was it negative?", [](paceline_call& c) { c.count = std::size_t(-5); }},
    {"a buffer is missing", [](paceline_call& c) { c.input = nullptr; }},
    {"a buffer is missing", [](paceline_call& c) { c.output = nullptr; }},
    {"overlap", [](paceline_call& c) { c.output = piece + 1, c.input = piece; }},
    {"takes one count",
     [](paceline_call& c) {
       c.counts = counts;
       c.count = 0;
     }},
    {"only alltoall", [](paceline_call& c) { c.counts_received = counts; }},
    {"root 3 is not a rank",
     [](paceline_call& c) { c.collective = PACELINE_BROADCAST, c.root = 3; }},
    {"root -1 is not a rank",
     [](paceline_call& c) { c.collective = PACELINE_REDUCE, c.root = -1; }},
    {"counts[1] of this rank is 2",
     [](paceline_call& c) { c.collective = PACELINE_ALLGATHER, c.counts = counts; }},
    {"0 counts for 3 ranks",
     [](paceline_call& c) { c.collective = PACELINE_ALLGATHER, c.uneven = 1; }},
    {"0 received counts",
     [](paceline_call& c) { c.collective = PACELINE_ALLTOALL, c.counts = counts; }}};

TEST_CASE("a wrong call is found before anything is sent") {
  with_ranks(3, [](paceline_comm* world, int rank) {
    std::vector<double> x(3, rank + 1.0);
    const paceline_call right = allreduce_of(x);
    if (rank == 1)  // the others know nothing of it
      for (const Wrong& wrong : kWrong) {
        const paceline_call call = changed(right, wrong.change);
        auto* request = reinterpret_cast<paceline_request*>(&x);
        auto* plan = reinterpret_cast<paceline_plan*>(&x);
        CHECK_FAULT(paceline_run(world, &call), PACELINE_USAGE, wrong.words);
        CHECK_FAULT(paceline_start(world, &call, &request), PACELINE_USAGE, wrong.words);
        CHECK_FAULT(paceline_plan_create(world, &call, &plan), PACELINE_USAGE, wrong.words);
        CHECK(request == nullptr);
        CHECK(plan == nullptr);
      }
    if (rank == 1) {
      CHECK_FAULT(paceline_run(world, nullptr), PACELINE_USAGE, "call is null");
      CHECK_FAULT(paceline_start(world, &right, nullptr), PACELINE_USAGE, "request is null");
      CHECK_FAULT(paceline_plan_create(world, &right, nullptr), PACELINE_USAGE, "plan is null");
    }
    CHECK_OK(paceline_run(world, &right));
    CHECK(x[2] == 6.0);
  });
}

TEST_CASE("a call of a newer header is taken while it asks for nothing new") {
  struct Longer {
    paceline_call call;
    long more;
  };
  with_ranks(2, [](paceline_comm* world, int rank) {
    std::vector<double> x(3, rank + 1.0);
    Longer longer{allreduce_of(x), 0};
    longer.call.size = sizeof longer;
    CHECK_OK(paceline_run(world, &longer.call));
    CHECK(x[0] == 3.0);
    longer.more = 1;
    const std::string size = "call.size is " + std::to_string(sizeof longer);
    CHECK_FAULT(paceline_run(world, &longer.call), PACELINE_REFUSAL, size);
  });
}

TEST_CASE("ranks that disagree hear of it, and the communicator is broken") {
  with_ranks(2, [](paceline_comm* world, int rank) {
    std::vector<double> x(rank == 0 ? 10 : 11, 1.0);
    paceline_comm* part = nullptr;
    CHECK_OK(paceline_dup(world, &part));
    const paceline_call call = allreduce_of(x);
    CHECK_FAULT(paceline_run(part, &call), PACELINE_MISMATCH, "rank 0: 10, rank 1: 11");
    CHECK_FAULT(paceline_barrier(part), PACELINE_MISMATCH, "rank 0: 10, rank 1: 11");
    CHECK_OK(paceline_free(&part));
    CHECK_OK(paceline_barrier(world));  // another communicator
  });
}

TEST_CASE("a rank that does not come is an error for who waits") {
  std::atomic<bool> late{false};
  with_ranks(2, [&](paceline_comm* world, int rank) {
    std::vector<double> x(10, 1.0);
    paceline_call call = allreduce_of(x);
    if (rank == 1) {
      while (!late) std::this_thread::sleep_for(1ms);
      CHECK_FAULT(paceline_run(world, &call), PACELINE_TIMEOUT, "allreduce");
      return;
    }
    CHECK_FAULT(paceline_set_timeout(world, 0), PACELINE_USAGE, "at least 1");
    CHECK_OK(paceline_set_timeout(world, 100));
    paceline_request* request = nullptr;
    CHECK_OK(paceline_start(world, &call, &request));
    int done = 0;
    paceline_status status = PACELINE_OK;
    while (!done) status = paceline_wait_for(&request, 10'000, &done);
    CHECK_FAULT(status, PACELINE_TIMEOUT, "has waited 0.1 s");
    CHECK(error_has("rank 1"));
    CHECK(request == nullptr);
    late = true;
  });
}

TEST_CASE("a rank that has left is an error for who waits") {
  with_ranks(2, [](paceline_comm* world, int rank) {
    CHECK_OK(paceline_barrier(world));
    if (rank == 1) return;
    CHECK_FAULT(paceline_barrier(world), PACELINE_LOST, "rank 1");
    paceline_request* request = nullptr;
    const paceline_call call = call_of(PACELINE_BARRIER);
    CHECK_FAULT(paceline_start(world, &call, &request), PACELINE_LOST, "rank 1");
    CHECK(request == nullptr);
  });
}

TEST_CASE("every thread has its own last error, which stays until the next") {
  std::thread([] {
    CHECK(std::string(paceline_error()).empty());
    paceline_comm* world = nullptr;
    CHECK_FAULT(paceline_barrier(nullptr), PACELINE_USAGE, "barrier");
    CHECK_OK(paceline_init_store(nullptr, 0, 1, &world));
    CHECK(error_has("barrier"));
    std::thread([] {
      CHECK_FAULT(paceline_free(nullptr), PACELINE_USAGE, "paceline_free");
    }).join();
    CHECK(error_has("barrier"));
    const std::string before = paceline_error();
    // Longer than what is kept of a message: cut, and it shows.
    const std::string name(5000, 'x');
    paceline_call call = call_of(PACELINE_BARRIER);
    call.algorithm = name.c_str();
    CHECK_FAULT(paceline_run(world, &call), PACELINE_USAGE, "xxx");
    CHECK(std::string(paceline_error()).size() == 2047);
    CHECK(std::string(paceline_error()).ends_with("x..."));
    CHECK_OK(paceline_finalize(&world));
  }).join();
}

}  // namespace
}  // namespace capi
