// The enqueued reading: every algorithm of the registry on emulated devices.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "device/emulation.hpp"
#include "kernels/kernels.hpp"
#include "runtime/device_group.hpp"
#include "world/cases.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using device::Emulation;
using device::EmulationOptions;
using device::Stream;
using test::Buffers;
using test::Case;

struct Group {
  std::shared_ptr<Emulation> driver;
  DeviceGroup group;
  std::vector<Stream> streams;
  device::Event end;

  Group(int p, EmulationOptions options)
      : driver(std::make_shared<Emulation>(with(options, p))),
        group(driver, positions(p), machine_from("alpha_us=5,gbit_per_s=100")) {
    for (int at = 0; at < p; ++at) streams.push_back(driver->make_stream(at));
    end = driver->make_event(0);
  }

  static EmulationOptions with(EmulationOptions options, int p) {
    options.devices = p;
    return options;
  }
  static std::vector<int> positions(int p) {
    std::vector<int> all;
    for (int at = 0; at < p; ++at) all.push_back(at);
    return all;
  }

  void wait() {
    for (Stream stream : streams) {
      driver->record(end, stream);
      driver->synchronize(end);
    }
  }
};

template <class T>
std::string run_case(Group& world, const Case& c) {
  std::vector<std::unique_ptr<Buffers<T>>> buffers;
  std::vector<Call> calls;
  for (int r = 0; r < c.ranks; ++r) {
    buffers.push_back(std::make_unique<Buffers<T>>(c, r));
    calls.push_back(buffers.back()->call());
  }
  const std::string unordered = unordered_conflict(world.group.program(calls));
  if (!unordered.empty()) return c.name() + ": " + unordered;
  world.group.enqueue(calls, world.streams);
  world.wait();
  for (const auto& b : buffers)
    if (std::string bad = b->check(); !bad.empty()) return bad;
  return {};
}

template <class Visit>
void for_each_device_case(int p, bool few, Visit&& visit) {
  test::for_each_case(p, few, [&](const Case& c) {
    if (!find_algorithm(c.collective, c.algorithm).uses(Access::single_copy)) visit(c);
  });
}

TEST_CASE("device: every algorithm keeps its contract on emulated devices") {
  long cases = 0;
  for (int p = 1; p <= test::by_length(4, 6, 8); ++p) {
    Group world(p, {.seed = 31 + std::uint64_t(p)});
    for_each_device_case(p, !test::long_run(), [&](const Case& c) {
      const std::string bad =
          ++cases % 2 ? run_case<float>(world, c) : run_case<double>(world, c);
      CHECK_MESSAGE(bad.empty(), bad);
    });
  }
  MESSAGE(cases << " cases");
}

TEST_CASE("device: a stream of another device is refused, and nothing is enqueued") {
  Group world(2, {});
  const Case c{Collective::allreduce, "ring", 2, 20};
  Buffers<float> first(c, 0), second(c, 1);
  const std::vector<Call> calls = {first.call(), second.call()};
  const auto said_of = [&](const std::vector<Stream>& streams) -> std::string {
    try {
      world.group.enqueue(calls, streams);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(said_of({world.streams[0], world.streams[0]}) ==
        "device: the stream of position 1 is of device 0, not of 1; pass a stream of the device "
        "that the position is on.");
  CHECK(said_of({world.streams[1]}).find("of position 0 is of device 1") != std::string::npos);
  CHECK(said_of({}).find("0 streams for a group of 2") != std::string::npos);
  CHECK_THROWS_AS(world.group.capture(calls, world.streams[1]), Error);
  world.wait();
  CHECK_FALSE(first.check().empty());   // the sums are not there
  CHECK(said_of(world.streams).empty());
  world.wait();
  CHECK(first.check() + second.check() == "");
}

// Those that for_each_case() leaves to transports with buffers that all reach: devices do.
TEST_CASE("device: algorithms of shared buffers keep their contract") {
  int algorithms = 0;
  for (int p : {2, 3, 5, 8}) {
    Group world(p, {.seed = 11});
    for (const Algorithm* a : registry()) {
      if (!a->uses(Access::symmetric)) continue;
      ++algorithms;
      for (std::size_t n : test::awkward_counts(p))
        for (int root = 0; root < (has_root(a->collective) ? p : 1); root += p - 1)
          for (bool in_place : {false, true}) {
            const Problem problem{.collective = a->collective, .ranks = p, .root = root,
                                  .in_place = in_place, .symmetric = true};
            if (a->rejects(problem)) continue;
            const std::string bad =
                run_case<float>(world, {a->collective, a->name, p, n, root, in_place});
            CHECK_MESSAGE(bad.empty(), bad);
          }
    }
  }
  CHECK(algorithms >= 4);
}

// --- types and operations -----------------------------------------------------------------------

using Bytes = std::vector<std::byte>;

// Small numbers, which every type has and whose sums and products are exact.
Bytes small_numbers(Type type, int rank, std::size_t count) {
  static const std::uint16_t half[] = {0, 0x3c00, 0x4000, 0x4200},
                             bfloat[] = {0, 0x3f80, 0x4000, 0x4040};
  const std::size_t size = size_of(type);
  Bytes bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const auto v = static_cast<std::int64_t>((i * 7 + std::size_t(rank) * 3 + i / 4) % 4);
    const double f64 = double(v);
    const float f32 = float(v);
    const bool truth = v > 1;
    const void* from = type == Type::f64       ? static_cast<const void*>(&f64)
                       : type == Type::f32     ? static_cast<const void*>(&f32)
                       : type == Type::f16     ? static_cast<const void*>(&half[v])
                       : type == Type::bf16    ? static_cast<const void*>(&bfloat[v])
                       : type == Type::boolean ? static_cast<const void*>(&truth)
                                               : static_cast<const void*>(&v);
    std::memcpy(bytes.data() + i * size, from, size);   // integers: the low bytes come first
  }
  return bytes;
}

std::string wrong_sum(Group& world, Type type, Op op, const char* algorithm) {
  const int p = world.group.size();
  const std::size_t count = 65;
  std::vector<Bytes> data;
  std::vector<const void*> sources;
  std::vector<Call> calls;
  for (int r = 0; r < p; ++r) data.push_back(small_numbers(type, r, count));
  for (Bytes& mine : data) sources.push_back(mine.data());
  Bytes wanted(count * size_of(type));
  reduce_kernel(type, op)(wanted.data(), sources.data(), p, count);
  if (op == Op::average) divide(wanted.data(), type, count, p);
  for (Bytes& mine : data) {
    Call call{Collective::allreduce, type, op};
    call.algorithm = algorithm;
    call.count = count;
    call.input = call.output = mine.data();
    calls.push_back(call);
  }
  world.group.enqueue(calls, world.streams);
  world.wait();
  for (int r = 0; r < p; ++r)
    if (data[std::size_t(r)] != wanted)
      return str(name_of(op), " of ", name_of(type), " by ", algorithm, ": wrong at ", r);
  return {};
}

TEST_CASE("device: every type and operation") {
  for (const char* algorithm : {"chain", "ring", "rabenseifner", "one_shot"}) {
    Group world(4, {.seed = 9});
    for (int t = 0; t < kTypes; ++t)
      for (int o = 0; o < kOps; ++o) {
        const auto type = static_cast<Type>(t);
        const auto op = static_cast<Op>(o);
        if (!is_defined(op, type)) continue;
        const std::string bad = wrong_sum(world, type, op, algorithm);
        CHECK_MESSAGE(bad.empty(), bad);
      }
  }
}

TEST_CASE("device: with a thread for each stream") {
  for (int p : {2, 3}) {
    Group world(p, {.threads = true, .seed = 5});
    int number = 0;
    for_each_device_case(p, true, [&](const Case& c) {
      if (++number % test::by_length(23, 7, 1) != 0) return;
      const std::string bad = run_case<float>(world, c);
      CHECK_MESSAGE(bad.empty(), bad);
    });
  }
}

TEST_CASE("device: averages, and integers") {
  for (int p : {1, 2, 3, 5}) {
    Group world(p, {});
    for (const Algorithm* a : registry()) {
      if (!has_op(a->collective) || a->by_nodes()) continue;
      if (a->uses(Access::single_copy) || a->uses(Access::symmetric)) continue;
      Case c{a->collective, a->name, p, 12};
      if (a->rejects({.collective = a->collective, .ranks = p})) continue;
      c.op = Op::average;
      for (const std::string& bad : {run_case<double>(world, c), run_case<std::int32_t>(world, c)})
        CHECK_MESSAGE(bad.empty(), bad);
    }
  }
}

DeviceProgram program_of(const char* name, int p, std::size_t count, int segments) {
  Group world(p, {});
  Case c{Collective::allreduce, name, p, count};
  c.segments = segments;
  c.window = segments;
  std::vector<std::unique_ptr<Buffers<float>>> buffers;
  std::vector<Call> calls;
  for (int r = 0; r < p; ++r) {
    buffers.push_back(std::make_unique<Buffers<float>>(c, r));
    calls.push_back(buffers.back()->call());
  }
  return world.group.program(calls);
}

// The mutant: an event that is never waited for.
TEST_CASE("device: a lost event is found") {
  for (const char* name : {"ring", "chain", "rabenseifner", "staged"}) {
    if (std::string(name) == "staged") continue;
    const DeviceProgram program = program_of(name, 4, 64, 2);
    CHECK(unordered_conflict(program).empty());
    std::size_t lost = 0, found = 0;
    for (std::size_t i = 0; i < program.tasks.size(); ++i)
      for (std::size_t k = 0; k < program.tasks[i].waits.size(); ++k) {
        DeviceProgram mutant = program;
        mutant.tasks[i].waits.erase(mutant.tasks[i].waits.begin() + std::ptrdiff_t(k));
        ++lost;
        found += !unordered_conflict(mutant).empty();
      }
    CHECK(lost > 8);
    CHECK_MESSAGE(found == lost, name << ": " << lost - found << " of " << lost << " not found");
  }
}

// The mutant: a slot of scratch that another segment still needs.
TEST_CASE("device: a reused buffer is found") {
  DeviceProgram program = program_of("chain", 3, 64, 4);
  std::size_t moved = 0;
  for (Place& place : program.places)
    if (place.space == Space::scratch && place.offset > 0) place.offset = 0, ++moved;
  CHECK(moved > 0);
  CHECK_FALSE(unordered_conflict(program).empty());
}

TEST_CASE("device: a captured call is repeated with what its buffers hold then") {
  const int p = 3;
  for (bool threads : {false, true}) {
    Group world(p, {.threads = threads});
    std::vector<std::vector<float>> data(p, std::vector<float>(10));
    std::vector<Call> calls;
    for (auto& mine : data) {
      Call call;
      call.collective = Collective::allreduce;
      call.type = Type::f32;
      call.algorithm = "ring";
      call.count = mine.size();
      call.input = call.output = mine.data();
      calls.push_back(call);
    }
    const device::Graph graph = world.group.capture(calls, world.streams[0]);
    for (int turn = 1; turn <= 3; ++turn) {
      for (int r = 0; r < p; ++r) data[std::size_t(r)].assign(10, float(turn + r));
      world.driver->launch(graph, world.streams[0]);
      world.wait();
      for (const auto& mine : data) CHECK(mine[7] == float(3 * turn + 3));
    }
    world.driver->release(graph);
  }
}

TEST_CASE("device: calls that follow each other on other streams share no scratch") {
  const int p = 2;
  Group world(p, {.seed = 3});
  std::vector<Stream> others = {world.driver->make_stream(0), world.driver->make_stream(1)};
  Case c{Collective::allreduce, "rabenseifner", p, 200};
  std::vector<std::unique_ptr<Buffers<float>>> buffers;
  for (int turn = 0; turn < 6; ++turn) {
    std::vector<Call> calls;
    for (int r = 0; r < p; ++r) {
      buffers.push_back(std::make_unique<Buffers<float>>(c, r));
      calls.push_back(buffers.back()->call());
    }
    world.group.enqueue(calls, turn % 2 ? others : world.streams);
  }
  world.wait();
  world.streams = others;
  world.wait();
  for (const auto& b : buffers) CHECK(b->check().empty());
}

}  // namespace
}  // namespace paceline
