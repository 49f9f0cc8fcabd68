// Processes of a node that reach each other's devices: words order their streams, nothing is sent.
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "device/emulation.hpp"
#include "process/ranks.hpp"
#include "runtime/device_peers.hpp"
#include "world/cases.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

using device::Emulation;
using device::Stream;
using test::Buffers;
using test::Case;
using test::run_ranks;

struct Mine {
  std::shared_ptr<Emulation> driver;
  std::unique_ptr<DevicePeers> peers;
  Stream stream;
  std::vector<std::byte*> memory;

  Mine(Communicator world, bool threads)
      : driver(std::make_shared<Emulation>(device::EmulationOptions{
            .devices = 1, .threads = threads, .seed = std::uint64_t(world.rank()) + 3})),
        peers(std::make_unique<DevicePeers>(world, driver, 0,
                                            machine_from("alpha_us=5,gbit_per_s=100"))),
        stream(driver->make_stream(0)) {}

  std::byte* take(std::size_t bytes) {
    memory.push_back(driver->allocate(0, bytes));
    return memory.back();
  }
};

// The case's buffers lie in memory of the device; emulated ones can be read.
template <class T>
std::string run_case(Mine& mine, const Case& c) {
  Buffers<T> data(c, mine.peers->rank());
  Call call = data.call();
  std::vector<std::pair<std::byte*, std::pair<void*, std::size_t>>> copies;
  const auto moved = [&](const void* at) -> std::byte* {
    for (const auto& [device, host] : copies) {
      const auto offset = static_cast<const std::byte*>(at) - static_cast<std::byte*>(host.first);
      if (offset >= 0 && std::size_t(offset) <= host.second) return device + offset;
    }
    return nullptr;
  };
  for (const auto& host : data.memory()) {
    copies.push_back({mine.take(host.second + 64), host});
    if (host.second > 0) std::memcpy(copies.back().first, host.first, host.second);
  }
  if (call.input) call.input = moved(call.input);
  if (call.output) call.output = moved(call.output);
  mine.peers->enqueue(call, mine.stream);
  mine.peers->synchronize(mine.stream);
  for (const auto& [device, host] : copies)
    if (host.second > 0) std::memcpy(host.first, device, host.second);
  return data.check();
}

TEST_CASE("device peers: every algorithm keeps its contract between processes") {
  for (int p : {1, 2, 3, 4}) {
    const std::string bad = run_ranks(p, 240, [p](int rank, const std::string& folder) {
      Communicator world = test::join(rank, p, folder);
      std::string wrong;
      for (bool threads : {false, true}) {
        Mine mine(world, threads);
        int number = 0;
        test::for_each_case(p, true, [&](const Case& c) {
          if (!wrong.empty() || c.uneven || c.collective == Collective::barrier) return;
          if (find_algorithm(c.collective, c.algorithm).uses(Access::single_copy)) return;
          if (++number % test::by_length(67, 17, 3) != 0) return;
          wrong = run_case<float>(mine, c);
        });
      }
      return wrong;
    });
    CHECK_MESSAGE(bad.empty(), bad);
  }
}

TEST_CASE("device peers: calls follow each other without the hosts waiting for devices") {
  const std::string bad = run_ranks(3, 120, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 3, folder);
    Mine mine(world, true);
    constexpr std::size_t kCount = 3000;
    auto* const numbers = reinterpret_cast<float*>(mine.take(kCount * sizeof(float)));
    std::vector<float> start(kCount, float(rank + 1));
    std::memcpy(numbers, start.data(), kCount * sizeof(float));
    Call call{Collective::allreduce, Type::f32, Op::sum};
    call.count = kCount;
    call.input = call.output = numbers;
    const char* algorithms[] = {"ring", "chain", "rabenseifner", "one_shot"};
    for (int turn = 0; turn < 8; ++turn) {
      call.algorithm = algorithms[turn % 4];
      call.cut.segments = call.cut.window = turn % 4 == 1 ? 3 : 0;
      mine.peers->enqueue(call, mine.stream);
    }
    mine.peers->synchronize(mine.stream);
    return numbers[kCount - 1] == 6.0f * 2187 ? "" : str(numbers[kCount - 1]);
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("device peers: an array is not taken for one of its length that is gone") {
  const std::string bad = run_ranks(2, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 2, folder);
    Mine mine(world, true);
    constexpr std::size_t kCount = 3000, kBytes = kCount * sizeof(float);
    Call call{Collective::allreduce, Type::f32, Op::sum};
    call.count = kCount;
    const char* algorithms[] = {"ring", "chain", "rabenseifner", "one_shot"};
    for (int turn = 0; turn < 40; ++turn) {
      call.algorithm = algorithms[turn % 4];
      std::byte* const memory = mine.driver->allocate(0, kBytes);
      std::fill_n(reinterpret_cast<float*>(memory), kCount, float(turn + rank));
      call.input = call.output = memory;
      mine.peers->enqueue(call, mine.stream);
      mine.peers->synchronize(mine.stream);
      const float sum = reinterpret_cast<float*>(memory)[kCount - 1];
      if (sum != float(2 * turn + 1)) return str("turn ", turn, ": ", sum);
      world.run({.collective = Collective::barrier});   // nobody reads it any more
      mine.driver->release(0, memory);
    }
    std::ifstream maps("/proc/self/maps");
    int mapped = 0;
    for (std::string line; std::getline(maps, line);)
      mapped += line.find("paceline-device") != std::string::npos;
    return mapped < 20 ? "" : str(mapped, " arrays are mapped, of which none is left");
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("device peers: what goes wrong is an error, and streams go on") {
  const std::string bad = run_ranks(2, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 2, folder);
    Mine mine(world, true);
    const auto said_by = [](auto&& function) -> std::string {
      try {
        function();
      } catch (const Error& error) {
        return error.what();
      }
      return "nothing was thrown";
    };
    Call call{Collective::allreduce, Type::f32, Op::sum};
    call.count = 100;
    std::vector<float> host(100);
    call.input = call.output = host.data();
    std::string said = said_by([&] { mine.peers->enqueue(call, mine.stream); });
    if (said.find("memory of the host") == std::string::npos) return said;
    call.input = call.output = mine.take(400);
    Call other = call;
    other.count = rank == 0 ? 100 : 99;
    said = said_by([&] { mine.peers->enqueue(other, mine.stream); });
    if (said.find("rank 1 makes another call") == std::string::npos) return said;
    said = said_by([&] { mine.peers->enqueue(call, mine.stream); });
    if (said.find("broken") == std::string::npos) return said;

    // One that dies between two calls: its words never come.
    Communicator part = world.dup();
    Mine again(part, true);
    call.input = call.output = again.take(400);
    again.peers->enqueue(call, again.stream);
    again.peers->synchronize(again.stream);
    return "";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

TEST_CASE("device peers: a peer whose device stands still is given up after the time-out") {
  const std::string bad = run_ranks(2, 60, [](int rank, const std::string& folder) -> std::string {
    Communicator world = test::join(rank, 2, folder);
    world.set_timeout(500);
    Mine mine(world, true);
    Call call{Collective::allreduce, Type::f32, Op::sum};
    call.count = 100;
    call.input = call.output = mine.take(400);
    device::Word* const stop = reinterpret_cast<device::Word*>(mine.driver->allocate(-1, 64));
    stop->store(0);
    if (rank == 1) mine.driver->wait(mine.stream, stop, 1);   // its stream does not come so far
    mine.peers->enqueue(call, mine.stream);
    std::string said;
    try {
      if (rank == 1) stop->store(usleep(2'000'000) == 0);
      mine.peers->synchronize(mine.stream);
    } catch (const Error& error) {
      said = error.what();
    }
    if (rank == 1) return said.empty() || said.find("#1") != std::string::npos ? "" : said;
    if (said.find("rank 1 has yet to do its part") == std::string::npos) return said + "?";
    const device::Event end = mine.driver->make_event(0);
    mine.driver->record(end, mine.stream);
    mine.driver->synchronize(end);
    return "";
  });
  CHECK_MESSAGE(bad.empty(), bad);
}

}  // namespace
}  // namespace paceline
