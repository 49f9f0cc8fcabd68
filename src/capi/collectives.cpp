// Calls: blocking, non-blocking, persistent; each is a paceline_call in the end.
#include "edge.hpp"

using namespace paceline;
using namespace paceline::capi;

namespace {

paceline_status run(paceline_comm* comm, const paceline_call* call, const char* where) {
  return guarded([&] {
    Communicator& communicator = alive(comm, where).communicator;
    communicator.run(call_from(call, communicator, where));
  });
}

paceline_call call_of(paceline_collective collective, const void* input, void* output,
                      std::size_t count, paceline_type type) {
  paceline_call call{};
  call.size = sizeof call;
  call.collective = collective;
  call.type = type;
  call.input = input;
  call.output = output;
  call.count = count;
  return call;
}

// Tests a request, and frees it if it is over or if `over` throws.
template <class Ask>
void ask(paceline_request** request, const char* where, Ask&& over) {
  paceline_request*& mine = held(request, where);
  alive(mine, where);
  struct Ends {
    paceline_request*& request;
    bool over = true;
    ~Ends() {
      if (over) delete std::exchange(request, nullptr);
    }
  } ends{mine};
  ends.over = over(mine->request);
}

}  // namespace

paceline_status paceline_run(paceline_comm* comm, const paceline_call* call) {
  return run(comm, call, "paceline_run");
}

paceline_status paceline_allreduce(paceline_comm* comm, const void* input, void* output,
                                   std::size_t count, paceline_type type, paceline_op op) {
  paceline_call call = call_of(PACELINE_ALLREDUCE, input, output, count, type);
  call.op = op;
  return run(comm, &call, "allreduce");
}

paceline_status paceline_broadcast(paceline_comm* comm, void* buffer, std::size_t count,
                                   paceline_type type, int root) {
  paceline_call call = call_of(PACELINE_BROADCAST, nullptr, buffer, count, type);
  call.root = root;
  return run(comm, &call, "broadcast");
}

paceline_status paceline_reduce(paceline_comm* comm, const void* input, void* output,
                                std::size_t count, paceline_type type, paceline_op op, int root) {
  paceline_call call = call_of(PACELINE_REDUCE, input, output, count, type);
  call.op = op;
  call.root = root;
  return run(comm, &call, "reduce");
}

paceline_status paceline_reduce_scatter(paceline_comm* comm, const void* input, void* output,
                                        std::size_t count, paceline_type type, paceline_op op) {
  paceline_call call = call_of(PACELINE_REDUCE_SCATTER, input, output, count, type);
  call.op = op;
  return run(comm, &call, "reduce_scatter");
}

paceline_status paceline_allgather(paceline_comm* comm, const void* input, void* output,
                                   std::size_t count, paceline_type type) {
  const paceline_call call = call_of(PACELINE_ALLGATHER, input, output, count, type);
  return run(comm, &call, "allgather");
}

paceline_status paceline_alltoall(paceline_comm* comm, const void* input, void* output,
                                  std::size_t count, paceline_type type) {
  const paceline_call call = call_of(PACELINE_ALLTOALL, input, output, count, type);
  return run(comm, &call, "alltoall");
}

paceline_status paceline_gather(paceline_comm* comm, const void* input, void* output,
                                std::size_t count, paceline_type type, int root) {
  paceline_call call = call_of(PACELINE_GATHER, input, output, count, type);
  call.root = root;
  return run(comm, &call, "gather");
}

paceline_status paceline_scatter(paceline_comm* comm, const void* input, void* output,
                                 std::size_t count, paceline_type type, int root) {
  paceline_call call = call_of(PACELINE_SCATTER, input, output, count, type);
  call.root = root;
  return run(comm, &call, "scatter");
}

paceline_status paceline_barrier(paceline_comm* comm) {
  const paceline_call call = call_of(PACELINE_BARRIER, nullptr, nullptr, 0, paceline_type{});
  return run(comm, &call, "barrier");
}

paceline_status paceline_start(paceline_comm* comm, const paceline_call* call,
                               paceline_request** request) {
  constexpr auto where = "paceline_start";
  return guarded([&] {
    auto& made = place(request, where, "request");
    Communicator& communicator = alive(comm, where).communicator;
    made = new paceline_request{communicator.start(call_from(call, communicator, where))};
  });
}

paceline_status paceline_test(paceline_request** request, int* done) {
  return guarded([&] {
    place(done, "paceline_test", "done") = 1;
    ask(request, "paceline_test", [&](Request& mine) { return (*done = mine.test()) != 0; });
  });
}

paceline_status paceline_wait(paceline_request** request) {
  return guarded([&] {
    ask(request, "paceline_wait", [](Request& mine) {
      mine.wait();
      return true;
    });
  });
}

paceline_status paceline_wait_for(paceline_request** request, int milliseconds, int* done) {
  constexpr auto where = "paceline_wait_for";
  return guarded([&] {
    place(done, where, "done") = 1;
    if (milliseconds < 0)
      fail(Fault::usage, where, ": milliseconds is ", milliseconds, "; it must be at least 0.");
    ask(request, where, [&](Request& mine) { return (*done = mine.wait_for(milliseconds)) != 0; });
  });
}

paceline_status paceline_plan_create(paceline_comm* comm, const paceline_call* call,
                                     paceline_plan** plan) {
  constexpr auto where = "paceline_plan_create";
  return guarded([&] {
    auto& made = place(plan, where, "plan");
    Communicator& communicator = alive(comm, where).communicator;
    made = new paceline_plan{communicator.plan(call_from(call, communicator, where))};
  });
}

paceline_status paceline_plan_start(paceline_plan* plan, paceline_request** request) {
  constexpr auto where = "paceline_plan_start";
  return guarded([&] {
    auto& made = place(request, where, "request");
    made = new paceline_request{alive(plan, where).plan.start()};
  });
}

paceline_status paceline_plan_free(paceline_plan** plan) {
  return guarded([&] { free_handle(plan, "paceline_plan_free"); });
}
