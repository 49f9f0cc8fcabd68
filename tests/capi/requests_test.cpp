// What is not waited for at once: requests and plans.
#include <atomic>
#include <chrono>
#include <thread>

#include "ranks.hpp"

namespace capi {
namespace {

using namespace std::chrono_literals;

TEST_CASE("several requests under way end in any order") {
  with_ranks(3, [](paceline_comm* world, int rank) {
    constexpr int kMany = 12;
    std::vector<std::vector<double>> x;
    for (int k = 0; k < kMany; ++k) x.emplace_back(std::size_t(100 * k + 1), 10.0 * rank + k);
    std::vector<paceline_request*> requests(kMany);
    for (int k = 0; k < kMany; ++k) {
      const paceline_call call = allreduce_of(x[std::size_t(k)]);
      CHECK_OK(paceline_start(world, &call, &requests[std::size_t(k)]));
    }
    for (int i = 0; i < kMany; ++i) {
      const auto k = std::size_t(i * 5 % kMany);  // 5 and 12 have no divisor in common
      CHECK_OK(paceline_wait(&requests[k]));
      CHECK(requests[k] == nullptr);
      CHECK(x[k].back() == 30.0 + 3 * double(k));
    }
  });
}

TEST_CASE("waiting for a while is no error, and the collective goes on") {
  std::atomic<bool> waited{false};
  with_ranks(2, [&](paceline_comm* world, int rank) {
    std::vector<double> x(1000, rank + 1.0);
    const paceline_call call = allreduce_of(x);
    if (rank == 1) {
      while (!waited) std::this_thread::sleep_for(1ms);
      CHECK_OK(paceline_run(world, &call));
      return;
    }
    paceline_request* request = nullptr;
    CHECK_OK(paceline_start(world, &call, &request));
    int done = -1;
    CHECK_OK(paceline_wait_for(&request, 20, &done));
    CHECK(done == 0);
    CHECK(request != nullptr);
    done = -1;
    CHECK_OK(paceline_wait_for(&request, 0, &done));
    CHECK(done == 0);
    CHECK_OK(paceline_test(&request, &done));
    CHECK(done == 0);
    waited = true;
    CHECK_OK(paceline_wait(&request));
    CHECK(x[999] == 3.0);
  });
}

TEST_CASE("a plan sends what lies in its buffers when it is started") {
  with_ranks(3, [](paceline_comm* world, int rank) {
    std::vector<double> x(500);
    const paceline_call call = allreduce_of(x);
    paceline_plan* plan = nullptr;
    CHECK_OK(paceline_plan_create(world, &call, &plan));
    for (int turn = 0; turn < 50; ++turn) {
      std::fill(x.begin(), x.end(), 1000.0 * turn + rank);
      paceline_request* request = nullptr;
      CHECK_OK(paceline_plan_start(plan, &request));
      CHECK_OK(paceline_wait(&request));
      CHECK(x[499] == 3000.0 * turn + 3);
    }
    CHECK_OK(paceline_plan_free(&plan));
    CHECK(plan == nullptr);
  });
}

TEST_CASE("a plan that is under way cannot be started") {
  std::atomic<bool> tried{false};
  with_ranks(2, [&](paceline_comm* world, int rank) {
    std::vector<double> x(10, rank + 1.0);
    const paceline_call call = allreduce_of(x);
    paceline_plan* plan = nullptr;
    paceline_request *request = nullptr, *second = nullptr;
    CHECK_OK(paceline_plan_create(world, &call, &plan));
    while (rank == 1 && !tried) std::this_thread::sleep_for(1ms);
    CHECK_OK(paceline_plan_start(plan, &request));
    if (rank == 0) {
      CHECK_FAULT(paceline_plan_start(plan, &second), PACELINE_USAGE, "under way");
      CHECK(second == nullptr);
      tried = true;
    }
    CHECK_OK(paceline_wait(&request));
    CHECK(x[0] == 3.0);
    CHECK_OK(paceline_plan_free(&plan));
  });
}

TEST_CASE("requests and plans outlive the handles that they came from") {
  with_ranks(2, [](paceline_comm* world, int rank) {
    paceline_comm* copy = nullptr;
    CHECK_OK(paceline_dup(world, &copy));
    std::vector<double> x(2000, rank + 1.0), y(2000, rank + 2.0);
    paceline_call first = allreduce_of(x), second = allreduce_of(y);
    paceline_request *request = nullptr, *planned = nullptr;
    paceline_plan* plan = nullptr;
    CHECK_OK(paceline_start(copy, &first, &request));
    CHECK_OK(paceline_plan_create(copy, &second, &plan));
    first = second = call_of(PACELINE_BARRIER);  // the calls are not needed any more
    CHECK_OK(paceline_plan_start(plan, &planned));
    CHECK_OK(paceline_plan_free(&plan));
    CHECK_OK(paceline_free(&copy));
    CHECK_OK(paceline_wait(&planned));
    CHECK_OK(paceline_wait(&request));
    CHECK(x[1999] == 3.0);
    CHECK(y[1999] == 5.0);
  });
}

TEST_CASE("options of a call reach it") {
  with_ranks(2, [](paceline_comm* world, int rank) {
    std::vector<double> x(4096, rank + 1.0);
    paceline_call call = allreduce_of(x);
    call.algorithm = "ring";
    call.segments = 4;
    call.window = 2;
    CHECK_OK(paceline_run(world, &call));
    CHECK(x[4095] == 3.0);
    call.algorithm = "rung";
    CHECK_FAULT(paceline_run(world, &call), PACELINE_USAGE, "rung");
    call.algorithm = "";  // chosen, as with NULL
    CHECK_OK(paceline_run(world, &call));
    CHECK(x[4095] == 6.0);
    call.algorithm = "recursive_multiplying";
    call.radix = 2;
    CHECK_OK(paceline_run(world, &call));
    call.algorithm = "dual_root";
    call.radix = 0;
    call.blocks = 3;
    CHECK_OK(paceline_run(world, &call));
    CHECK(x[4095] == 24.0);
    call.blocks = 0;
    for (int* knob : {&call.segments, &call.window, &call.radix, &call.blocks}) {
      const int before = *knob;
      *knob = -3;
      CHECK_FAULT(paceline_run(world, &call), PACELINE_USAGE, "-3");
      *knob = before;
    }
    call.algorithm = rank == 0 ? "ring" : "recursive_doubling";  // the same on all ranks, or else
    CHECK_FAULT(paceline_run(world, &call), PACELINE_MISMATCH, "algorithm");
  });
}

}  // namespace
}  // namespace capi
