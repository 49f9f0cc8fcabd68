// Processes that each have a device: collectives through pinned memory of the host, as a pipeline.
#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "device/emulation.hpp"
#include "engine/device_end.hpp"
#include "process/ranks.hpp"
#include "runtime/progress/clock.hpp"
#include "world/cases.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using device::Emulation;
using device::Stream;
using test::Buffers;
using test::Case;
using test::run_ranks;

// One rank's device.
struct Mine {
  std::shared_ptr<Emulation> driver;
  std::shared_ptr<DeviceEnd> end;
  Stream stream;

  explicit Mine(int rank, bool threads = true)
      : driver(std::make_shared<Emulation>(device::EmulationOptions{
            .devices = 2, .threads = threads, .seed = std::uint64_t(rank) + 7})),
        end(std::make_shared<DeviceEnd>(driver, rank % 2, now_s)),
        stream(driver->make_stream(rank % 2)) {}

  OnDevice place() const { return {end, stream}; }
  void wait() const {
    const device::Event event = end->take_event();
    driver->record(event, stream);
    driver->synchronize(event);
    end->give(event);
  }
};

template <class T>
std::string run_case(Communicator& world, const Mine& mine, const Case& c, int number) {
  Buffers<T> data(c, world.rank());
  Call call = data.call();
  call.device = mine.place();
  if (number % 2) {
    world.run(call);
    return data.check();
  }
  Request request = world.start(call);
  request.join(mine.stream);
  mine.wait();          // the stream, not the request
  std::string bad = data.check();
  request.wait();
  return bad;
}

TEST_CASE("device: every algorithm of messages keeps its contract between processes") {
  for (int p : {1, 2, 3, 4}) {
    const std::string bad = run_ranks(p, 240, [p](int rank, const std::string& folder) {
      Communicator world = test::join(rank, p, folder, 20000, Progress::thread);
      std::string wrong;
      for (bool threads : {false, true}) {
        const Mine mine(rank, threads);
        int number = 0;
        test::for_each_case(p, true, [&](const Case& c) {
          if (find_algorithm(c.collective, c.algorithm).is_load_store() || !wrong.empty()) return;
          if (++number % test::by_length(31, 9, 2) != 0) return;
          wrong = number % 2 ? run_case<float>(world, mine, c, number / 9)
                             : run_case<double>(world, mine, c, number / 9);
        });
      }
      return wrong;
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

TEST_CASE("device: many calls at once, each after what is on its stream, in one pool") {
  const std::string bad = run_ranks(3, 120, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 3, folder, 20000, Progress::thread);
    const Mine mine(rank);
    constexpr std::size_t kCount = 5000;
    std::vector<std::vector<float>> data(8, std::vector<float>(kCount)), from = data;
    std::size_t pinned = 0;
    for (int turn = 1; turn <= 3; ++turn) {
      std::vector<Request> requests;
      for (std::size_t k = 0; k < data.size(); ++k) {
        from[k].assign(kCount, float(turn * 100 + int(k) + rank));
        // The call must not begin before this copy, which its stream does first.
        mine.driver->copy(mine.stream, {{mine.end->device(), (std::byte*)data[k].data()},
                                        {device::kHost, (std::byte*)from[k].data()}, 4 * kCount});
        Call call{Collective::allreduce, Type::f32, Op::sum};
        call.algorithm = "ring";
        call.cut.segments = 4;
        call.cut.window = 3;
        call.count = kCount;
        call.input = call.output = data[k].data();
        call.device = mine.place();
        requests.push_back(world.start(call));
      }
      for (Request& request : requests) request.join(mine.stream);
      mine.wait();
      for (std::size_t k = 0; k < data.size(); ++k)
        if (data[k][kCount - 1] != float(3 * (turn * 100 + int(k)) + 3))
          return str("turn ", turn, " call ", k, ": ", data[k][kCount - 1]);
      for (Request& request : requests) request.wait();
      const StageTimes times = mine.end->times();
      if (turn == 1) pinned = times.pinned_bytes;
      if (times.calls != std::uint64_t(turn) * data.size()) return "calls are not counted";
      for (StageOf stage : {StageOf::copy_out, StageOf::send, StageOf::receive, StageOf::reduce,
                            StageOf::copy_in})
        if (times.busy_s[std::size_t(stage)] <= 0) return "a stage takes no time";
    }
    // Timing decides how many are under way at a time, but not more than there ever can be.
    if (mine.end->times().pinned_bytes > 4 * pinned + (1u << 20)) return "the pool grows";
    return "";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("device: a plan, and an average of integers") {
  const std::string bad = run_ranks(2, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 2, folder, 20000, Progress::thread);
    const Mine mine(rank);
    std::vector<std::int32_t> numbers(1001);
    Call call{Collective::allreduce, Type::i32, Op::average};
    call.count = numbers.size();
    call.input = call.output = numbers.data();
    call.device = mine.place();
    Plan plan = world.plan(call);
    for (int turn = 0; turn < 4; ++turn) {
      numbers.assign(1001, 10 * turn + 4 * rank);
      plan.start().wait();
      if (numbers[1000] != 10 * turn + 2) return str("turn ", turn, ": ", numbers[1000]);
    }
    return "";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

template <class Function>
std::string thrown_by(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("device: what goes wrong is an error on every rank, and streams go on") {
  const std::string bad = run_ranks(2, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 2, folder, 20000, Progress::thread), lost = world.dup();
    const Mine mine(rank);
    std::vector<float> numbers(1000, 1);
    Call call{Collective::allreduce, Type::f32, Op::sum};
    call.count = numbers.size();
    call.input = call.output = numbers.data();
    call.device = mine.place();

    Call other = call;   // before anything is sent
    other.device.stream = mine.driver->make_stream(1 - rank % 2);
    std::string said = thrown_by([&] { world.run(other); });
    if (said.find("pass a stream of the device") == std::string::npos) return said;
    other = call;
    other.algorithm = "staged";
    for (const Algorithm* a : registry())
      if (a->collective == Collective::allreduce && a->is_load_store()) other.algorithm = a->name;
    said = thrown_by([&] { world.run(other); });
    if (said.find(other.algorithm) == std::string::npos) return said;

    if (rank == 1) mine.driver->lose(1);
    said = thrown_by([&] {   // also by start(), where the other rank has said it already
      Request request = lost.start(call);
      request.join(mine.stream);
      request.wait();
    });
    if (said.find("device 1 has gone") == std::string::npos) return said;
    if (rank == 1) return "";
    mine.wait();   // nothing holds the stream
    return lost.broken().find("device 1 has gone") == std::string::npos ? lost.broken() : "";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// The mutants: streams that do not wait for each other, and one piece of pinned memory for all
// messages at once.
class Mutant : public Emulation {
 public:
  Mutant(std::uint64_t seed, bool loses_events, bool reuses_memory)
      : Emulation({.devices = 1, .seed = seed}), loses_events_(loses_events),
        reuses_memory_(reuses_memory) {}
  ~Mutant() override {
    if (block_) Emulation::release(device::kHost, block_);
  }
  using Emulation::release;
  using Emulation::wait;
  void wait(Stream stream, device::Event event) override {
    if (!loses_events_) Emulation::wait(stream, event);
  }
  std::byte* allocate(int device, std::size_t bytes) override {
    if (!reuses_memory_ || device != device::kHost || bytes <= kWords)
      return Emulation::allocate(device, bytes);
    if (!block_) block_ = Emulation::allocate(device, 1u << 20);
    return block_;
  }
  void release(int device, std::byte* memory) override {
    if (memory != block_) Emulation::release(device, memory);
  }

 private:
  // Words that streams wait for come in blocks so long: with one memory for two of them a call may
  // stand still. Messages are longer.
  static constexpr std::size_t kWords = 4096;
  const bool loses_events_, reuses_memory_;
  std::byte* block_ = nullptr;
};

// Whether some result of some calls is wrong.
bool goes_wrong(Communicator& world, bool loses_events, bool reuses_memory) {
  bool wrong = false;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto driver = std::make_shared<Mutant>(seed, loses_events, reuses_memory);
    const auto end = std::make_shared<DeviceEnd>(driver, 0, now_s);
    std::vector<float> numbers(20000);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = float(i) + 5000 * float(world.rank());
    Call call{Collective::allreduce, Type::f32, Op::sum};
    call.algorithm = "ring";
    call.cut.segments = call.cut.window = 4;
    call.count = numbers.size();
    call.input = call.output = numbers.data();
    call.device = {end, driver->make_stream(0)};
    world.run(call);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      wrong = wrong || numbers[i] != 3 * float(i) + 15000;
  }
  return wrong;
}

TEST_CASE("device: a lost event and a reused buffer give wrong results, which shows") {
  const std::string bad = run_ranks(3, 120, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 3, folder, 20000, Progress::thread);
    if (goes_wrong(world, false, false)) return "the original is wrong";
    std::int32_t found[2] = {goes_wrong(world, true, false), goes_wrong(world, false, true)};
    Call call{Collective::allreduce, Type::i32, Op::sum};
    call.count = 2;
    call.input = call.output = found;
    world.run(call);
    if (found[0] == 0) return "a lost event is not found";
    return found[1] == 0 ? "a reused buffer is not found" : "";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("device: some ranks of a call work in place, and others do not") {
  const std::string bad = run_ranks(4, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 4, folder, 20000, Progress::thread);
    const Mine mine(rank);
    for (const Algorithm* algorithm : registry()) {
      if (algorithm->collective != Collective::allreduce || algorithm->is_load_store()) continue;
      const Problem problem{.collective = Collective::allreduce, .ranks = 4};
      if (algorithm->by_nodes() || algorithm->rejects(problem)) continue;
      for (int turn = 0; turn < 4; ++turn) {
        std::vector<float> input(999, float(rank + turn)), output(999);
        const bool in_place = rank == turn;
        Call call{Collective::allreduce, Type::f32, Op::max};
        call.algorithm = algorithm->name;
        call.count = input.size();
        call.input = input.data();
        call.output = in_place ? input.data() : output.data();
        call.device = mine.place();
        world.run(call);
        const float got = (in_place ? input : output).back();
        if (got != float(3 + turn)) return str(algorithm->name, ", turn ", turn, ": ", got);
      }
    }
    return "";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// While one thread of a process frees memory of a CUDA device, most calls of the driver by others
// wait for every stream: so would whoever drives the messages that the streams wait for.
class Strict : public Emulation {
 public:
  Strict() : Emulation({.devices = 1, .threads = true}), owner_(std::this_thread::get_id()) {}
  std::byte* allocate(int device, std::size_t bytes) override {
    return look(), Emulation::allocate(device, bytes);
  }
  device::Event make_event(int device) override { return look(), Emulation::make_event(device); }
  void copy(Stream stream, const device::Copy& copy) override {
    look(), Emulation::copy(stream, copy);
  }
  void combine(Stream stream, const device::Combine& combine) override {
    look(), Emulation::combine(stream, combine);
  }
  void record(device::Event event, Stream stream) override {
    look(), Emulation::record(event, stream);
  }
  void wait(Stream stream, device::Event event) override { look(), Emulation::wait(stream, event); }
  void wait(Stream stream, device::Word* word, std::uint32_t value) override {
    look(), Emulation::wait(stream, word, value);
  }
  void write(Stream stream, device::Word* word, std::uint32_t value) override {
    look(), Emulation::write(stream, word, value);
  }
  void synchronize(device::Event event) override { look(), Emulation::synchronize(event); }
  int calls_of_others() const { return others_.load(); }
  void take_notice() { look(); }

 private:
  void look() {
    if (std::this_thread::get_id() != owner_) ++others_;
  }

  const std::thread::id owner_;
  std::atomic<int> others_{0};
};

TEST_CASE("device: nobody but who makes the call asks the driver for anything") {
  const std::string bad = run_ranks(3, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 3, folder, 20000, Progress::thread);
    const auto driver = std::make_shared<Strict>();
    const auto end = std::make_shared<DeviceEnd>(driver, 0, now_s);
    const Stream stream = driver->make_stream(0);
    std::vector<float> numbers(3000);
    for (const char* algorithm : {"ring", "chain", "recursive_doubling"})
      for (int turn = 0; turn < 3; ++turn) {
        numbers.assign(numbers.size(), float(rank + turn));
        Call call{Collective::allreduce, Type::f32, Op::sum};
        call.algorithm = algorithm;
        if (call.algorithm != "recursive_doubling") call.cut.segments = call.cut.window = 3;
        call.count = numbers.size();
        call.input = call.output = numbers.data();
        call.device = {end, stream};
        Request request = world.start(call);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));   // somebody else drives it
        request.wait();
        if (numbers[2999] != float(3 + 3 * turn)) return str(algorithm, ": ", numbers[2999]);
      }
    if (int(driver->calls_of_others()) > 0) return str(driver->calls_of_others(), " calls");
    return std::thread([&] { driver->take_notice(); }).join(), driver->calls_of_others() == 1
               ? "" : "a call of another thread is not noticed";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

// A rank that never comes: the others time out, and what they have enqueued behind the call runs.
TEST_CASE("device: a call that times out lets its stream go on") {
  const std::string bad = run_ranks(2, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 2, folder, 20000, Progress::thread), part = world.dup();
    const Mine mine(rank);
    std::vector<float> numbers(100, 1);
    if (rank == 0) {
      Call call{Collective::allreduce, Type::f32, Op::sum};
      call.count = numbers.size();
      call.input = call.output = numbers.data();
      call.device = mine.place();
      call.timeout_ms = 300;
      Request request = part.start(call);
      request.join(mine.stream);
      const std::string said = thrown_by([&] { request.wait(); });
      if (said.find("rank 1") == std::string::npos) return said;
      mine.wait();
    }
    Call barrier;
    world.run(barrier);
    return "";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
