// The enqueued reading on CUDA devices: a GPU's, or those of the feigned driver of tests/fakes.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "device/cuda/cuda.hpp"
#include "runtime/device_group.hpp"
#include "skip.hpp"
#include "world/cases.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using device::Cuda;
using device::Memory;
using device::Stream;
using test::Buffers;
using test::Case;

// Positions take turns on the devices that there are.
struct Group {
  std::shared_ptr<Cuda> driver = device::cuda_driver();
  std::vector<int> devices;
  std::unique_ptr<DeviceGroup> group;
  std::vector<Stream> streams;
  std::vector<std::pair<int, std::byte*>> memory;

  explicit Group(int p) {
    for (int at = 0; at < p; ++at) devices.push_back(at % driver->devices());
    group = std::make_unique<DeviceGroup>(driver, devices,
                                          machine_from("alpha_us=5,gbit_per_s=100"));
    for (int device : devices) streams.push_back(driver->make_stream(device));
  }
  ~Group() {
    release();
    for (Stream stream : streams) driver->release(stream);
  }

  std::byte* take(int device, std::size_t bytes) {
    memory.emplace_back(device, driver->allocate(device, bytes));
    return memory.back().second;
  }
  void release() {
    for (const auto& [device, data] : memory) driver->release(device, data);
    memory.clear();
  }
  void wait() {
    for (std::size_t at = 0; at < streams.size(); ++at) {
      const device::Event end = driver->make_event(devices[at]);
      driver->record(end, streams[at]);
      driver->synchronize(end);
      driver->release(end);
    }
  }
};

// One of a case's buffers, with copies of it on the device and in pinned memory.
struct Mirror {
  std::byte *device = nullptr, *pinned = nullptr;
  void* host = nullptr;
  std::size_t bytes = 0;
};

template <class T>
std::string run_case(Group& world, const Case& c) {
  std::vector<std::unique_ptr<Buffers<T>>> buffers;
  std::vector<Call> calls;
  std::vector<std::vector<Mirror>> mirrors(std::size_t(c.ranks));
  for (int r = 0; r < c.ranks; ++r) {
    buffers.push_back(std::make_unique<Buffers<T>>(c, r));
    Call call = buffers.back()->call();
    const int device = world.devices[std::size_t(r)];
    std::vector<Mirror>& mine = mirrors[std::size_t(r)];
    const auto all = buffers.back()->memory();
    for (const auto& [host, bytes] : all) {
      Mirror mirror{world.take(device, bytes), world.take(device::kHost, bytes), host, bytes};
      if (bytes) std::memcpy(mirror.pinned, host, bytes);
      world.driver->copy(world.streams[std::size_t(r)],
                         {{device, mirror.device}, {device::kHost, mirror.pinned}, bytes});
      mine.push_back(mirror);
    }
    const auto moved = [&](const void* at) -> std::byte* {
      for (const Mirror& mirror : mine) {
        const auto* const begin = static_cast<std::byte*>(mirror.host);
        const auto offset = static_cast<const std::byte*>(at) - begin;
        if (offset >= 0 && std::size_t(offset) < mirror.bytes) return mirror.device + offset;
      }
      return nullptr;   // of no elements: the end of one buffer may be where the next one begins
    };
    if (call.input) call.input = moved(call.input);
    if (call.output) call.output = moved(call.output);
    calls.push_back(call);
  }
  world.wait();
  world.group->enqueue(calls, world.streams);
  for (int r = 0; r < c.ranks; ++r)
    for (const Mirror& mirror : mirrors[std::size_t(r)])
      world.driver->copy(world.streams[std::size_t(r)],
                         {{device::kHost, mirror.pinned},
                          {world.devices[std::size_t(r)], mirror.device}, mirror.bytes});
  world.wait();
  for (const auto& mine : mirrors)
    for (const Mirror& mirror : mine)
      if (mirror.bytes) std::memcpy(mirror.host, mirror.pinned, mirror.bytes);
  world.release();
  for (const auto& b : buffers)
    if (std::string bad = b->check(); !bad.empty()) return bad;
  return {};
}

TEST_CASE("cuda: every algorithm keeps its contract on CUDA devices") {
  if (const std::string why = device::trouble_with_cuda(); !why.empty())
    return test::skip("no CUDA here: " + why);
  for (int p : {1, 2, 3, 4}) {
    Group world(p);
    int number = 0;
    test::for_each_case(p, true, [&](const Case& c) {
      if (find_algorithm(c.collective, c.algorithm).uses(Access::single_copy)) return;
      if (++number % test::by_length(37, 11, 2) != 0) return;
      const std::string bad = number % 2 ? run_case<float>(world, c) : run_case<double>(world, c);
      CHECK_MESSAGE(bad.empty(), bad);
    });
  }
}

TEST_CASE("cuda: a plan is a graph of the driver") {
  if (const std::string why = device::trouble_with_cuda(); !why.empty())
    return test::skip("no CUDA here: " + why);
  const std::size_t count = 1000;
  for (const char* algorithm : {"ring", "chain", "one_shot"}) {
    Group world(3);
    std::vector<Call> calls;
    for (int r = 0; r < 3; ++r) {
      Call call{Collective::allreduce, Type::f32, Op::sum};
      call.algorithm = algorithm;
      call.count = count;
      call.input = call.output = world.take(world.devices[std::size_t(r)], count * sizeof(float));
      calls.push_back(call);
    }
    std::byte* const pinned = world.take(device::kHost, count * sizeof(float));
    auto* const numbers = reinterpret_cast<float*>(pinned);
    const device::Graph graph = world.group->capture(calls, world.streams[0]);
    for (int turn = 1; turn <= 3; ++turn) {
      for (std::size_t i = 0; i < count; ++i) numbers[i] = float(turn) + float(i);
      for (int r = 0; r < 3; ++r)
        world.driver->copy(world.streams[std::size_t(r)],
                           {{world.devices[std::size_t(r)], static_cast<std::byte*>(
                                                                calls[std::size_t(r)].output)},
                            {device::kHost, pinned}, count * sizeof(float)});
      world.wait();
      world.driver->launch(graph, world.streams[0]);
      world.driver->copy(world.streams[0],
                         {{device::kHost, pinned},
                          {world.devices[1], static_cast<std::byte*>(calls[1].output)},
                          count * sizeof(float)});
      world.wait();
      CHECK(numbers[count - 1] == 3 * (float(turn) + float(count - 1)));
    }
    world.driver->release(graph);
  }
}

}  // namespace
}  // namespace paceline
